"""Allocates producer ids from blocks in ZooKeeper (``ProducerIdManager.scala``)."""

from collections.abc import Callable
from typing import Final

from harrow.cluster_model import errors
from harrow.cluster_model.protocol import InitProducerIdResponse
from harrow.cluster_model.zookeeper.service import protocol as zk
from harrow.cluster_model.zookeeper.service.client import ZooKeeperClient

BLOCK_SIZE: Final = 1_000

ProducerIdCallback = Callable[[InitProducerIdResponse], None]


class ZkProducerIdManager:
    """Allocates producer ids, no two of which are the same in a cluster."""

    __slots__ = ("_block_end", "_next_id", "_waiting", "_zookeeper")

    def __init__(self, zookeeper: ZooKeeperClient) -> None:
        self._zookeeper = zookeeper
        self._next_id = 0
        self._block_end = 0
        self._waiting: list[ProducerIdCallback] = []

    def generate(self, on_generated: ProducerIdCallback) -> None:
        """Answer with the next id. If the block is used up, claim another first."""
        if self._next_id < self._block_end:
            on_generated(self._next_answer())
            return
        self._waiting.append(on_generated)
        if len(self._waiting) == 1:
            self._read_block()

    def _next_answer(self) -> InitProducerIdResponse:
        producer_id = self._next_id
        self._next_id += 1
        return InitProducerIdResponse(errors.NONE, producer_id, 0)

    def _read_block(self) -> None:
        self._zookeeper.submit((zk.GetData(zk.PRODUCER_ID_BLOCK),), self._claim_block)

    def _claim_block(self, response: zk.ZooKeeperResponse) -> None:
        """Claim the block after the last one. If another broker claims it first, read again."""
        if response.error != zk.OK:
            self._read_block()
            return
        read = response.results[0]
        if read.error == zk.NO_NODE:
            start = 0
            claim: zk.ZooKeeperOperation = zk.Create(zk.PRODUCER_ID_BLOCK, BLOCK_SIZE)
        else:
            start = int(read.data)
            claim = zk.SetData(zk.PRODUCER_ID_BLOCK, start + BLOCK_SIZE, read.version)
        self._zookeeper.submit((claim,), lambda answer: self._handle_claim(answer, start))

    def _handle_claim(self, response: zk.ZooKeeperResponse, start: int) -> None:
        if response.error != zk.OK or response.results[0].error != zk.OK:
            self._read_block()
            return
        self._next_id = start
        self._block_end = start + BLOCK_SIZE
        waiting, self._waiting = self._waiting, []
        for on_generated in waiting:
            self.generate(on_generated)

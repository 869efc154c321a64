"""What can be told of a cluster from the requests that pass: who has fetched how far, who asked what, and who was refused."""

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from kafka.errors import for_code
from kafka.protocol.consumer import (
    FetchRequest,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from harrow.cluster_model.events import (
    BatchAcknowledged,
    BatchDeduplicated,
    EpochEndAnswered,
    FetchDelayed,
    FollowerFetched,
    MessageDelivered,
    RequestRejected,
)
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.sim.message_rule import REQUEST, RESPONSE
from harrow.live_cluster.links.frame import RequestHeader
from harrow.live_cluster.links.proxy import MessageObserver, ProxiedLink
from harrow.live_cluster.wire.stored_batches import as_batches, whole_batches

Report = Callable[..., None]
"""Puts an event into the trace: ``report(FollowerFetched, broker, partition, replica, offset)``."""

_PRODUCE: Final = ProduceRequest.API_KEY
_FETCH: Final = FetchRequest.API_KEY
_EPOCHS: Final = OffsetForLeaderEpochRequest.API_KEY
_FIRST_WITH_TOPIC_IDS: Final = 13
_Asked = tuple[int, int]
"""A request: the number of its connection, and its correlation id there."""
_INTERNAL: Final = "__"
"""How the names of Kafka's own topics begin."""
_BROKER: Final = re.compile(r"broker-(\d+)")
_WAITS_S: Final = 0.05
"""A fetch that has no answer for so long has found nothing to read, and waits in the purgatory."""


class RequestsSeen(MessageObserver):
    """Looks at requests and answers as they pass (`harrow.live_cluster.links.proxy.Passing`)."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._fetched: dict[tuple[int, str, int], int] = {}
        # By server, who asked, and correlation id.
        self._waiting: set[_Asked] = set()
        self._epochs_asked: dict[_Asked, dict[str, int]] = {}
        self._produced: dict[_Asked, tuple[int, dict[str, list[RecordBatch]]]] = {}
        # Where a producer's batches stand on a broker, by partition, producer id, epoch and sequence: what it has answered,
        # and, without the epoch, what it has copied.
        self._answered: dict[tuple[int, str, int, int, int], int] = {}
        self._copied: dict[tuple[int, str, int, int], int] = {}
        self.not_read: list[str] = []
        """What passed and could not be read, in words."""
        self.watches_messages = False
        self.watches_fetches = False
        self.topics_by_id: Mapping[UUID, str] = {}

    def remote_leo(self, leader: int, partition: str, replica: int) -> int:
        """Return the LEO of a follower that a leader knows of: where its newest fetch began, 0 before the first."""
        return self._fetched.get((leader, partition, replica), 0)

    def forget(self, broker: int) -> None:
        """Take note that a broker's process is a new one: it has heard of no follower yet."""
        self._fetched = {key: offset for key, offset in self._fetched.items() if key[0] != broker}

    def request_passed(self, link: ProxiedLink, header: RequestHeader, frame: bytes) -> None:
        self._watch(header, REQUEST, link.client, link.server)
        asked = (link.number, header.correlation_id)
        if header.api_key == _FETCH:
            leader, replica = _broker(link.server), _broker(link.client)
            if replica >= 0:
                self._take_fetch(leader, replica, FetchRequest[header.version].decode(frame, header=True))
            if not self.watches_fetches:
                return
            self._waiting.add(asked)
            asyncio.get_running_loop().call_later(_WAITS_S, self._look_at, asked, leader, replica)
        elif header.api_key == _PRODUCE:
            self._take_produce(asked, ProduceRequest[header.version].decode(frame, header=True))
        elif header.api_key == _EPOCHS:
            request = OffsetForLeaderEpochRequest[header.version].decode(frame, header=True)
            self._epochs_asked[asked] = {
                f"{topic.topic}-{told.partition}": told.leader_epoch
                for topic in request.topics
                for told in topic.partitions
            }

    def answer_passed(self, link: ProxiedLink, header: RequestHeader, frame: bytes) -> None:
        self._watch(header, RESPONSE, link.server, link.client)
        asked = (link.number, header.correlation_id)
        if header.api_key == _FETCH:
            self._waiting.discard(asked)
        elif header.api_key == _PRODUCE and asked in self._produced:
            answer = ProduceResponse[header.version].decode(frame, header=True)
            self._take_produced(_broker(link.server), link.client, answer, *self._produced.pop(asked))
        elif header.api_key == _EPOCHS:
            answer = OffsetForLeaderEpochResponse[header.version].decode(frame, header=True)
            self._take_ends(
                _broker(link.server), _broker(link.client), self._epochs_asked.pop(asked, {}), answer
            )

    def link_ended(self, link: ProxiedLink) -> None:
        self._waiting = {asked for asked in self._waiting if asked[0] != link.number}
        for known in (self._epochs_asked, self._produced):
            for asked in [asked for asked in known if asked[0] == link.number]:
                del known[asked]

    def unreadable(self, link: ProxiedLink, header: RequestHeader, error: Exception) -> None:
        self.not_read.append(f"{header.api} version {header.version} on {link.server}: {error!r}")

    def batch_copied(
        self,
        _at_us: int,
        broker: int,
        partition: str,
        base_offset: int,
        _leader_epoch: int,
        producer_id: int,
        base_sequence: int,
        _values: tuple[str, ...],
    ) -> None:
        """Take note of what a follower has (`harrow.cluster_model.events.BatchReplicated`): should it lead, it knows it for a duplicate."""
        if producer_id >= 0:
            self._copied[broker, partition, producer_id, base_sequence] = base_offset

    def _watch(self, header: RequestHeader, kind: str, sender: str, receiver: str) -> None:
        if self.watches_messages:
            self._report(MessageDelivered, header.api, kind, sender, receiver)

    def _take_fetch(self, leader: int, replica: int, request: Any) -> None:
        """Take note of where a follower's log ends: a session tells of the partitions that have news alone (KIP-227)."""
        for topic in request.topics:
            has_name = request.API_VERSION < _FIRST_WITH_TOPIC_IDS
            name = topic.topic if has_name else self.topics_by_id.get(topic.topic_id, _INTERNAL)
            if name.startswith(_INTERNAL):
                continue
            for asked in topic.partitions:
                partition = f"{name}-{asked.partition}"
                if self._fetched.get((leader, partition, replica)) != asked.fetch_offset:
                    self._fetched[leader, partition, replica] = asked.fetch_offset
                    self._report(FollowerFetched, leader, partition, replica, asked.fetch_offset)

    def _name(self, topic_id: UUID) -> str:
        return self.topics_by_id.get(topic_id, str(topic_id))

    def _look_at(self, asked: _Asked, leader: int, replica: int) -> None:
        if asked in self._waiting:
            self._report(FetchDelayed, leader, replica)

    def _take_produce(self, asked: _Asked, request: Any) -> None:
        if request.acks == 0:  # It is never answered.
            return
        batches: dict[str, list[RecordBatch]] = {}
        for topic in request.topic_data:
            name = topic.name if request.API_VERSION < _FIRST_WITH_TOPIC_IDS else self._name(topic.topic_id)
            for sent in topic.partition_data:
                found = batches.setdefault(f"{name}-{sent.index}", [])
                for stored, _ in whole_batches(bytes(sent.records or b"")):
                    found += as_batches(stored)
        self._produced[asked] = (request.acks, batches)

    def _take_produced(
        self, leader: int, client: str, answer: Any, acks: int, sent: Mapping[str, list[RecordBatch]]
    ) -> None:
        for topic in answer.responses:
            name = topic.name if answer.API_VERSION < _FIRST_WITH_TOPIC_IDS else self._name(topic.topic_id)
            for told in topic.partition_responses:
                partition = f"{name}-{told.index}"
                if told.error_code:
                    error = str(for_code(told.error_code).message)
                    self._report(RequestRejected, leader, "Produce", partition, client, error)
                    continue
                batches = sent.get(partition, [])
                for batch in batches:
                    if batch.producer_id >= 0:
                        self._note_stored(leader, partition, batch, told.base_offset)
                values = tuple(value for batch in batches for value in batch.values)
                self._report(BatchAcknowledged, leader, partition, told.base_offset, acks, values)

    def _note_stored(self, leader: int, partition: str, batch: RecordBatch, offset: int) -> None:
        """Take note of where an idempotent batch stands: one that stood there before is known for a duplicate."""
        key = (leader, partition, batch.producer_id, batch.producer_epoch, batch.base_sequence)
        copied = (leader, partition, batch.producer_id, batch.base_sequence)
        if offset in (self._answered.get(key), self._copied.get(copied)):
            self._report(BatchDeduplicated, leader, partition, batch.producer_id, batch.base_sequence, offset)
        self._answered[key] = offset

    def _take_ends(self, leader: int, replica: int, asked: Mapping[str, int], answer: Any) -> None:
        for topic in answer.topics:
            for told in topic.partitions:
                partition = f"{topic.topic}-{told.partition}"
                if partition in asked and not told.error_code:
                    # Before version 1 the answer's epoch is that which was asked for.
                    epoch = told.leader_epoch if answer.API_VERSION else asked[partition]
                    self._report(
                        *(EpochEndAnswered, leader, partition, replica),
                        *(asked[partition], epoch, told.end_offset),
                    )


def _broker(process: str) -> int:
    found = _BROKER.fullmatch(process)
    return -1 if found is None else int(found[1])

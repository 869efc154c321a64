"""Reports events that follow from fetches, produce requests and requests for epoch ends."""

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
_EPOCH_END: Final = OffsetForLeaderEpochRequest.API_KEY
_FIRST_WITH_TOPIC_IDS: Final = 13
_RequestId = tuple[int, int]
"""The number of a connection, and a correlation id."""
_INTERNAL: Final = "__"
"""The prefix of Kafka's internal topics."""
_BROKER: Final = re.compile(r"broker-(\d+)")
_WAITS_AFTER_S: Final = 0.05
"""A fetch without an answer for this long has found no data and waits in the purgatory."""


class ObservedRequests(MessageObserver):
    """Observes requests and answers, and reports their events."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._fetched: dict[tuple[int, str, int], int] = {}
        self._waiting: set[_RequestId] = set()
        self._epoch_requests: dict[_RequestId, dict[str, int]] = {}
        self._produced: dict[_RequestId, tuple[int, dict[str, list[RecordBatch]]]] = {}
        # Offsets of batches on a broker, by partition, producer id, epoch and sequence: those that
        # it acknowledged, and (without the epoch) those that it replicated.
        self._answered: dict[tuple[int, str, int, int, int], int] = {}
        self._replicated: dict[tuple[int, str, int, int], int] = {}
        self.not_read: list[str] = []
        """Descriptions of messages that could not be decoded."""
        self.watches_messages = False
        self.watches_fetches = False
        self.topics_by_id: Mapping[UUID, str] = {}

    def remote_leo(self, leader: int, partition: str, replica: int) -> int:
        """Return a follower's LEO as its leader knows it: the offset of its last fetch."""
        return self._fetched.get((leader, partition, replica), 0)

    def forget(self, broker: int) -> None:
        """Forget the fetches of a broker's former process."""
        self._fetched = {key: offset for key, offset in self._fetched.items() if key[0] != broker}

    def request_passed(self, link: ProxiedLink, header: RequestHeader, frame: bytes) -> None:
        self._watch(header, REQUEST, link.client, link.server)
        request_id = (link.number, header.correlation_id)
        if header.api_key == _FETCH:
            leader, replica = _broker(link.server), _broker(link.client)
            if replica >= 0:
                self._take_fetch(leader, replica, FetchRequest[header.version].decode(frame, header=True))
            if not self.watches_fetches:
                return
            self._waiting.add(request_id)
            asyncio.get_running_loop().call_later(
                _WAITS_AFTER_S, self._report_if_waiting, request_id, leader, replica
            )
        elif header.api_key == _PRODUCE:
            self._take_produce(request_id, ProduceRequest[header.version].decode(frame, header=True))
        elif header.api_key == _EPOCH_END:
            request = OffsetForLeaderEpochRequest[header.version].decode(frame, header=True)
            self._epoch_requests[request_id] = {
                f"{topic.topic}-{partition.partition}": partition.leader_epoch
                for topic in request.topics
                for partition in topic.partitions
            }

    def answer_passed(self, link: ProxiedLink, header: RequestHeader, frame: bytes) -> None:
        self._watch(header, RESPONSE, link.server, link.client)
        request_id = (link.number, header.correlation_id)
        if header.api_key == _FETCH:
            self._waiting.discard(request_id)
        elif header.api_key == _PRODUCE and request_id in self._produced:
            answer = ProduceResponse[header.version].decode(frame, header=True)
            self._take_produced(_broker(link.server), link.client, answer, *self._produced.pop(request_id))
        elif header.api_key == _EPOCH_END:
            answer = OffsetForLeaderEpochResponse[header.version].decode(frame, header=True)
            epochs = self._epoch_requests.pop(request_id, {})
            self._take_ends(_broker(link.server), _broker(link.client), epochs, answer)

    def link_ended(self, link: ProxiedLink) -> None:
        self._waiting = {request_id for request_id in self._waiting if request_id[0] != link.number}
        for pending in (self._epoch_requests, self._produced):
            for request_id in [request_id for request_id in pending if request_id[0] == link.number]:
                del pending[request_id]

    def unreadable(self, link: ProxiedLink, header: RequestHeader, error: Exception) -> None:
        self.not_read.append(f"{header.api} version {header.version} on {link.server}: {error!r}")

    def batch_copied(
        self,
        broker: int,
        partition: str,
        base_offset: int,
        _leader_epoch: int,
        producer_id: int,
        base_sequence: int,
        _values: tuple[str, ...],
    ) -> None:
        """Note a replicated batch (`BatchReplicated`): a follower that becomes leader knows it."""
        if producer_id >= 0:
            self._replicated[broker, partition, producer_id, base_sequence] = base_offset

    def _watch(self, header: RequestHeader, kind: str, sender: str, receiver: str) -> None:
        if self.watches_messages:
            self._report(MessageDelivered, header.api, kind, sender, receiver)

    def _take_fetch(self, leader: int, replica: int, request: Any) -> None:
        """Note the LEO of a follower.

        In a fetch session, a request contains only partitions that changed (KIP-227).
        """
        for topic in request.topics:
            has_name = request.API_VERSION < _FIRST_WITH_TOPIC_IDS
            name = topic.topic if has_name else self.topics_by_id.get(topic.topic_id, _INTERNAL)
            if name.startswith(_INTERNAL):
                continue
            for fetched in topic.partitions:
                partition, offset = f"{name}-{fetched.partition}", fetched.fetch_offset
                if self._fetched.get((leader, partition, replica)) != offset:
                    self._fetched[leader, partition, replica] = offset
                    self._report(FollowerFetched, leader, partition, replica, offset)

    def _name(self, topic_id: UUID) -> str:
        return self.topics_by_id.get(topic_id, str(topic_id))

    def _report_if_waiting(self, request_id: _RequestId, leader: int, replica: int) -> None:
        if request_id in self._waiting:
            self._report(FetchDelayed, leader, replica)

    def _take_produce(self, request_id: _RequestId, request: Any) -> None:
        if request.acks == 0:  # There will be no answer.
            return
        batches: dict[str, list[RecordBatch]] = {}
        for topic in request.topic_data:
            name = topic.name if request.API_VERSION < _FIRST_WITH_TOPIC_IDS else self._name(topic.topic_id)
            for data in topic.partition_data:
                partition_batches = batches.setdefault(f"{name}-{data.index}", [])
                for stored, _ in whole_batches(bytes(data.records or b"")):
                    partition_batches += as_batches(stored)
        self._produced[request_id] = (request.acks, batches)

    def _take_produced(
        self, leader: int, client: str, answer: Any, acks: int, sent: Mapping[str, list[RecordBatch]]
    ) -> None:
        for topic in answer.responses:
            name = topic.name if answer.API_VERSION < _FIRST_WITH_TOPIC_IDS else self._name(topic.topic_id)
            for response in topic.partition_responses:
                partition = f"{name}-{response.index}"
                if response.error_code:
                    error = str(for_code(response.error_code).message)
                    self._report(RequestRejected, leader, "Produce", partition, client, error)
                    continue
                batches = sent.get(partition, [])
                for batch in batches:
                    if batch.producer_id >= 0:
                        self._note_stored(leader, partition, batch, response.base_offset)
                values = tuple(value for batch in batches for value in batch.values)
                self._report(BatchAcknowledged, leader, partition, response.base_offset, acks, values)

    def _note_stored(self, leader: int, partition: str, batch: RecordBatch, offset: int) -> None:
        """Note the offset of an idempotent batch. The same offset again means a duplicate."""
        key = (leader, partition, batch.producer_id, batch.producer_epoch, batch.base_sequence)
        replicated = (leader, partition, batch.producer_id, batch.base_sequence)
        if offset in (self._answered.get(key), self._replicated.get(replicated)):
            self._report(BatchDeduplicated, leader, partition, batch.producer_id, batch.base_sequence, offset)
        self._answered[key] = offset

    def _take_ends(self, leader: int, replica: int, requested: Mapping[str, int], answer: Any) -> None:
        for topic in answer.topics:
            for end in topic.partitions:
                partition = f"{topic.topic}-{end.partition}"
                if partition in requested and not end.error_code:
                    # Before version 1 the answer has no epoch: it is always the requested one.
                    epoch = end.leader_epoch if answer.API_VERSION else requested[partition]
                    epochs = (requested[partition], epoch, end.end_offset)
                    self._report(EpochEndAnswered, leader, partition, replica, *epochs)


def _broker(process: str) -> int:
    match = _BROKER.fullmatch(process)
    return -1 if match is None else int(match[1])

"""Turns relative steps into requests, from the current state of the model's broker.

A real broker that has given the same answers so far has the same state, so both get the same
request. Only the ids that brokers draw differ: `FetchSessions` numbers sessions in the order in
which they were opened.
"""

from typing import Final

from harrow.cluster_model import protocol
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.log.record_batch import NO_SEQUENCE, RecordBatch
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.live_cluster.requests.answers import LOG_START, Answer
from harrow.live_cluster.requests.brokers.broker_driver import FOLLOWER, SingleRequest, partition_name
from harrow.live_cluster.requests.brokers.model_broker import ModelBroker
from harrow.live_cluster.requests.brokers.steps import (
    EpochEndStep,
    FetchStep,
    ListOffsetsStep,
    MetadataStep,
    PartitionFetch,
    Place,
    ProducerIdStep,
    ProduceStep,
    RetryStep,
)

RequestStep = (
    ProduceStep | RetryStep | FetchStep | ListOffsetsStep | EpochEndStep | ProducerIdStep | MetadataStep
)

_FIRST_PRODUCER_ID: Final = 1_000
_PRODUCE_TIMEOUT_US: Final = 30 * US_PER_MS
"""A produce request with acks=all waits this long for the follower, which fetches only in steps."""
_FETCH_WAIT_US: Final = 20 * US_PER_MS
_MAX_BYTES: Final = 1_000_000
_RECORD_BYTES: Final = 80
_NO_SESSION_HANDLE: Final = 0
UNKNOWN_SESSION: Final = 999_999
"""A session id that is almost surely unused: brokers draw theirs at random."""


class FetchSessions:
    """The sessions of one broker, numbered from 1 in the order in which they were opened."""

    def __init__(self) -> None:
        self._ids: list[int] = []

    def __len__(self) -> int:
        return len(self._ids)

    def with_id(self, request: SingleRequest) -> SingleRequest:
        """Return a request with this broker's session id in place of the number."""
        if isinstance(request, protocol.FetchRequest) and 0 < request.session_id <= len(self._ids):
            return replace(request, session_id=self._ids[request.session_id - 1])
        return request

    def with_number(self, answer: Answer) -> Answer:
        """Return an answer with the number in place of this broker's session id."""
        session = answer.get("session", protocol.NO_SESSION)
        if session == protocol.NO_SESSION:
            return answer
        if session not in self._ids:
            self._ids.append(session)
        return {**answer, "session": self._ids.index(session) + 1}


class Resolution:
    """Turns the steps of one sequence into requests."""

    def __init__(self, model: ModelBroker) -> None:
        self._model = model
        self._records = 0
        self._sent: dict[int, list[RecordBatch]] = {}
        # The epoch of the next fetch of each session, by number.
        self._session_epochs: dict[int, int] = {}
        self._open: list[int] = []

    def request(self, step: RequestStep) -> SingleRequest:
        """Return the request of a step in the current state."""
        if isinstance(step, ProduceStep):
            return self._produce(step.partition, self._batch(step), step.acks)
        if isinstance(step, RetryStep):
            sent = self._sent.get(step.partition)
            if not sent:
                return self._produce(step.partition, self._batch(ProduceStep(producer=0)), step.acks)
            return self._produce(step.partition, sent[-1 - step.back % len(sent)], step.acks)
        if isinstance(step, FetchStep):
            return self._fetch(step)
        if isinstance(step, ListOffsetsStep):
            return protocol.ListOffsetsRequest(
                _replica(follower=step.follower),
                {partition_name(step.partition): self._epoch(step.partition, step.epoch)},
                int(step.committed),
            )
        if isinstance(step, EpochEndStep):
            epochs = (
                self._epoch(step.partition, step.epoch),
                self._model.leader_epoch(step.partition) + step.requested,
            )
            return protocol.OffsetsForLeaderEpochRequest(FOLLOWER, {partition_name(step.partition): epochs})
        return (
            protocol.InitProducerIdRequest()
            if isinstance(step, ProducerIdStep)
            else protocol.MetadataRequest()
        )

    def _produce(self, partition: int, batch: RecordBatch, acks: int) -> protocol.ProduceRequest:
        self._sent.setdefault(partition, []).append(batch)
        return protocol.ProduceRequest(acks, _PRODUCE_TIMEOUT_US, {partition_name(partition): batch})

    def _batch(self, step: ProduceStep) -> RecordBatch:
        values = tuple(f"m{self._records + number}" for number in range(step.records))
        self._records += step.records
        if step.producer is None:
            return RecordBatch(values, size_bytes=_RECORD_BYTES * len(values))
        producer_id = _FIRST_PRODUCER_ID + step.producer
        following = self._next_sequence(step.partition, producer_id, step.epoch)
        sequence = 0 if step.sequence is None else max(0, following + step.sequence)
        return RecordBatch(values, producer_id, step.epoch, sequence, size_bytes=_RECORD_BYTES * len(values))

    def _next_sequence(self, partition: int, producer_id: int, epoch: int) -> int:
        log = self._model.log(partition)
        entry = None if log is None else log.producers.entries.get(producer_id)
        if entry is None or entry.producer_epoch != epoch or entry.last_sequence == NO_SEQUENCE:
            return 0
        return entry.last_sequence + 1

    def _fetch(self, step: FetchStep) -> protocol.FetchRequest:
        number, epoch = self._session(step)
        return protocol.FetchRequest(
            _replica(follower=step.follower),
            _FETCH_WAIT_US if step.waits else 0,
            _MAX_BYTES,
            {partition_name(place.partition): self._partition_data(step, place) for place in step.places},
            int(step.committed),
            number,
            epoch,
            tuple(partition_name(number) for number in step.forgotten) if number else (),
            rack="" if step.racks and not step.follower and self._model.knows_racks else None,
        )

    def _partition_data(self, step: FetchStep, place: PartitionFetch) -> protocol.PartitionData:
        return protocol.PartitionData(
            self._offset(place.partition, place.place) + place.plus,
            self._epoch(place.partition, place.epoch),
            log_start=LOG_START if step.follower else protocol.NO_LOG_START,
        )

    def _offset(self, partition: int, place: Place) -> int:
        log = self._model.log(partition)
        if log is None or place == "start":
            return LOG_START
        return log.high_watermark if place == "hw" else log.log_end_offset

    def _epoch(self, partition: int, relative: int | None) -> int:
        if relative is None or not self._model.knows_epochs:
            return protocol.NO_EPOCH
        return max(0, self._model.leader_epoch(partition) + relative)

    def _session(self, step: FetchStep) -> tuple[int, int]:
        """Return the number of a fetch's session, and its epoch in the session."""
        if (
            step.session == "none"
            or not self._model.knows_sessions
            or (step.session in ("last", "first", "close") and not self._open)
        ):
            return _NO_SESSION_HANDLE, protocol.FINAL_SESSION_EPOCH
        if step.session == "new":
            return _NO_SESSION_HANDLE, protocol.INITIAL_SESSION_EPOCH
        if step.session == "unknown":
            return UNKNOWN_SESSION, protocol.INITIAL_SESSION_EPOCH + 1
        number = self._open[0 if step.session == "first" else -1]
        if step.session == "close":
            return number, protocol.FINAL_SESSION_EPOCH
        return number, max(1, self._session_epochs[number] + step.session_epoch)

    def answered(self, request: SingleRequest, answer: Answer) -> None:
        """Follow the sessions that a request opens, continues or closes."""
        if not isinstance(request, protocol.FetchRequest) or answer["error"] != "NONE":
            return
        if request.session_epoch == protocol.FINAL_SESSION_EPOCH and request.session_id in self._open:
            self._open.remove(request.session_id)
        number = answer["session"]
        if number:
            if number not in self._open:
                self._open.append(number)
                self._session_epochs[number] = protocol.INITIAL_SESSION_EPOCH
            self._session_epochs[number] += 1


def _replica(*, follower: bool) -> int:
    return FOLLOWER if follower else protocol.CONSUMER_REPLICA_ID

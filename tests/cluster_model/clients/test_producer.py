"""A producer on a fake host, where the test plays the cluster (KafkaProducer, Sender)."""

from typing import Any

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.clients.partitioner import Partitioner, murmur2
from harrow.cluster_model.clients.producer import Producer
from harrow.cluster_model.history import FAIL, INFO, OK, History
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.protocol import InitProducerIdResponse, MetadataResponse, ProduceResponse
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import Value, producer_config
from tests.cluster_model.fakes import MS, SECOND, FakeHost, Sent
from tests.recorded_choices import RecordedStream, recorded_choices

P, Q = "t-0", "t-1"
IDEMPOTENT: dict[str, Any] = {"enable_idempotence": True}
RECORD_BYTES = 100  # 30 of payload, 70 of overhead


class App:
    """An application with a producer; broker 0 leads t-0, broker 1 leads t-1.

    Metadata requests are answered automatically while it is ``ready``.
    """

    def __init__(
        self, release: str = "2.4", *, ready: bool = True, topics: tuple[str, ...] = (), **settings: Value
    ) -> None:
        options = {name.replace("_", "."): value for name, value in settings.items()}
        self.host = FakeHost("producer")
        self.history = History()
        process = self.history.new_process("producer")
        config = producer_config(release, options)
        behaviours = RELEASES[release].behaviours
        self.producer = Producer(
            self.host, process, (0, 1), (P, Q), config, behaviours, self.history, 30, topics
        )
        self.producer.start()
        self.leaders = {P: 0, Q: 1}
        self.racks: dict[int, str] = {}
        self.epoch = 0
        self.ready = ready
        if ready:
            self.metadata()
            if config.idempotence:
                self.give_id(1)

    def metadata(self) -> None:
        """Answer a metadata request that is the first in flight on its connection."""
        for sent in self.host.requests("Metadata"):
            if next(s for s in self.host.sent if s.connection is sent.connection) is sent:
                self.host.sent.remove(sent)
                self.epoch += 1
                leaders = {name: (leader, self.epoch) for name, leader in self.leaders.items()}
                sent.answer(MetadataResponse((0, 1), leaders, self.racks))
                break

    def give_id(self, producer_id: int) -> None:
        self.metadata()
        self.host.take("InitProducerId").answer(InitProducerIdResponse(errors.NONE, producer_id, 0))

    def send(self, *values: str, to: str = P) -> None:
        for value in values:
            self.producer.send(value, to)

    def pause(self, duration_us: int) -> None:
        self.host.advance(duration_us)
        if self.ready:
            self.metadata()

    def in_flight(self) -> list[str]:
        """Return the joined values of each Produce request in flight."""
        return ["".join(batch_of(sent).values) for sent in self.host.requests("Produce")]

    def sequences(self) -> list[tuple[int, int]]:
        """Return (producer id, base sequence) of each Produce request in flight."""
        batches = [batch_of(sent) for sent in self.host.requests("Produce")]
        return [(batch.producer_id, batch.base_sequence) for batch in batches]

    def answer(self, error: str = errors.NONE, offset: int = 0) -> None:
        """Answer the oldest Produce request."""
        sent = self.host.take("Produce")
        sent.answer(ProduceResponse(dict.fromkeys(sent.body.batches, (error, offset))))

    def lose_connection(self) -> None:
        """Break the connection of the oldest Produce request."""
        self.host.take("Produce").lose()

    def outcomes(self) -> list[tuple[str, str, Any]]:
        """Return (type, value, offset or error) of each completed send."""
        outcomes = []
        for operation in self.history.operations:
            if operation.type in (OK, FAIL, INFO):
                argument = operation.value[0][2]
                offset, value = argument if isinstance(argument, tuple) else (None, argument)
                outcomes.append((operation.type, value, operation.error or offset))
        return outcomes


def batch_of(sent: Sent) -> RecordBatch:
    (batch,) = sent.body.batches.values()
    assert isinstance(batch, RecordBatch)
    return batch


# Metadata and batches


def test_nothing_is_sent_before_the_leader_is_known() -> None:
    app = App(ready=False)
    app.send("a", "b")
    assert app.in_flight() == []
    app.leaders[P] = -1  # no leader at the moment
    app.metadata()
    assert app.in_flight() == []
    app.pause(100 * MS)  # retry.backoff.ms
    app.leaders[P] = 1
    app.metadata()
    assert app.in_flight() == ["ab"]
    assert app.host.requests("Produce")[0].server == "broker-1"


def test_without_linger_a_record_is_sent_at_once_and_waiting_records_share_a_batch() -> None:
    app = App(max_in_flight_requests_per_connection=2)
    app.send(*"abcde")
    assert app.in_flight() == ["a", "b"]
    app.answer(offset=7)
    assert app.in_flight() == ["b", "cde"]
    app.answer(offset=8)
    app.answer(offset=9)
    assert app.outcomes() == [(OK, value, 7 + index) for index, value in enumerate("abcde")]
    assert app.producer.unfinished == 0


def test_linger_collects_records() -> None:
    app = App(linger_ms=10)
    app.send("a")
    app.pause(6 * MS)
    app.send("b")
    app.pause(4 * MS - 1)
    assert app.in_flight() == []
    app.pause(1)
    assert app.in_flight() == ["ab"]
    app.send("c")
    app.pause(10 * MS)
    assert app.in_flight() == ["ab", "c"]


def test_a_full_batch_does_not_linger() -> None:
    app = App(linger_ms=10, batch_size=2 * RECORD_BYTES)
    app.send("a")
    assert app.in_flight() == []
    app.send("b")
    assert app.in_flight() == ["ab"]
    app.send("c", "d", "e")
    assert app.in_flight() == ["ab", "cd"]
    app.pause(10 * MS)
    assert app.in_flight() == ["ab", "cd", "e"]


def test_a_batch_holds_at_least_one_record() -> None:
    app = App(batch_size=1, linger_ms=10)
    app.send("a", "b")
    assert app.in_flight() == ["a", "b"]


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_the_limit_of_requests_in_flight_applies_to_each_broker(limit: int) -> None:
    app = App(max_in_flight_requests_per_connection=limit, batch_size=1)
    app.send(*"abcdefg")
    assert app.in_flight() == list("abcdefg")[:limit]
    app.send("x", to=Q)
    assert app.in_flight()[-1] == "x"
    app.answer()
    assert len(app.in_flight()) == limit + 1


def test_with_one_request_in_flight_a_partition_waits_for_its_answer_even_after_a_leader_change() -> None:
    """`guaranteeMessageOrder`: the partition is muted."""
    app = App(max_in_flight_requests_per_connection=1, batch_size=1)
    app.send("x", to=Q)
    app.answer()
    app.send("a", "b")
    app.leaders[P] = 1
    app.producer._metadata.request_update()
    app.pause(100 * MS)
    assert app.producer._metadata.leader(P) == 1
    assert app.in_flight() == ["a"]
    app.answer()
    assert app.in_flight() == ["b"]
    assert app.host.requests("Produce")[0].server == "broker-1"


# Retries


def test_a_failed_batch_is_sent_again_after_the_retry_backoff() -> None:
    app = App()
    app.send("a")
    app.answer(errors.NOT_ENOUGH_REPLICAS)
    app.pause(100 * MS - 1)
    assert app.in_flight() == []
    app.pause(1)
    assert app.in_flight() == ["a"]
    app.answer(offset=3)
    assert app.outcomes() == [(OK, "a", 3)]


def test_after_a_leadership_error_the_batch_goes_to_the_new_leader() -> None:
    app = App()
    app.send("a")
    app.pause(SECOND)
    app.leaders[P] = 1
    app.answer(errors.NOT_LEADER_FOR_PARTITION)
    app.metadata()
    app.pause(100 * MS)
    assert [sent.server for sent in app.host.requests("Produce")] == ["broker-1"]


def test_after_a_lost_connection_a_batch_is_retried_when_both_backoffs_are_over() -> None:
    app = App(reconnect_backoff_ms=300)
    app.send("a")
    app.lose_connection()
    app.pause(300 * MS - 1)
    assert app.in_flight() == []
    app.pause(1)
    assert app.in_flight() == ["a"]


def test_an_unanswered_request_closes_the_connection_after_the_request_timeout() -> None:
    app = App()
    app.send("a")
    first = app.host.take("Produce")
    app.pause(30 * SECOND)
    assert not first.connection.is_open
    app.pause(SECOND)
    assert app.in_flight() == ["a"]


def test_without_idempotence_a_retry_lands_behind_later_batches_in_flight() -> None:
    app = App(batch_size=1)
    app.send("a", "b")
    app.answer(errors.NOT_ENOUGH_REPLICAS)
    app.answer(offset=0)
    app.send("c")
    app.pause(100 * MS)
    # It is at the front of the queue, so it is sent before c.
    assert app.in_flight() == ["a", "c"]
    assert app.outcomes() == [(OK, "b", 0)]


@pytest.mark.parametrize(
    ("release", "order"),
    [
        ("2.4", ["c", "b", "a"]),  # the oldest fails first, and each goes to the front
        ("2.0", ["c", "b", "a"]),
        ("0.11", ["a", "b", "c"]),
        ("0.10.2", ["a", "b", "c"]),
    ],
)
def test_without_idempotence_a_lost_connection_reverses_the_order_since_2_0(
    release: str, order: list[str]
) -> None:
    app = App(release, batch_size=1, retries=10)
    app.send("a", "b", "c")
    app.lose_connection()
    app.pause(100 * MS)
    assert app.in_flight() == order


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_batch_fails_after_the_configured_number_of_retries(retries: int) -> None:
    app = App(retries=retries)
    app.send("a")
    for _ in range(retries):
        app.answer(errors.NOT_ENOUGH_REPLICAS)
        assert app.outcomes() == []
        app.pause(100 * MS)
    app.answer(errors.NOT_ENOUGH_REPLICAS)
    assert app.outcomes() == [(FAIL, "a", errors.NOT_ENOUGH_REPLICAS)]
    app.pause(SECOND)
    assert app.in_flight() == []


@pytest.mark.parametrize(
    ("answers", "type_"),
    [
        ([errors.NOT_ENOUGH_REPLICAS], FAIL),
        ([errors.UNKNOWN_TOPIC_OR_PARTITION], FAIL),
        ([errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND], INFO),
        ([errors.REQUEST_TIMED_OUT], INFO),
        (["lost"], INFO),
        # One attempt of unknown outcome makes the whole outcome unknown.
        (["lost", errors.NOT_ENOUGH_REPLICAS], INFO),
        ([errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND, errors.NOT_ENOUGH_REPLICAS], INFO),
        ([errors.NOT_ENOUGH_REPLICAS, errors.NOT_ENOUGH_REPLICAS], FAIL),
        # Errors that are not retried.
        ([errors.INVALID_PRODUCER_EPOCH], FAIL),
    ],
)
def test_a_failure_is_definite_if_the_record_is_certainly_in_no_log(answers: list[str], type_: str) -> None:
    app = App(retries=len(answers) - 1)
    app.send("a")
    for answer in answers:
        app.pause(SECOND)
        if answer == "lost":
            app.lose_connection()
        else:
            app.answer(answer)
    expected = errors.NETWORK_EXCEPTION if answers[-1] == "lost" else answers[-1]
    assert app.outcomes() == [(type_, "a", expected)]


@pytest.mark.parametrize("linger_ms", [0, 500])
def test_a_retried_batch_waits_for_the_backoff_but_does_not_linger(linger_ms: int) -> None:
    """It was closed when first sent, so it counts as full (``MemoryRecordsBuilder.isFull``)."""
    app = App(linger_ms=linger_ms)
    app.send("a")
    app.pause(linger_ms * MS)
    app.answer(errors.NOT_ENOUGH_REPLICAS)
    app.pause(100 * MS - 1)
    assert app.in_flight() == []
    app.pause(1)
    assert app.in_flight() == ["a"]


# Without acknowledgements


def test_with_acks_0_every_send_succeeds_without_an_offset() -> None:
    app = App(acks="0", max_in_flight_requests_per_connection=1, batch_size=1)
    app.send("a", "b")
    assert app.in_flight() == ["a", "b"]
    assert app.outcomes() == [(OK, "a", None), (OK, "b", None)]
    assert [sent.correlation_id for sent in app.host.requests("Produce")] == [-1, -1]
    app.lose_connection()
    app.pause(200 * SECOND)
    assert len(app.outcomes()) == 2
    assert app.producer.unfinished == 0


# Giving up


def test_an_unsent_batch_expires_after_the_delivery_timeout() -> None:
    app = App(ready=False)
    app.send("a")
    app.pause(10 * SECOND)
    app.send("b")  # joins the batch of a, and expires with it
    app.pause(110 * SECOND - 1)
    assert app.outcomes() == []
    app.pause(1)
    assert app.outcomes() == [(FAIL, "a", "TIMEOUT"), (FAIL, "b", "TIMEOUT")]


def test_a_batch_in_flight_expires_after_the_delivery_timeout_with_an_unknown_outcome() -> None:
    app = App(delivery_timeout_ms=40_000, request_timeout_ms=30_000)
    app.send("a")
    app.pause(20 * SECOND)
    app.answer(errors.NOT_ENOUGH_REPLICAS)
    app.pause(20 * SECOND - 1)
    assert app.in_flight() == ["a"]
    assert app.outcomes() == []
    app.pause(1)
    assert app.outcomes() == [(INFO, "a", "TIMEOUT")]
    app.answer(offset=5)
    assert len(app.outcomes()) == 1  # the outcome is reported once
    app.send("b")
    assert app.in_flight() == ["b"]


def test_a_batch_is_not_retried_after_the_delivery_timeout() -> None:
    app = App(delivery_timeout_ms=30_000)
    app.send("a")
    app.host.clock.now_us = 30 * SECOND  # the answer comes exactly at the timeout
    app.answer(errors.NOT_ENOUGH_REPLICAS)
    assert app.outcomes() == [(FAIL, "a", errors.NOT_ENOUGH_REPLICAS)]


@pytest.mark.parametrize("release", ["0.10.2", "0.11", "2.0"])
def test_before_kip_91_a_queued_batch_expires_after_the_request_timeout(release: str) -> None:
    app = App(release, ready=False, retries=100)
    app.send("a")
    app.pause(30 * SECOND - 1)
    assert app.outcomes() == []
    app.pause(1)
    assert app.outcomes() == [(FAIL, "a", "TIMEOUT")]


def test_before_kip_91_answered_retries_continue_without_a_time_limit() -> None:
    app = App("2.0", retries=100)
    app.send("a")
    for _ in range(20):
        app.pause(20 * SECOND)
        app.answer(errors.NOT_ENOUGH_REPLICAS)
    app.pause(100 * MS)
    assert app.in_flight() == ["a"]
    assert app.outcomes() == []


def test_before_kip_91_a_batch_that_waits_for_a_retry_expires_after_the_request_timeout() -> None:
    """This holds even if its first expiry timer has fired while it was in flight."""
    app = App("2.0", retries=100)
    app.send("a")
    app.pause(20 * SECOND)
    app.answer(errors.NOT_ENOUGH_REPLICAS)
    app.pause(20 * SECOND)
    app.leaders[P] = -1  # the partition has no leader from now on
    app.answer(errors.NOT_LEADER_FOR_PARTITION)
    app.metadata()
    app.pause(30 * SECOND)
    assert app.outcomes() == []
    app.pause(SECOND)
    assert app.outcomes() == [(INFO, "a", "TIMEOUT")]


def test_before_kip_91_no_batch_expires_behind_the_only_one_in_flight() -> None:
    app = App("2.0", max_in_flight_requests_per_connection=1, batch_size=1, retries=100)
    app.send("a", "b")
    app.pause(20 * SECOND)
    app.answer(errors.NOT_ENOUGH_REPLICAS)
    app.pause(20 * SECOND)
    assert app.in_flight() == ["a"]
    assert app.outcomes() == []


def test_after_a_crash_the_outcome_of_sent_batches_is_unknown() -> None:
    app = App(max_in_flight_requests_per_connection=1, batch_size=1)
    app.send("a", "b")
    app.producer.abandon()
    assert app.outcomes() == [(INFO, "a", "CRASHED"), (FAIL, "b", "CRASHED")]
    assert app.producer.unfinished == 0


# Idempotence


def test_an_idempotent_producer_gets_its_id_before_it_sends_and_retries_after_a_failure() -> None:
    app = App(ready=False, **IDEMPOTENT)
    app.metadata()
    app.ready = True
    app.send("a")
    app.host.take("InitProducerId").answer(InitProducerIdResponse(errors.COORDINATOR_NOT_AVAILABLE, -1, -1))
    app.pause(100 * MS)
    app.host.take("InitProducerId").lose()
    assert app.in_flight() == []
    app.pause(100 * MS)
    app.give_id(9)
    assert app.sequences() == [(9, 0)]


def test_sequences_count_the_records_of_each_partition() -> None:
    app = App(linger_ms=10, **IDEMPOTENT)
    app.send("a", "b")
    app.send("x", to=Q)
    app.pause(10 * MS)
    app.send("c", "d", "e")
    app.send("y", to=Q)
    app.pause(10 * MS)
    app.send("f")
    app.pause(10 * MS)
    sequences = {
        (next(iter(s.body.batches)), batch_of(s).base_sequence) for s in app.host.requests("Produce")
    }
    assert sequences == {(P, 0), (P, 2), (P, 5), (Q, 0), (Q, 1)}
    assert {batch_of(sent).producer_epoch for sent in app.host.requests("Produce")} == {0}


def test_idempotent_batches_are_retried_one_by_one_in_the_order_of_their_sequences() -> None:
    app = App(batch_size=1, **IDEMPOTENT)
    app.send("a", "b", "c")
    app.lose_connection()
    app.send("d")
    app.pause(SECOND)
    # A retried batch must be the first without an answer.
    for value, sequence in (("a", 0), ("b", 1)):
        assert app.in_flight() == [value]
        assert app.sequences() == [(1, sequence)]
        app.answer(offset=sequence)
    # New batches may follow the last retried one.
    assert app.in_flight() == ["c", "d"]
    assert app.sequences() == [(1, 2), (1, 3)]
    app.answer(offset=2)
    app.answer(offset=3)
    assert app.outcomes() == [(OK, value, offset) for offset, value in enumerate("abcd")]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1), (0, 2, 1)])
def test_a_retried_batch_is_queued_in_the_order_of_its_sequence(order: tuple[int, ...]) -> None:
    """`insertInSequenceOrder`: after a leader change answers come in any order."""
    app = App(batch_size=1, max_in_flight_requests_per_connection=3, **IDEMPOTENT)
    app.send("a", "b", "c", "new")
    sent = list(app.producer._partitions[P].in_flight)
    for number in order:
        app.producer._requeue(sent[number])
    queue = app.producer._partitions[P].queue
    assert ["".join(batch.values) for batch in queue] == ["a", "b", "c", "new"]


def test_a_sequence_error_caused_by_an_earlier_failure_is_retried() -> None:
    """After the first batch fails, later ones are out of order. All are retried in order."""
    app = App(batch_size=1, **IDEMPOTENT)
    app.send("a", "b", "c")
    app.answer(errors.NOT_ENOUGH_REPLICAS)
    app.answer(errors.OUT_OF_ORDER_SEQUENCE_NUMBER)
    app.answer(errors.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert app.outcomes() == []
    app.pause(100 * MS)
    for offset, value in enumerate("abc"):
        assert app.in_flight() == [value]
        app.answer(offset=offset)
        app.pause(100 * MS)
    assert app.outcomes() == [(OK, value, offset) for offset, value in enumerate("abc")]


@pytest.mark.parametrize("error", [errors.OUT_OF_ORDER_SEQUENCE_NUMBER, errors.UNKNOWN_PRODUCER_ID])
def test_a_sequence_error_of_the_next_batch_fails_it_and_requires_a_new_producer_id(error: str) -> None:
    app = App(batch_size=1, **IDEMPOTENT)
    app.send("a")
    app.answer(offset=0)
    app.send("b")
    app.answer(error)
    assert app.outcomes()[1:] == [(FAIL, "b", error)]
    app.send("c")
    assert app.in_flight() == []
    app.give_id(2)
    assert app.sequences() == [(2, 0)]


def test_a_producer_without_acknowledged_batches_retries_after_unknown_producer_id() -> None:
    app = App(batch_size=1, **IDEMPOTENT)
    app.send("a", "b")
    app.answer(errors.NOT_ENOUGH_REPLICAS)
    app.answer(errors.UNKNOWN_PRODUCER_ID)
    app.pause(100 * MS)
    app.answer(offset=0)
    app.pause(100 * MS)
    app.answer(offset=1)
    assert app.outcomes() == [(OK, "a", 0), (OK, "b", 1)]


def test_a_duplicate_beyond_the_brokers_memory_succeeds_without_an_offset() -> None:
    app = App(**IDEMPOTENT)
    app.send("a")
    app.answer(errors.DUPLICATE_SEQUENCE_NUMBER, offset=-1)
    assert app.outcomes() == [(OK, "a", None)]
    app.send("b")
    assert app.sequences() == [(1, 1)]


def test_a_batch_with_a_former_producer_id_is_not_retried() -> None:
    app = App(batch_size=1, **IDEMPOTENT)
    app.send("x", to=Q)
    app.send("a")
    app.answer(offset=0)
    app.answer(offset=0)
    app.send("b", "c")
    app.answer(errors.OUT_OF_ORDER_SEQUENCE_NUMBER)
    app.give_id(2)
    app.answer(errors.NOT_ENOUGH_REPLICAS)
    assert app.outcomes()[2:] == [
        (FAIL, "b", errors.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (FAIL, "c", errors.NOT_ENOUGH_REPLICAS),
    ]
    app.send("d")
    assert app.sequences() == [(2, 0)]


def test_when_a_batch_is_refused_later_ones_take_its_sequence() -> None:
    """`adjustSequencesDueToFailedBatch`."""
    app = App(batch_size=1, **IDEMPOTENT)
    app.send("a", "b")
    app.answer(errors.INVALID_PRODUCER_EPOCH)
    app.answer(errors.OUT_OF_ORDER_SEQUENCE_NUMBER)
    app.send("c")
    app.pause(100 * MS)
    assert app.in_flight() == ["b", "c"]
    assert app.sequences() == [(1, 0), (1, 1)]


def app_with_an_unresolved_sequence() -> App:
    """Return a producer whose retried batch a has expired while b is still in flight."""
    app = App(delivery_timeout_ms=40_000, batch_size=1, **IDEMPOTENT)
    app.send("x", to=Q)
    app.send("y")
    app.answer()
    app.answer()
    app.send("a")
    app.pause(12 * SECOND)
    app.answer(errors.NOT_ENOUGH_REPLICAS)
    app.pause(SECOND)
    app.send("b")
    app.pause(27 * SECOND)
    app.send("c")
    return app


def test_new_batches_wait_while_a_sequence_is_unresolved() -> None:
    app = app_with_an_unresolved_sequence()
    assert app.outcomes()[2:] == [(INFO, "a", "TIMEOUT")]
    app.pause(SECOND)
    assert app.in_flight() == ["a", "b"]


def test_an_acknowledged_successor_resolves_a_sequence_without_a_new_producer_id() -> None:
    app = app_with_an_unresolved_sequence()
    app.answer(errors.REQUEST_TIMED_OUT)
    app.answer(offset=2)  # b follows a in the log
    assert app.outcomes()[3:] == [(OK, "b", 2)]
    assert app.sequences() == [(1, 3)]
    assert app.in_flight() == ["c"]


def test_a_late_answer_resolves_the_sequence_of_an_expired_batch() -> None:
    app = app_with_an_unresolved_sequence()
    app.answer(offset=1)
    app.answer(errors.INVALID_PRODUCER_EPOCH)  # b is refused, so its sequence is free again
    assert app.outcomes()[3:] == [(FAIL, "b", errors.INVALID_PRODUCER_EPOCH)]
    assert app.sequences() == [(1, 2)]


def test_a_permanent_gap_requires_a_new_producer_id() -> None:
    app = app_with_an_unresolved_sequence()
    app.answer(errors.NOT_ENOUGH_REPLICAS)
    app.answer(errors.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert app.outcomes()[3:] == [(FAIL, "b", errors.OUT_OF_ORDER_SEQUENCE_NUMBER)]
    assert app.in_flight() == []
    app.give_id(2)
    assert (app.in_flight(), app.sequences()) == (["c"], [(2, 0)])


def test_a_gap_with_nothing_in_flight_requires_a_new_producer_id() -> None:
    app = App(delivery_timeout_ms=40_000, batch_size=1, **IDEMPOTENT)
    app.send("a")
    app.pause(20 * SECOND)
    app.lose_connection()
    app.pause(20 * SECOND)
    assert app.outcomes() == [(INFO, "a", "TIMEOUT")]
    app.send("b")
    assert app.in_flight() == ["a"]
    assert len(app.host.requests("InitProducerId")) == 1


# Partitioner


def test_round_robin_begins_at_a_random_partition() -> None:
    partitioner = Partitioner(("a", "b", "c"), RecordedStream([2]), sticky=False)
    assert [partitioner.partition() for _ in range(5)] == ["c", "a", "b", "c", "a"]
    partitioner.batch_completed("a")
    assert partitioner.partition() == "b"


def test_the_sticky_partitioner_picks_another_partition_for_each_batch() -> None:
    partitioner = Partitioner(("a", "b", "c"), RecordedStream([1, 1, 0]), sticky=True)
    assert [partitioner.partition() for _ in range(3)] == ["b"] * 3
    partitioner.batch_completed("a")  # not the current sticky partition
    assert partitioner.partition() == "b"
    partitioner.batch_completed("b")
    assert partitioner.partition() == "c"
    partitioner.batch_completed("c")
    assert partitioner.partition() == "a"


def test_a_rack_aware_producer_prefers_partitions_with_a_leader_in_its_rack() -> None:
    in_rack = {"b", "d"}
    partitioner = Partitioner(
        ("a", "b", "c", "d"), RecordedStream([1, 2]), sticky=True, leads_nearby=lambda name: name in in_rack
    )
    partitions = []
    for lost in ("", "b", "d"):
        in_rack.discard(lost)
        partitions.append(partitioner.partition())
        partitioner.batch_completed(partitions[-1])
    assert partitions == ["d", "b", "d"]
    assert partitioner.partition() == "c"


def test_a_producer_learns_from_metadata_which_leaders_are_in_its_rack() -> None:
    app = App("4.4", partitioner_rack_aware=True, client_rack="west", ready=False)
    app.racks = {0: "east", 1: "west"}
    app.metadata()
    app.give_id(1)
    app.producer.send("m0")
    app.pause(5 * MS)
    assert app.host.requests("Produce")[0].body.batches.keys() == {Q}


@pytest.mark.parametrize(
    ("key", "digest"),
    [
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
    ],
)
def test_a_key_has_the_same_hash_as_in_kafka(key: str, digest: int) -> None:
    """The values are those of UtilsTest.testMurmur2."""
    assert murmur2(key.encode()) == digest % 2**32


def test_records_with_the_same_key_go_to_the_same_partition_and_keep_their_key() -> None:
    app = App("2.4", linger_ms=10, batch_size=9 * RECORD_BYTES)
    for value in "abc":
        app.producer.send(value, None, "k", tombstone=value == "b")
    sent = {operation.value[0][1] for operation in app.history.operations if operation.type == "invoke"}
    assert sent == {(P, Q)[(murmur2(b"k") & 0x7FFFFFFF) % 2]}
    reported = [fields[2:] for fields in app.host.events_named("keyed_send")]
    assert reported == [("a", "k", False), ("b", "k", True), ("c", "k", False)]


@pytest.mark.parametrize(("release", "parts"), [("2.4", [P, P, Q]), ("2.0", [P, Q, P])])
def test_records_without_a_partition_fill_a_batch_or_before_kip_480_alternate(
    release: str, parts: list[str]
) -> None:
    app = App(release, linger_ms=10, batch_size=2 * RECORD_BYTES)
    for value in "abc":
        app.producer.send(value)
    sent = [operation.value[0][1] for operation in app.history.operations if operation.type == "invoke"]
    assert sent == parts


def test_the_workload_stream_decides_the_partition() -> None:
    host = FakeHost("producer", recorded_choices({"workload": [1]}))
    history = History()
    config = producer_config("2.4", {})
    behaviours = RELEASES["2.4"].behaviours
    producer = Producer(host, history.new_process("p"), (0,), (P, Q), config, behaviours, history, 30)
    producer.send("a")
    assert history.operations[0].value == (("send", Q, "a"),)


@pytest.mark.parametrize("sticky", [False, True])
def test_an_added_partition_gets_records_after_the_others(sticky: bool) -> None:
    # The choices: a first partition for round-robin, or another partition for each batch.
    partitioner = Partitioner(("a", "b"), RecordedStream([1, 1] if sticky else [0]), sticky=sticky)
    chosen_partitions = [partitioner.partition()]
    for _ in range(2):
        partitioner.add("c")
    partitioner.batch_completed(chosen_partitions[0])
    chosen_partitions.append(partitioner.partition())
    if not sticky:
        chosen_partitions.append(partitioner.partition())
    assert chosen_partitions == (["b", "c"] if sticky else ["a", "b", "c"])


@pytest.mark.parametrize(("topics", "expected"), [(("t",), {P, Q, "t-2"}), ((), {P, Q})])
def test_a_producer_writes_to_added_partitions_once_metadata_lists_them(
    topics: tuple[str, ...], expected: set[str]
) -> None:
    app = App("1.1", topics=topics, linger_ms=10_000)
    app.leaders |= {"t-2": 1, "u-0": 0}
    for number in range(2):
        app.producer.send(f"before-{number}")
    app.pause(300 * SECOND)
    for number in range(3):
        app.producer.send(f"after-{number}")
    sent = {partition for operation in app.history.operations for partition, _, _ in operation.sends()}
    assert sent == expected


# Clocks that jump (Time.milliseconds)

HOUR = 3_600 * SECOND


def jump(app: App, by_us: int) -> None:
    """Let the clock of the producer's machine jump, and let the producer notice."""
    app.producer.on_clock_step(by_us)
    app.pause(0)


def test_timestamps_follow_jumps_of_the_machines_clock() -> None:
    app = App(max_in_flight_requests_per_connection=1)
    app.send("a", "b")
    before = app.host.clock.now_us
    app.pause(SECOND)
    jump(app, 20 * SECOND)
    app.answer()
    app.send("c")
    app.answer()
    (sent,) = app.host.requests("Produce")
    assert batch_of(sent).max_timestamp_us == before + SECOND + 20 * SECOND
    app = App(max_in_flight_requests_per_connection=1)
    app.send("a", "b")
    jump(app, 20 * SECOND)
    app.answer()
    (sent,) = app.host.requests("Produce")
    assert batch_of(sent).max_timestamp_us == app.host.clock.now_us, "b was handed over before the jump"


def test_a_clock_jump_ahead_expires_new_batches() -> None:
    app = App()
    app.send("a")
    jump(app, 119 * SECOND)
    assert app.outcomes() == []
    jump(app, SECOND)
    assert app.outcomes() == [(INFO, "a", "TIMEOUT")]
    assert app.producer.unfinished == 0


def test_a_clock_jump_ahead_times_out_requests_and_sends_their_records_twice() -> None:
    app = App(retry_backoff_ms=10)
    app.send("a")
    jump(app, 31 * SECOND)
    app.pause(50 * MS)
    app.pause(100 * MS)
    assert app.in_flight() == ["a"]
    assert len([sent for sent in app.host.sent if sent.body.api == "Produce"]) == 2
    assert app.host.closed, "the connection that took too long is closed"


def test_a_clock_jump_back_extends_the_backoff_of_a_batch() -> None:
    """RecordAccumulator.shouldBackoff, ProducerBatch.waitedTimeMs."""
    app = App(retry_backoff_ms=100, delivery_timeout_ms=200_000)
    app.send("a")
    app.answer(errors.NOT_ENOUGH_REPLICAS)
    jump(app, -60 * SECOND)
    app.pause(59 * SECOND)
    assert app.in_flight() == []
    app.pause(2 * SECOND)
    assert app.in_flight() == ["a"]


def test_two_opposite_clock_jumps_cancel_out() -> None:
    app = App(retry_backoff_ms=100)
    app.send("a")
    app.answer(errors.NOT_ENOUGH_REPLICAS)
    jump(app, -HOUR)
    jump(app, HOUR)
    app.pause(100 * MS)
    assert app.in_flight() == ["a"]
    app.pause(120 * SECOND)
    assert [error for _, _, error in app.outcomes()] == ["TIMEOUT"]

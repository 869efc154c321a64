"""A producer after a gap in its sequences: it gets a new id, or since KIP-360 a new epoch."""

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.clients.producer_batch import ProducerBatch
from harrow.cluster_model.clients.producer_sequences import EXPIRED, EpochBumps, ProducerSequences
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID

P, Q = "t-0", "t-1"
GAP = errors.OUT_OF_ORDER_SEQUENCE_NUMBER


class Sender:
    """The batches that a producer has in flight in each partition."""

    def __init__(self, sequences: ProducerSequences) -> None:
        self.sequences = sequences
        self.sequences.producer_id = 7
        self.in_flight: dict[str, list[ProducerBatch]] = {P: [], Q: []}

    def send(self, partition: str = P, records: int = 1) -> ProducerBatch:
        batch = ProducerBatch(partition, 0, values=["m"] * records)
        self.sequences.assign(batch)
        self.in_flight[partition].append(batch)
        return batch

    def may_send(self, partition: str = P) -> bool:
        return self.sequences.may_send(ProducerBatch(partition, 0), self.in_flight[partition])

    def on_ack(self, batch: ProducerBatch) -> None:
        self.in_flight[batch.partition].remove(batch)
        self.sequences.on_ack(batch)

    def give_up(self, batch: ProducerBatch, error: str = EXPIRED, *, retried: bool = True) -> None:
        batch.in_retry = retried
        batch.maybe_appended = error in (EXPIRED, errors.NETWORK_EXCEPTION)
        self.in_flight[batch.partition].remove(batch)
        self.sequences.on_batch_failure(
            batch, error, retries_left=True, others=self.in_flight[batch.partition]
        )

    def settle(self) -> None:
        self.sequences.settle(lambda partition: self.in_flight[partition])


@pytest.fixture
def bumping() -> Sender:
    return Sender(EpochBumps(awaits_given_up=False))


def numbers(*batches: ProducerBatch) -> list[tuple[int, int]]:
    """Return the epochs and sequences of batches."""
    return [(batch.producer_epoch, batch.base_sequence) for batch in batches]


def with_gap(sender: Sender) -> tuple[ProducerBatch, ProducerBatch]:
    """Return two batches in flight.

    The first is refused although its predecessor is acknowledged.
    """
    sender.on_ack(sender.send(records=3))
    first, second = sender.send(records=2), sender.send()
    assert sender.sequences.may_retry(first, GAP)
    return first, second


def test_batches_in_flight_after_a_gap_are_renumbered_from_0_in_the_next_epoch(bumping: Sender) -> None:
    first, second = with_gap(bumping)
    assert numbers(first, second) == [(0, 3), (0, 5)]
    bumping.settle()
    assert numbers(first, second, bumping.send()) == [(1, 0), (1, 2), (1, 3)]
    assert bumping.sequences.producer_id == 7
    assert first.record_batch().producer_epoch == 1


def test_a_batch_that_echoes_a_gap_is_retried_in_the_same_epoch(bumping: Sender) -> None:
    first, second = with_gap(bumping)
    assert bumping.sequences.may_retry(second, GAP)  # its predecessor is not acknowledged
    bumping.settle()
    assert bumping.sequences.may_retry(second, GAP)
    bumping.settle()
    assert numbers(first, second) == [(1, 0), (1, 2)]


def test_another_partition_finishes_its_batches_in_flight_in_the_former_epoch(bumping: Sender) -> None:
    other = bumping.send(Q)
    with_gap(bumping)
    bumping.settle()
    assert numbers(other) == [(0, 0)]
    assert not bumping.may_send(Q)
    bumping.on_ack(other)
    assert bumping.may_send(Q)
    assert numbers(bumping.send(Q)) == [(1, 0)]


def test_an_unresolved_batch_is_a_gap_only_once_nothing_else_is_in_flight(bumping: Sender) -> None:
    lost, successor = bumping.send(), bumping.send()
    bumping.give_up(lost)
    bumping.settle()
    assert not bumping.may_send()
    assert numbers(successor) == [(0, 1)]
    bumping.in_flight[P].clear()
    bumping.settle()
    assert numbers(bumping.send()) == [(1, 0)]


def test_an_acknowledged_successor_proves_that_a_given_up_batch_is_in_the_log(bumping: Sender) -> None:
    lost, successor = bumping.send(), bumping.send()
    bumping.give_up(lost)
    bumping.on_ack(successor)
    bumping.settle()
    assert bumping.may_send()
    assert numbers(bumping.send()) == [(0, 2)]


@pytest.mark.parametrize(("number", "epoch"), [(1, 1), (2, 0)])
def test_only_the_next_batch_proves_that_a_given_up_batch_is_not_in_the_log(
    bumping: Sender, number: int, epoch: int
) -> None:
    batches = [bumping.send() for _ in range(3)]
    bumping.give_up(batches[0])
    assert bumping.sequences.may_retry(batches[number], GAP)
    bumping.settle()
    assert batches[2].producer_epoch == epoch


def test_an_acknowledgement_of_an_older_epoch_does_not_count_in_the_new_one(bumping: Sender) -> None:
    late = bumping.send(records=9)
    bumping.give_up(late)
    bumping.settle()
    first = bumping.send()
    bumping.sequences.on_ack(late)
    assert numbers(first) == [(1, 0)]
    assert bumping.sequences.may_retry(first, GAP)
    bumping.settle()
    assert numbers(first) == [(2, 0)]


def test_before_kip_360_a_gap_requires_a_new_producer_id() -> None:
    sender = Sender(ProducerSequences(awaits_given_up=False))
    sender.on_ack(sender.send())
    refused = sender.send()
    assert not sender.sequences.may_retry(refused, GAP)
    sender.give_up(refused, GAP)
    sender.settle()
    assert sender.sequences.producer_id == NO_PRODUCER_ID


@pytest.mark.parametrize("kind", [ProducerSequences, EpochBumps])
def test_a_batch_that_expires_before_a_retry_counts_as_appended(
    kind: type[ProducerSequences],
) -> None:
    sender = Sender(kind(awaits_given_up=True))
    sender.send()
    successor = sender.send()
    sender.give_up(sender.in_flight[P][0], retried=False)
    sender.settle()
    assert sender.may_send()
    assert numbers(successor, sender.send()) == [(0, 1), (0, 2)]


@pytest.mark.parametrize(
    ("kind", "expected"), [(ProducerSequences, [(0, 0), (0, 1)]), (EpochBumps, [(1, 0), (1, 1)])]
)
def test_after_a_late_error_the_next_batches_reuse_sequences_that_may_be_in_the_log(
    kind: type[ProducerSequences], expected: list[tuple[int, int]]
) -> None:
    """KAFKA-14397."""
    sender = Sender(kind(awaits_given_up=False))
    late, successor, last = (sender.send() for _ in range(3))
    sender.give_up(late, errors.NETWORK_EXCEPTION)
    sender.settle()
    assert numbers(successor, last) == expected


@pytest.mark.parametrize("kind", [ProducerSequences, EpochBumps])
def test_without_that_flaw_a_batch_keeps_its_sequence_after_a_late_error_until_the_others_are_answered(
    kind: type[ProducerSequences],
) -> None:
    sender = Sender(kind(awaits_given_up=True))
    late, successor, last = (sender.send() for _ in range(3))
    sender.give_up(late, errors.NETWORK_EXCEPTION)
    sender.settle()
    assert numbers(successor, last) == [(0, 1), (0, 2)]
    assert not sender.may_send()


@pytest.mark.parametrize("kind", [ProducerSequences, EpochBumps])
def test_a_batch_without_retries_left_keeps_its_sequence_and_new_batches_do_not_wait(
    kind: type[ProducerSequences],
) -> None:
    sender = Sender(kind(awaits_given_up=False))
    late, successor = sender.send(), sender.send()
    sender.in_flight[P].remove(late)
    late.maybe_appended = True
    sender.sequences.on_batch_failure(late, errors.NETWORK_EXCEPTION, retries_left=False, others=[successor])
    sender.settle()
    assert sender.may_send()
    assert numbers(successor) == [(0, 1)]

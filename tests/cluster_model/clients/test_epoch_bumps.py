"""After a gap in its sequences a producer gets a new id, or since KIP-360 a new epoch."""

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
def sender() -> Sender:
    return Sender(EpochBumps(keeps_abandoned_sequence=False))


def epochs_and_sequences(*batches: ProducerBatch) -> list[tuple[int, int]]:
    """Return the epochs and sequences of batches."""
    return [(batch.producer_epoch, batch.base_sequence) for batch in batches]


def send_with_gap(sender: Sender) -> tuple[ProducerBatch, ProducerBatch]:
    """Return two batches in flight.

    The first is refused although its predecessor is acknowledged.
    """
    sender.on_ack(sender.send(records=3))
    first, second = sender.send(records=2), sender.send()
    assert sender.sequences.may_retry(first, GAP)
    return first, second


def test_batches_in_flight_after_a_gap_are_renumbered_from_0_in_the_next_epoch(sender: Sender) -> None:
    first, second = send_with_gap(sender)
    assert epochs_and_sequences(first, second) == [(0, 3), (0, 5)]
    sender.settle()
    assert epochs_and_sequences(first, second, sender.send()) == [(1, 0), (1, 2), (1, 3)]
    assert sender.sequences.producer_id == 7
    assert first.record_batch().producer_epoch == 1


def test_a_batch_refused_because_of_an_earlier_gap_is_retried_in_the_same_epoch(sender: Sender) -> None:
    first, second = send_with_gap(sender)
    assert sender.sequences.may_retry(second, GAP)  # its predecessor is not acknowledged
    sender.settle()
    assert sender.sequences.may_retry(second, GAP)
    sender.settle()
    assert epochs_and_sequences(first, second) == [(1, 0), (1, 2)]


def test_another_partition_finishes_its_batches_in_flight_in_the_former_epoch(sender: Sender) -> None:
    other = sender.send(Q)
    send_with_gap(sender)
    sender.settle()
    assert epochs_and_sequences(other) == [(0, 0)]
    assert not sender.may_send(Q)
    sender.on_ack(other)
    assert sender.may_send(Q)
    assert epochs_and_sequences(sender.send(Q)) == [(1, 0)]


def test_an_unresolved_batch_is_a_gap_only_when_no_other_batch_is_in_flight(sender: Sender) -> None:
    lost, successor = sender.send(), sender.send()
    sender.give_up(lost)
    sender.settle()
    assert not sender.may_send()
    assert epochs_and_sequences(successor) == [(0, 1)]
    sender.in_flight[P].clear()
    sender.settle()
    assert epochs_and_sequences(sender.send()) == [(1, 0)]


def test_an_acknowledged_successor_proves_that_a_given_up_batch_is_in_the_log(sender: Sender) -> None:
    lost, successor = sender.send(), sender.send()
    sender.give_up(lost)
    sender.on_ack(successor)
    sender.settle()
    assert sender.may_send()
    assert epochs_and_sequences(sender.send()) == [(0, 2)]


@pytest.mark.parametrize(("number", "epoch"), [(1, 1), (2, 0)])
def test_only_the_next_batch_proves_that_a_given_up_batch_is_not_in_the_log(
    sender: Sender, number: int, epoch: int
) -> None:
    batches = [sender.send() for _ in range(3)]
    sender.give_up(batches[0])
    assert sender.sequences.may_retry(batches[number], GAP)
    sender.settle()
    assert batches[2].producer_epoch == epoch


def test_an_acknowledgement_of_an_older_epoch_does_not_count_in_the_new_one(sender: Sender) -> None:
    late_batch = sender.send(records=9)
    sender.give_up(late_batch)
    sender.settle()
    first = sender.send()
    sender.sequences.on_ack(late_batch)
    assert epochs_and_sequences(first) == [(1, 0)]
    assert sender.sequences.may_retry(first, GAP)
    sender.settle()
    assert epochs_and_sequences(first) == [(2, 0)]


def test_before_kip_360_a_gap_requires_a_new_producer_id() -> None:
    sender = Sender(ProducerSequences(keeps_abandoned_sequence=False))
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
    sender = Sender(kind(keeps_abandoned_sequence=True))
    sender.send()
    successor = sender.send()
    sender.give_up(sender.in_flight[P][0], retried=False)
    sender.settle()
    assert sender.may_send()
    assert epochs_and_sequences(successor, sender.send()) == [(0, 1), (0, 2)]


@pytest.mark.parametrize(
    ("kind", "expected"), [(ProducerSequences, [(0, 0), (0, 1)]), (EpochBumps, [(1, 0), (1, 1)])]
)
def test_after_a_late_error_the_next_batches_reuse_sequences_that_may_be_in_the_log(
    kind: type[ProducerSequences], expected: list[tuple[int, int]]
) -> None:
    """KAFKA-14397."""
    sender = Sender(kind(keeps_abandoned_sequence=False))
    late_batch, successor, last = (sender.send() for _ in range(3))
    sender.give_up(late_batch, errors.NETWORK_EXCEPTION)
    sender.settle()
    assert epochs_and_sequences(successor, last) == expected


@pytest.mark.parametrize("kind", [ProducerSequences, EpochBumps])
def test_without_that_flaw_a_batch_keeps_its_sequence_after_a_late_error_until_the_others_are_answered(
    kind: type[ProducerSequences],
) -> None:
    sender = Sender(kind(keeps_abandoned_sequence=True))
    late_batch, successor, last = (sender.send() for _ in range(3))
    sender.give_up(late_batch, errors.NETWORK_EXCEPTION)
    sender.settle()
    assert epochs_and_sequences(successor, last) == [(0, 1), (0, 2)]
    assert not sender.may_send()


@pytest.mark.parametrize("kind", [ProducerSequences, EpochBumps])
def test_a_batch_without_retries_left_keeps_its_sequence_and_new_batches_do_not_wait(
    kind: type[ProducerSequences],
) -> None:
    sender = Sender(kind(keeps_abandoned_sequence=False))
    late_batch, successor = sender.send(), sender.send()
    sender.in_flight[P].remove(late_batch)
    late_batch.maybe_appended = True
    sender.sequences.on_batch_failure(
        late_batch, errors.NETWORK_EXCEPTION, retries_left=False, others=[successor]
    )
    sender.settle()
    assert sender.may_send()
    assert epochs_and_sequences(successor) == [(0, 1)]

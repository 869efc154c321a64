"""A producer with a gap in its sequences: another producer id, or from KIP-360 on another epoch."""

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.clients.producer_batch import ProducerBatch
from harrow.cluster_model.clients.producer_sequences import EXPIRED, EpochBumps, ProducerSequences
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID

P, Q = "t-0", "t-1"
GAP = errors.OUT_OF_ORDER_SEQUENCE_NUMBER


class Sender:
    """What a producer has under way, by partition."""

    def __init__(self, sequences: ProducerSequences) -> None:
        self.sequences = sequences
        self.sequences.producer_id = 7
        self.under_way: dict[str, list[ProducerBatch]] = {P: [], Q: []}

    def send(self, partition: str = P, records: int = 1) -> ProducerBatch:
        batch = ProducerBatch(partition, 0, values=["m"] * records)
        self.sequences.assign(batch)
        self.under_way[partition].append(batch)
        return batch

    def may_send(self, partition: str = P) -> bool:
        return self.sequences.may_send(ProducerBatch(partition, 0), self.under_way[partition])

    def acked(self, batch: ProducerBatch) -> None:
        self.under_way[batch.partition].remove(batch)
        self.sequences.acked(batch)

    def given_up(self, batch: ProducerBatch, error: str = EXPIRED, *, sent_again: bool = True) -> None:
        batch.in_retry = sent_again
        batch.maybe_appended = error in (EXPIRED, errors.NETWORK_EXCEPTION)
        self.under_way[batch.partition].remove(batch)
        self.sequences.failed(batch, error, retries_left=True, others=self.under_way[batch.partition])

    def settle(self) -> None:
        self.sequences.settle(lambda partition: self.under_way[partition])


@pytest.fixture
def bumping() -> Sender:
    return Sender(EpochBumps(awaits_given_up=False))


def places(*batches: ProducerBatch) -> list[tuple[int, int]]:
    """Return epochs and sequences."""
    return [(batch.producer_epoch, batch.base_sequence) for batch in batches]


def with_gap(sender: Sender) -> tuple[ProducerBatch, ProducerBatch]:
    """Return two batches under way, the first of which is refused although it follows what was acknowledged."""
    sender.acked(sender.send(records=3))
    first, second = sender.send(records=2), sender.send()
    assert sender.sequences.may_retry(first, GAP)
    return first, second


def test_what_is_under_way_behind_a_gap_goes_on_from_0_in_the_next_epoch(bumping: Sender) -> None:
    first, second = with_gap(bumping)
    assert places(first, second) == [(0, 3), (0, 5)]
    bumping.settle()
    assert places(first, second, bumping.send()) == [(1, 0), (1, 2), (1, 3)]
    assert bumping.sequences.producer_id == 7
    assert first.record_batch().producer_epoch == 1


def test_an_echo_of_a_gap_is_sent_again_in_the_same_epoch(bumping: Sender) -> None:
    first, second = with_gap(bumping)
    assert bumping.sequences.may_retry(second, GAP)  # it does not follow what was acknowledged
    bumping.settle()
    assert bumping.sequences.may_retry(second, GAP)
    bumping.settle()
    assert places(first, second) == [(1, 0), (1, 2)]


def test_another_partition_ends_what_it_has_under_way_in_the_epoch_of_before(bumping: Sender) -> None:
    other = bumping.send(Q)
    with_gap(bumping)
    bumping.settle()
    assert places(other) == [(0, 0)]
    assert not bumping.may_send(Q)
    bumping.acked(other)
    assert bumping.may_send(Q)
    assert places(bumping.send(Q)) == [(1, 0)]


def test_what_may_be_in_the_log_is_a_gap_only_when_nothing_else_is_under_way(bumping: Sender) -> None:
    lost, behind = bumping.send(), bumping.send()
    bumping.given_up(lost)
    bumping.settle()
    assert not bumping.may_send()
    assert places(behind) == [(0, 1)]
    bumping.under_way[P].clear()
    bumping.settle()
    assert places(bumping.send()) == [(1, 0)]


def test_what_was_given_up_is_in_the_log_if_what_follows_was_taken(bumping: Sender) -> None:
    lost, behind = bumping.send(), bumping.send()
    bumping.given_up(lost)
    bumping.acked(behind)
    bumping.settle()
    assert bumping.may_send()
    assert places(bumping.send()) == [(0, 2)]


@pytest.mark.parametrize(("number", "epoch"), [(1, 1), (2, 0)])
def test_only_the_very_next_batch_tells_that_what_was_given_up_is_not_in_the_log(
    bumping: Sender, number: int, epoch: int
) -> None:
    batches = [bumping.send() for _ in range(3)]
    bumping.given_up(batches[0])
    assert bumping.sequences.may_retry(batches[number], GAP)
    bumping.settle()
    assert batches[2].producer_epoch == epoch


def test_what_is_acknowledged_of_an_older_epoch_says_nothing_of_the_new_one(bumping: Sender) -> None:
    late = bumping.send(records=9)
    bumping.given_up(late)
    bumping.settle()
    first = bumping.send()
    bumping.sequences.acked(late)
    assert places(first) == [(1, 0)]
    assert bumping.sequences.may_retry(first, GAP)
    bumping.settle()
    assert places(first) == [(2, 0)]


def test_until_kip_360_a_gap_costs_the_producer_id() -> None:
    sender = Sender(ProducerSequences(awaits_given_up=False))
    sender.acked(sender.send())
    refused = sender.send()
    assert not sender.sequences.may_retry(refused, GAP)
    sender.given_up(refused, GAP)
    sender.settle()
    assert sender.sequences.producer_id == NO_PRODUCER_ID


@pytest.mark.parametrize("kind", [ProducerSequences, EpochBumps])
def test_a_batch_that_expires_before_it_was_sent_again_counts_as_appended(
    kind: type[ProducerSequences],
) -> None:
    sender = Sender(kind(awaits_given_up=True))
    sender.send()
    behind = sender.send()
    sender.given_up(sender.under_way[P][0], sent_again=False)
    sender.settle()
    assert sender.may_send()
    assert places(behind, sender.send()) == [(0, 1), (0, 2)]


@pytest.mark.parametrize(
    ("kind", "given"), [(ProducerSequences, [(0, 0), (0, 1)]), (EpochBumps, [(1, 0), (1, 1)])]
)
def test_the_next_batches_take_the_sequences_of_one_that_a_late_error_ends_though_it_may_be_in_the_log(
    kind: type[ProducerSequences], given: list[tuple[int, int]]
) -> None:
    """KAFKA-14397."""
    sender = Sender(kind(awaits_given_up=False))
    late, behind, last = (sender.send() for _ in range(3))
    sender.given_up(late, errors.NETWORK_EXCEPTION)
    sender.settle()
    assert places(behind, last) == given


@pytest.mark.parametrize("kind", [ProducerSequences, EpochBumps])
def test_without_that_flaw_a_batch_that_a_late_error_ends_keeps_its_sequence_until_the_others_are_answered(
    kind: type[ProducerSequences],
) -> None:
    sender = Sender(kind(awaits_given_up=True))
    late, behind, last = (sender.send() for _ in range(3))
    sender.given_up(late, errors.NETWORK_EXCEPTION)
    sender.settle()
    assert places(behind, last) == [(0, 1), (0, 2)]
    assert not sender.may_send()


@pytest.mark.parametrize("kind", [ProducerSequences, EpochBumps])
def test_a_batch_without_a_retry_left_keeps_its_sequence_and_nothing_waits_for_the_others(
    kind: type[ProducerSequences],
) -> None:
    sender = Sender(kind(awaits_given_up=False))
    late, behind = sender.send(), sender.send()
    sender.under_way[P].remove(late)
    late.maybe_appended = True
    sender.sequences.failed(late, errors.NETWORK_EXCEPTION, retries_left=False, others=[behind])
    sender.settle()
    assert sender.may_send()
    assert places(behind) == [(0, 1)]

"""The producer state of a log (KIP-98, ProducerStateManager, ProducerAppendInfo)."""

from dataclasses import replace

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.log.producer_state import ProducerStates
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.release.profiles import Behaviours, behaviours_in
from tests.cluster_model.fakes import batch

PID = 4000


def states_after(*stored: RecordBatch, release: str = "2.4", **switches: object) -> ProducerStates:
    behaviours: Behaviours = behaviours_in(release).with_switches(**switches)
    states = ProducerStates(behaviours)
    for producer_state in stored:
        states.append(producer_state)
    return states


def sent(
    sequence: int, count: int = 1, *, epoch: int = 0, at: int = -1, producer_id: int = PID
) -> RecordBatch:
    values = (f"{sequence + index}" for index in range(count))
    return batch(*values, producer_id=producer_id, epoch=epoch, sequence=sequence, at=at)


SEVEN = [sent(2 * number, 2, at=10 + 2 * number) for number in range(7)]
"""Sequences 0-1, 2-3, … 12-13 at offsets 10, 12, … 22."""


@pytest.mark.parametrize(
    ("release", "remembered"),
    [("0.10.2", 0), ("0.11", 1), ("2.0", 5), ("2.4", 5)],
)
def test_the_last_batches_of_a_producer_are_duplicates(release: str, remembered: int) -> None:
    states = states_after(*SEVEN, release=release)
    duplicates = [states.find_duplicate(sent(2 * number, 2)) for number in range(7)]
    dropped = 7 - remembered
    assert duplicates == [None] * dropped + [10 + 2 * number for number in range(dropped, 7)]


@pytest.mark.parametrize(
    "other",
    [
        sent(12, 1),  # the same first sequence, a different last one
        sent(13, 1),  # the same last sequence, a different first one
        sent(12, 3),
        sent(12, 2, epoch=1),
        sent(12, 2, producer_id=PID + 1),
    ],
)
def test_only_an_exact_match_is_a_duplicate(other: RecordBatch) -> None:
    assert states_after(*SEVEN).find_duplicate(other) is None


GAP = errors.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("release", ["0.11", "2.0", "2.4"])
@pytest.mark.parametrize(
    ("incoming", "error"),
    [
        (sent(14), errors.NONE),
        (sent(14, 3), errors.NONE),
        (sent(15), GAP),
        (sent(13), GAP),
        (sent(0, 2), GAP),  # older than every retained batch: the error is that of a gap
        (sent(0, 2, epoch=1), errors.NONE),
        (sent(0, epoch=7), errors.NONE),
        (sent(1, epoch=1), GAP),
        (sent(14, epoch=1), GAP),
    ],
)
def test_a_batch_must_follow_the_last_one(release: str, incoming: RecordBatch, error: str) -> None:
    assert states_after(*SEVEN, release=release).check(incoming) == error


@pytest.mark.parametrize("sequence", [0, 14])
def test_an_older_producer_epoch_is_rejected_at_any_sequence(sequence: int) -> None:
    states = states_after(*SEVEN, sent(0, epoch=3, at=24))
    assert states.check(sent(sequence, epoch=2)) == errors.INVALID_PRODUCER_EPOCH
    assert states.check(sent(1, epoch=3)) == errors.NONE


def test_a_new_epoch_drops_the_batches_of_the_old_one() -> None:
    states = states_after(*SEVEN, sent(0, 2, epoch=1, at=24))
    assert states.find_duplicate(sent(12, 2)) is None
    assert states.find_duplicate(sent(0, 2, epoch=1)) == 24


@pytest.mark.parametrize(
    ("release", "first_sequence", "error"),
    [
        ("0.10.2", 3, errors.NONE),  # no producer state at all
        ("0.11", 0, errors.NONE),
        ("0.11", 3, errors.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ("2.0", 0, errors.NONE),
        ("2.0", 3, errors.UNKNOWN_PRODUCER_ID),
        ("2.4", 3, errors.UNKNOWN_PRODUCER_ID),
        ("2.5", 3, errors.NONE),  # KIP-360
    ],
)
def test_an_unknown_producer_begins_at_zero_or_since_kip_360_anywhere(
    release: str, first_sequence: int, error: str
) -> None:
    states = states_after(*SEVEN, release=release)
    assert states.check(sent(first_sequence, producer_id=PID + 1)) == error


def test_each_producer_has_its_own_sequence() -> None:
    states = states_after(sent(0, at=0), sent(0, 3, producer_id=PID + 1, at=1), sent(1, at=4))
    assert states.check(sent(2)) == errors.NONE
    assert states.check(sent(3, producer_id=PID + 1)) == errors.NONE
    assert states.find_duplicate(sent(0, 3, producer_id=PID + 1)) == 1


def test_batches_without_a_producer_id_leave_no_state() -> None:
    states = states_after(batch("a", at=0), batch("b", at=1))
    assert states.check(sent(0)) == errors.NONE
    assert states.find_duplicate(batch("a")) is None


def test_a_rebuilt_state_has_exactly_the_producers_of_the_log() -> None:
    states = states_after(*SEVEN)
    states.rebuild(SEVEN[:3], [])
    assert states.check(sent(6)) == errors.NONE
    assert states.check(sent(14)) == GAP
    assert states.find_duplicate(sent(4, 2)) == 14
    assert states.find_duplicate(sent(12, 2)) is None
    states.rebuild([], [])
    assert states.check(sent(14)) == errors.UNKNOWN_PRODUCER_ID


@pytest.mark.parametrize("incoming", [sent(15), sent(13), sent(5, epoch=1), sent(9, producer_id=PID + 1)])
def test_without_the_sequence_check_only_the_epoch_is_checked(incoming: RecordBatch) -> None:
    states = states_after(*SEVEN, sequence_check=False)
    assert states.check(incoming) == errors.NONE
    states = states_after(sent(0, epoch=2, at=0), sequence_check=False)
    assert states.check(sent(1, epoch=1)) == errors.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize(
    ("release", "is_first", "error"),
    [
        ("2.4", True, errors.UNKNOWN_PRODUCER_ID),
        ("2.5", True, errors.NONE),
        ("4.3", True, errors.NONE),
        ("4.5", True, errors.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ("4.5", False, errors.NONE),
    ],
)
def test_between_kip_360_and_kafka_15591_the_first_batch_of_a_log_may_have_any_sequence(
    release: str, is_first: bool, error: str
) -> None:
    batch = RecordBatch(("m",), 1, 0, 3)
    assert states_after(release=release).check(batch, is_first=is_first) == error


@pytest.mark.parametrize(
    ("release", "has_all_records", "error"),
    [
        ("2.4", True, errors.UNKNOWN_PRODUCER_ID),
        ("4.5", True, errors.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ("4.5", False, errors.NONE),
    ],
)
def test_with_the_repair_a_producer_begins_at_zero_in_any_whole_log(
    release: str, has_all_records: bool, error: str
) -> None:
    batch = RecordBatch(("m",), 1, 0, 3)
    states = states_after(release=release, unknown_producer_sequence_is_zero=True)
    assert states.check(batch, has_all_records=has_all_records) == error
    assert states.check(RecordBatch(("m",), 1, 0, 0), has_all_records=has_all_records) == errors.NONE


def batch_of_coordinator(epoch: int = 0, at: int = -1) -> RecordBatch:
    """Return a batch that a group coordinator appends in a producer's transaction."""
    return RecordBatch(("g t-0",), PID, epoch, base_offset=at, is_transactional=True)


@pytest.mark.parametrize("release", ["0.11", "2.4", "4.5"])
def test_only_the_epoch_is_checked_for_batches_of_a_coordinator(release: str) -> None:
    states = states_after(release=release)
    assert states.check(batch_of_coordinator(), is_first=True) == errors.NONE
    states = states_after(batch_of_coordinator(1, at=0), batch_of_coordinator(1, at=1), release=release)
    assert states.find_duplicate(batch_of_coordinator(1)) is None
    assert states.check(batch_of_coordinator(1)) == errors.NONE
    assert states.check(batch_of_coordinator(2)) == errors.NONE
    assert states.check(batch_of_coordinator(0)) == errors.INVALID_PRODUCER_EPOCH


def test_a_producer_appends_nothing_outside_its_open_transaction() -> None:
    states = states_after(batch_of_coordinator(at=0))
    assert states.check(sent(0)) == errors.INVALID_TXN_STATE
    assert states.check(sent(0, producer_id=PID + 1)) == errors.NONE


@pytest.mark.parametrize(
    ("release", "error"),
    [
        # Since 4.1, transactions v2 begin with the producer's first batch (KAFKA-18202).
        ("4.0", errors.NONE),
        ("4.3", errors.OUT_OF_ORDER_SEQUENCE_NUMBER),
    ],
)
def test_a_verified_transaction_begins_with_the_first_batch_sent(release: str, error: str) -> None:
    states = states_after(release=release)
    second = replace(sent(1), is_transactional=True)
    states.begin_verification(second, is_v2=True)
    assert states.check(second) == error
    # The next batch of a producer with state may begin it.
    states = states_after(sent(0, at=0), release=release)
    states.begin_verification(second, is_v2=True)
    assert states.check(second) == errors.NONE

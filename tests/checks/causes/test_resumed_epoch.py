"""A leader that loses power may resume its epoch or begin a new one."""

import pytest

from harrow.checks.causes.resumed_epoch import resumed_epochs
from harrow.checks.index import Index
from harrow.checks.promise import BY_RESUMED_EPOCH
from harrow.cluster_model.events import BecameLeader, UnflushedLost
from tests.checks.evidence_builder import RunBuilder


def leader_event(broker: int, epoch: int, partition: str = "t-0") -> BecameLeader:
    return BecameLeader(0, broker, partition, epoch, 0, (0, 1))


def unflushed_lost_event(broker: int, from_offset: int, partition: str = "t-0") -> UnflushedLost:
    return UnflushedLost(0, broker, partition, from_offset, 9)


@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        ((leader_event(0, 1), unflushed_lost_event(0, 3), leader_event(0, 1)), 3),
        ((leader_event(0, 1), unflushed_lost_event(0, 3), unflushed_lost_event(0, 2), leader_event(0, 1)), 2),
        ((leader_event(0, 1), unflushed_lost_event(0, 3), leader_event(0, 2)), None),
        ((unflushed_lost_event(0, 3), leader_event(0, 1)), None),
        ((leader_event(0, 1), unflushed_lost_event(1, 3), leader_event(0, 1)), None),
        ((leader_event(0, 1), leader_event(0, 1)), None),
        ((leader_event(0, 1), unflushed_lost_event(0, 3, "t-1"), leader_event(0, 1)), None),
    ],
)
def test_a_leader_resumes_its_epoch_if_it_leads_again_after_losing_unflushed_records(
    trace: tuple[BecameLeader | UnflushedLost, ...], expected: int | None
) -> None:
    assert resumed_epochs(trace).get("t-0") == expected


def test_a_resumed_epoch_excuses_only_the_lost_offsets_of_its_partition() -> None:
    run = RunBuilder()
    run.append(0, "a", "b", "c", "d")
    run.lead(0, 1, (0, 1))
    run.lose_power(0, 3)
    run.lead(0, 1, (0, 1))
    index = Index(run.evidence())
    assert index.excuse("t-0", 3) is BY_RESUMED_EPOCH
    assert index.excuse("t-0", None) is BY_RESUMED_EPOCH
    assert index.excuse("t-0", 2) is None
    assert index.excuse("t-1", 3) is None

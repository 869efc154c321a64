"""The brokers that can lead a partition with every committed record."""

from dataclasses import dataclass
from typing import Any, cast

from harrow.campaigns.run.targets.shared_environment import copies_of
from harrow.campaigns.run.targets.target import CommittedCopies, RunObserver
from harrow.cluster_model.log.disk import TORN, LogFile
from harrow.cluster_model.log.record_batch import RecordBatch


@dataclass
class RunningReplica:
    """A replica on a running broker."""

    hw: int


class ObserverOfThree:
    """Three replicas, not all running."""

    def __init__(self, running: dict[int, int], electable: tuple[int, ...]) -> None:
        self._running = running
        self._electable = electable

    def replicas_of(self, _: str) -> tuple[int, ...]:
        return (0, 1, 2)

    def replica(self, _: str, broker: int) -> Any:
        return RunningReplica(self._running[broker]) if broker in self._running else None

    def electable(self, _: str) -> tuple[int, ...]:
        return self._electable


def copies(
    ends: tuple[int, int, int],
    running: dict[int, int],
    *,
    last_known_hws: tuple[int | None, int | None, int | None] = (0, 0, 0),
    electable: tuple[int, ...] = (0, 1, 2),
) -> CommittedCopies:
    observer = cast("RunObserver", ObserverOfThree(running, electable))
    return copies_of(
        observer,
        "t-0",
        end_of_log=ends.__getitem__,
        last_known_high_watermark=last_known_hws.__getitem__,
        min_isr=2,
    )


def test_an_isr_copy_is_complete_if_it_has_every_record_that_any_replica_counts_as_committed() -> None:
    replicas = copies((5, 5, 3), {0: 4, 1: 3, 2: 3})
    assert (set(replicas.complete), set(replicas.incomplete)) == ({0, 1}, {2})


def test_a_copy_without_a_record_that_only_a_dead_leader_counted_as_committed_is_incomplete() -> None:
    assert copies((5, 5, 3), {1: 3, 2: 3}, last_known_hws=(4, 0, 0)).incomplete == {2}
    assert copies((5, 5, 3), {1: 3, 2: 3}).incomplete == set()


def test_no_copy_is_complete_while_every_high_watermark_is_unknown() -> None:
    unknown = (None, None, None)
    assert copies((5, 5, 3), {}, last_known_hws=unknown).complete == set()
    assert copies((5, 5, 3), {2: 4}, last_known_hws=unknown).complete == {0, 1}


def test_a_copy_outside_the_isr_is_neither_complete_nor_needed() -> None:
    replicas = copies((5, 5, 5), {0: 5, 1: 5, 2: 5}, electable=(0, 1))
    assert replicas.complete == {0, 1}
    assert replicas.can_spare(2)
    assert not replicas.can_spare(0)


def test_a_log_is_intact_up_to_its_first_damaged_batch() -> None:
    log = LogFile()
    for base_offset in range(3):
        log.append(RecordBatch((f"m{base_offset}",), -1, -1, -1, base_offset=base_offset))
    assert log.intact_end == 3
    log.damaged[1] = TORN
    assert log.intact_end == 1

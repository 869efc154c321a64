"""The brokers that can lead a partition with every committed record."""

from dataclasses import dataclass
from typing import Any, cast

from harrow.campaigns.run.targets.shared_environment import copies_of
from harrow.campaigns.run.targets.target import CommittedCopies, RunObserver
from harrow.cluster_model.log.disk import TORN, LogFile
from harrow.cluster_model.log.record_batch import RecordBatch


@dataclass
class Seen:
    """A replica whose broker runs."""

    hw: int


class ObserverOfThree:
    """Three replicas, not all running."""

    def __init__(self, running: dict[int, int], electable: tuple[int, ...]) -> None:
        self._running = running
        self._electable = electable

    def replicas_of(self, _: str) -> tuple[int, ...]:
        return (0, 1, 2)

    def replica(self, _: str, broker: int) -> Any:
        return Seen(self._running[broker]) if broker in self._running else None

    def electable(self, _: str) -> tuple[int, ...]:
        return self._electable


def copies(
    ends: tuple[int, int, int],
    running: dict[int, int],
    *,
    before: tuple[int | None, int | None, int | None] = (0, 0, 0),
    electable: tuple[int, ...] = (0, 1, 2),
) -> CommittedCopies:
    observer = cast("RunObserver", ObserverOfThree(running, electable))
    return copies_of(
        observer,
        "t-0",
        end_of_log=ends.__getitem__,
        high_watermark_before=before.__getitem__,
        enough=2,
    )


def test_a_copy_in_the_isr_is_whole_if_it_has_every_record_that_any_replica_counts_as_committed() -> None:
    replicas = copies((5, 5, 3), {0: 4, 1: 3, 2: 3})
    assert (set(replicas.whole), set(replicas.hollow)) == ({0, 1}, {2})


def test_records_that_only_a_dead_leader_knew_to_be_committed_count() -> None:
    assert copies((5, 5, 3), {1: 3, 2: 3}, before=(4, 0, 0)).hollow == {2}
    assert copies((5, 5, 3), {1: 3, 2: 3}).hollow == set()


def test_no_copy_is_whole_while_no_high_watermark_is_known() -> None:
    unknown = (None, None, None)
    assert copies((5, 5, 3), {}, before=unknown).whole == set()
    assert copies((5, 5, 3), {2: 4}, before=unknown).whole == {0, 1}


def test_a_copy_outside_the_isr_does_not_count() -> None:
    replicas = copies((5, 5, 5), {0: 5, 1: 5, 2: 5}, electable=(0, 1))
    assert replicas.whole == {0, 1}
    assert replicas.can_spare(2)
    assert not replicas.can_spare(0)


def test_a_log_is_intact_up_to_its_first_damaged_batch() -> None:
    log = LogFile()
    for base_offset in range(3):
        log.append(RecordBatch((f"m{base_offset}",), -1, -1, -1, base_offset=base_offset))
    assert log.intact_end == 3
    log.damaged[1] = TORN
    assert log.intact_end == 1

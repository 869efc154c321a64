"""The stages of a partition's logs: a table for each moment that moves a LEO, remote LEO or HW.

Textbooks show such tables. They have three columns for each replica: the end of its log (LEO), the
log end that the leader has recorded for it (remote LEO), and its high watermark (HW).
"""

from collections.abc import Mapping
from itertools import groupby

from harrow.campaigns.record.run_events import RunEvents
from harrow.campaigns.story.event_phrases import narrate
from harrow.campaigns.story.run_state import initial_state
from harrow.campaigns.story.trace_story import Narrator
from harrow.checks.replay.partition_state import NO_EPOCH, PartitionState
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.trace import decode


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaEnds:
    """The ends of a replica's log, and its role.

    ``remote_leo`` is the LEO that the leader has recorded for this replica. It is None for the
    leader itself, and if the leader has recorded none. ``hw`` is None while the log is not open.
    """

    role: str
    leader_epoch: int
    leo: int
    remote_leo: int | None
    hw: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The ends of the replicas' logs, by broker, after all events that happen at one time.

    ``texts`` are the events that moved an end. ``number`` is the ``trace.jsonl`` line of the last
    event of that time.
    """

    number: int
    at_us: int
    texts: tuple[str, ...]
    ends: Mapping[int, ReplicaEnds]


def stages_of(run: RunEvents, partition: str, event_count: int) -> list[Stage]:
    """Return the stages of a partition from time zero on, within the first *event_count* events."""
    state = initial_state(run)
    narrator = Narrator(state, has_several_partitions=len(run.replicas) > 1)
    stages: list[Stage] = []
    ends = ends_of(state.partition(partition))
    positions = (
        position for position in range(event_count) if state.concerns(run.events[position], partition)
    )
    for at_us, moment in groupby(positions, lambda position: max(0, int(run.events[position][0]))):
        texts = []
        for position in moment:
            event = decode(run.events[position])
            context = narrator.advance(event, run.events[position], run.numbers[position])
            now = ends_of(state.partition(partition))
            if _have_moved(ends, now):
                narration = narrate(event, context)
                texts.append(f"{narration.lane} {narration.text}")
            ends = now
        if texts and at_us > 0:
            stages.append(Stage(number=state.number, at_us=at_us, texts=tuple(texts), ends=ends))
        elif at_us == 0:
            stages.append(Stage(number=state.number, at_us=0, texts=(), ends=ends))
    return stages


def ends_of(partition: PartitionState) -> Mapping[int, ReplicaEnds]:
    return {
        broker: ReplicaEnds(
            role=replica.role,
            leader_epoch=replica.leader_epoch if replica.role else NO_EPOCH,
            leo=replica.leo,
            remote_leo=partition.remote_leo(broker),
            hw=replica.high_watermark if replica.is_open else None,
        )
        for broker, replica in sorted(partition.replicas.items())
    }


def _have_moved(before: Mapping[int, ReplicaEnds], now: Mapping[int, ReplicaEnds]) -> bool:
    return [(end.leo, end.remote_leo, end.hw) for end in before.values()] != [
        (end.leo, end.remote_leo, end.hw) for end in now.values()
    ]

"""`harrow diff RUN RUN`: two recorded runs, a setting, a release or a seed apart."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from campaigns.plan import Plan
from campaigns.plan_file import UnwritablePlanError, campaign_text
from campaigns.recorded_run import RecordedEvent, RecordedRun
from campaigns.replay import Difference, difference_at, event_as_mapping, first_difference
from campaigns.replica_diff import Fates, RecordFate
from campaigns.replica_states import LogEntry, PartitionState
from campaigns.report import BASE
from campaigns.run_diff import SCHEMA, At, DiffError, RunDiff, diff_run, run_mapping
from campaigns.spelling import listed, quoted, suggestion

_WORDS: Final = re.compile(r"\.note$|\.do(\[\d+\])?\.expect\b")
"""Keys of a script that only say or assert what happens."""
_LAST: Final = ("faults", "script")
_NO_DIFFERENCE: Final = frozenset({"name", "description", "expect", "variants", "found"})
"""Sections of a campaign that say nothing of what happens."""

_TELLING: Final = frozenset(
    {
        *("append", "duplicate_batch", "truncate", "unflushed_lost", "recover", "leader", "follower"),
        *("election", "isr", "isr_reduced", "isr_refused", "acknowledged", "rejected", "controller_elected"),
        "epoch_asked",
        *("broker_stopped", "broker_started", "broker_paused", "broker_resumed", "session_expired", "fault"),
    }
)
"""Events that tell what happened; the others are the traffic in between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDifference:
    """A key of the campaigns that is not the same; a side is None where it is not said."""

    key: str
    one: str | None
    other: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    """An offset of the logs that consumers read in both runs. ``fates`` are of the record in each run.

    A side without an entry has the fate of the other's record, None if that was never sent there.
    """

    offset: int
    entries: tuple[LogEntry | None, LogEntry | None]
    fates: tuple[RecordFate | None, RecordFate | None]

    def is_equal(self) -> bool:
        """Return whether both have the same value there, with the same fate for its producer."""
        one, other = self.entries
        return one is not None and other is not None and one.value == other.value


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsDiff:
    """The logs of one partition in both runs: those of its leaders. ``lost`` are values by run."""

    name: str
    brokers: tuple[int | None, int | None]
    rows: Sequence[LogRow]
    lost: tuple[tuple[str, ...], tuple[str, ...]]

    def is_equal(self) -> bool:
        """Return whether both logs have the same values, and the same records were lost."""
        return all(row.is_equal() for row in self.rows) and set(self.lost[0]) == set(self.lost[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsDiff:
    """Two runs.

    ``parted`` is the first event that is not the same, ``told_apart`` the first that tells another
    story: a difference in more than the times, in an event that is no mere traffic.
    """

    runs: tuple[RunDiff, RunDiff]
    plan: Sequence[PlanDifference]
    parted: Difference | None
    told_apart: tuple[tuple[int, RecordedEvent] | None, tuple[int, RecordedEvent] | None]
    logs: Sequence[LogsDiff]

    @property
    def is_same(self) -> bool:
        """Whether both have the same trace."""
        return self.parted is None


def diff_runs(one: RecordedRun, other: RecordedRun, at: At, partitions: Sequence[str] = ()) -> RunsDiff:
    """Compare two runs: their plans, their traces, and the logs that they came to.

    Raises:
        DiffError: a run has no such moment, or neither has such a partition.
        RecordError: a run cannot be read.

    """
    runs = (diff_run(one, at), diff_run(other, at))
    names = list(dict.fromkeys([*runs[0].state.partitions, *runs[1].state.partitions]))
    for name in partitions:
        if name not in names:
            raise DiffError(
                f"--partition {quoted(name)}: the runs have {listed(names)}{suggestion(name, names)}"
            )
    position = first_difference(one.lines, other.lines)
    parted = None
    if position is not None:
        now = other.events[position] if position < len(other.events) else None
        parted = difference_at(one.events, position, now)
    return RunsDiff(
        runs=runs,
        plan=_differences(one, other, runs[0].run.plan, runs[1].run.plan),
        parted=parted,
        told_apart=_told_apart(one.events, other.events),
        logs=[_logs(name, runs) for name in partitions or names],
    )


def _differences(one: RecordedRun, other: RecordedRun, plan: Plan, other_plan: Plan) -> list[PlanDifference]:
    sides = [
        {
            "campaign": used.campaign,
            "variant": recorded.variant or BASE,
            "seed": str(recorded.seed),
            "version": recorded.version,
            **dict(_flat("", _document(used))),
        }
        for recorded, used in ((one, plan), (other, other_plan))
    ]
    keys = [key for key in dict.fromkeys([*sides[0], *sides[1]]) if not _WORDS.search(key)]
    # A setting that differs says more than the steps that were written for it.
    keys.sort(key=lambda key: key.startswith(_LAST))
    return [
        PlanDifference(key=key, one=sides[0].get(key), other=sides[1].get(key))
        for key in keys
        if sides[0].get(key) != sides[1].get(key)
    ]


def _document(plan: Plan) -> Mapping[str, Any]:
    try:
        document = yaml.safe_load(campaign_text(plan))
    except UnwritablePlanError:
        return {"kafka": plan.kafka, "plan digest": plan.digest()}
    return {key: value for key, value in document.items() if key not in _NO_DIFFERENCE}


def _flat(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(f"{path}.{key}" if path else str(key), inner)
    elif isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        for number, inner in enumerate(value):
            name = inner.get("name", number) if isinstance(inner, dict) else number
            yield from _flat(f"{path}[{name}]", inner)
    elif isinstance(value, list):
        yield path, ", ".join(map(str, value))
    else:
        yield path, str(value).lower() if isinstance(value, bool) else str(value)


def _told_apart(
    one: Sequence[RecordedEvent], other: Sequence[RecordedEvent]
) -> tuple[tuple[int, RecordedEvent] | None, tuple[int, RecordedEvent] | None]:
    """Return the events at which the stories part, with their lines; None where a trace has ended."""
    told = [
        [(line, event) for line, event in enumerate(events, 1) if event.event in _TELLING]
        for events in (one, other)
    ]
    words = [[(event.event, event.fields) for _, event in events] for events in told]
    position = first_difference(words[0], words[1])
    if position is None:
        return None, None
    found = [events[position] if position < len(events) else None for events in told]
    return found[0], found[1]


def _logs(name: str, runs: tuple[RunDiff, RunDiff]) -> LogsDiff:
    states = [run.state.partitions.get(name) or PartitionState(name) for run in runs]
    fates = [Fates(state) for state in states]
    leading = [_leading(state) for state in states]
    logs = [
        states[side].replicas[broker].log if broker is not None else [] for side, broker in enumerate(leading)
    ]
    rows = []
    for offset in range(max(map(len, logs))):
        one, other = (log[offset] if offset < len(log) else None for log in logs)
        rows.append(
            LogRow(
                offset=offset,
                entries=(one, other),
                fates=(_fate(fates[0], one, other), _fate(fates[1], other, one)),
            )
        )
    lost = [tuple(_lost(state, found)) for state, found in zip(states, fates, strict=True)]
    return LogsDiff(name=name, brokers=(leading[0], leading[1]), rows=rows, lost=(lost[0], lost[1]))


def _fate(fates: Fates, entry: LogEntry | None, others: LogEntry | None) -> RecordFate | None:
    known = entry or others
    return None if known is None else fates.of(known)


def _leading(state: PartitionState) -> int | None:
    """Return the leader, else who has the longest log."""
    if state.leader in state.replicas:
        return state.leader
    return max(state.replicas, key=lambda broker: state.replicas[broker].leo, default=None)


def _lost(state: PartitionState, fates: Fates) -> Iterator[str]:
    """Yield the values that were acked and are not on the leader."""
    for value in state.sends:
        if fates.of(LogEntry(-1, value, -1, -1, -1)).is_lost:
            yield value


# JSON


def runs_document(found: RunsDiff) -> dict[str, Any]:
    """Return two runs as JSON has them."""
    parted = found.parted
    return {
        "schema": SCHEMA,
        "same": found.is_same,
        "runs": [
            {"run": str(run.recorded.folder), **run_mapping(run.recorded, run.run)} for run in found.runs
        ],
        "plan": [{"key": part.key, "values": [part.one, part.other]} for part in found.plan],
        "first_difference": None
        if parted is None
        else {
            "line": parted.position + 1,
            "fields": list(parted.fields),
            "events": [event_as_mapping(parted.recorded), event_as_mapping(parted.replayed)],
            "before": [event_as_mapping(event) for event in parted.before],
        },
        "first_telling_difference": [
            None if told is None else {"line": told[0], **(event_as_mapping(told[1]) or {})}
            for told in found.told_apart
        ],
        "partitions": [
            {
                "partition": logs.name,
                "same": logs.is_equal(),
                "brokers": list(logs.brokers),
                "lost": [list(values) for values in logs.lost],
                "rows": [
                    {
                        "offset": row.offset,
                        "values": [None if entry is None else entry.value for entry in row.entries],
                        "leader_epochs": [
                            None if entry is None else entry.leader_epoch for entry in row.entries
                        ],
                        "status": [None if fate is None else fate.status for fate in row.fates],
                    }
                    for row in logs.rows
                ],
            }
            for logs in found.logs
        ],
    }

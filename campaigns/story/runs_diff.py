"""`harrow diff RUN RUN`: compares two recorded runs that differ in a setting, release or seed."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

import yaml

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.plan_file import UnwritablePlanError, campaign_text
from harrow.campaigns.language.spelling import listed, quoted, suggestion
from harrow.campaigns.record.recorded_run import RecordedEvent, RecordedRun
from harrow.campaigns.record.replay import Difference, difference_at, event_as_mapping, first_difference
from harrow.campaigns.record.report import BASE
from harrow.campaigns.story.replica_diff import Fates, RecordFate
from harrow.campaigns.story.run_diff import SCHEMA, DiffError, DiffMoment, RunDiff, diff_run, run_mapping
from harrow.checks.replay.partition_state import LogEntry, PartitionState
from harrow.cluster_model import events as kinds
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.settings import SETTINGS, is_of_coordinators
from harrow.cluster_model.topology import INTERNAL_TOPICS

_KEYS_WITHOUT_EFFECT: Final = re.compile(r"\.note$|\.do(\[\d+\])?\.expect\b")
"""Keys of a script that do not change the events of a run."""
_KEYS_LISTED_LAST: Final = ("faults", "script")
_SECTIONS_WITHOUT_EFFECT: Final = frozenset({"name", "description", "expect", "variants", "found"})
"""Sections of a campaign that do not change the events of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    """What two runs have at an offset of the log that consumers read, and the records' fates.

    If one run has no record there, its fate tells what became of the other run's record in it.
    """

    offset: int
    entries: tuple[LogEntry | None, LogEntry | None]
    fates: tuple[RecordFate, RecordFate]

    def is_equal(self) -> bool:
        """Return whether both runs have a record there, with the same value."""
        one, other = self.entries
        return one is not None and other is not None and one.value == other.value


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsDiff:
    """The logs of a partition's leaders in two runs, and the values that each run lost."""

    name: str
    brokers: tuple[int | None, int | None]
    rows: Sequence[LogRow]
    lost: tuple[tuple[str, ...], tuple[str, ...]]

    def is_equal(self) -> bool:
        """Return whether both logs have the same values, and the same records were lost."""
        return all(row.is_equal() for row in self.rows) and set(self.lost[0]) == set(self.lost[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsDiff:
    """The differences between two runs.

    ``plan`` lists the keys that differ between their campaigns, each with both values; None where a
    campaign lacks the key. ``difference`` is the first difference between the traces. For
    ``telling_difference``, only milestones are compared, and without their times. It has the first
    event that differs and its line, for each run; None for a run that has no further milestone.
    ``service`` lists the service levels that differ, each with both values.
    """

    runs: tuple[RunDiff, RunDiff]
    plan: Sequence[tuple[str, str | None, str | None]]
    difference: Difference | None
    telling_difference: tuple[tuple[int, RecordedEvent] | None, tuple[int, RecordedEvent] | None]
    logs: Sequence[LogsDiff]
    service: Sequence[tuple[str, str | None, str | None]] = ()

    @property
    def is_same(self) -> bool:
        return self.difference is None


def diff_runs(
    one: RecordedRun, other: RecordedRun, at: DiffMoment, partitions: Sequence[str] = ()
) -> RunsDiff:
    """Compare the plans, the traces and the final logs of two runs.

    Raises:
        DiffError: One of the runs has no such moment, or neither run has such a partition.
        RecordError: A run cannot be read.

    """
    runs = (_run(one, at), _run(other, at))
    names = list(dict.fromkeys([*runs[0].state.partitions, *runs[1].state.partitions]))
    for name in partitions:
        if name not in names:
            raise DiffError(
                f"--partition {quoted(name)}: the runs have no such partition"
                f"{suggestion(name, names) or f'; known: {listed(names)}'}"
            )
    position = first_difference(one.lines, other.lines)
    difference = None
    if position is not None:
        other_event = other.events[position] if position < len(other.events) else None
        difference = difference_at(one.events, position, other_event)
    return RunsDiff(
        runs=runs,
        plan=_plan_differences(one, other, runs[0].run.plan, runs[1].run.plan),
        difference=difference,
        telling_difference=_telling_difference(one.events, other.events),
        logs=[_logs(name, runs) for name in partitions or names],
        service=_service(one, other),
    )


def _service(one: RecordedRun, other: RecordedRun) -> list[tuple[str, str | None, str | None]]:
    """Return the service levels that differ, with their names and both values."""
    if one.service is None or other.service is None:
        return []
    sides = dict(one.service.rows()), dict(other.service.rows())
    names = dict.fromkeys([*sides[0], *sides[1]])
    rows = [(name, sides[0].get(name), sides[1].get(name)) for name in names]
    return [row for row in rows if row[1] != row[2]]


def _run(recorded: RecordedRun, at: DiffMoment) -> RunDiff:
    try:
        return diff_run(recorded, at)
    except DiffError as error:
        raise DiffError(f"{recorded.folder}: {error}") from None


def _plan_differences(
    one: RecordedRun, other: RecordedRun, plan: Plan, other_plan: Plan
) -> list[tuple[str, str | None, str | None]]:
    sides = [
        {
            "campaign": used.campaign,
            "variant": recorded.variant or BASE,
            "seed": str(recorded.seed),
            "version": recorded.version,
            **_written_keys(used),
            **(_release_keys(used) if plan.kafka != other_plan.kafka else {}),
        }
        for recorded, used in ((one, plan), (other, other_plan))
    ]
    keys = [key for key in dict.fromkeys([*sides[0], *sides[1]]) if not _KEYS_WITHOUT_EFFECT.search(key)]
    # A different setting says more than the script steps that were written for it.
    keys.sort(key=lambda key: key.startswith(_KEYS_LISTED_LAST))
    return [
        (key, sides[0].get(key), sides[1].get(key)) for key in keys if sides[0].get(key) != sides[1].get(key)
    ]


def _written_keys(plan: Plan) -> dict[str, str]:
    return dict(_flat("", _document(plan)))


def _release_keys(plan: Plan) -> dict[str, str]:
    """Return the behaviours of a plan's release, and its defaults of settings not in the plan."""
    written = {key.rpartition("settings.")[2] for key in _written_keys(plan)}
    has_coordinators = any(topic.name in INTERNAL_TOPICS for topic in plan.running_cluster().topics)
    defaults = {
        f"{setting.name} ({setting.scope}), by default": setting.default(plan.kafka)
        for setting in SETTINGS.values()
        if setting.exists_in(plan.kafka)
        and setting.name not in written
        and (has_coordinators or not is_of_coordinators(setting))
    }
    return dict(_flat("", {"behaviours": plan.behaviour_switches().values(), **defaults}))


def _document(plan: Plan) -> Mapping[str, Any]:
    try:
        document = yaml.safe_load(campaign_text(plan))
    except UnwritablePlanError:
        return {"kafka": plan.kafka, "plan digest": plan.digest()}
    return {key: value for key, value in document.items() if key not in _SECTIONS_WITHOUT_EFFECT}


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


def _telling_difference(
    one: Sequence[RecordedEvent], other: Sequence[RecordedEvent]
) -> tuple[tuple[int, RecordedEvent] | None, tuple[int, RecordedEvent] | None]:
    stories = [
        [(line, event) for line, event in enumerate(events, 1) if _is_milestone(event)]
        for events in (one, other)
    ]
    untimed = [[(event.event, event.fields) for _, event in story] for story in stories]
    position = first_difference(untimed[0], untimed[1])
    if position is None:
        return None, None
    first, second = (story[position] if position < len(story) else None for story in stories)
    return first, second


def _is_milestone(event: RecordedEvent) -> bool:
    kind = kinds.EVENTS.get(event.event)
    return kind is not None and kind.is_milestone


def _logs(name: str, runs: tuple[RunDiff, RunDiff]) -> LogsDiff:
    states = [run.state.partitions.get(name) or PartitionState(name) for run in runs]
    lost = [tuple(run.lost.get(name, ())) for run in runs]
    fates = [Fates(state, values) for state, values in zip(states, lost, strict=True)]
    leading = [_leader_or_longest(state) for state in states]
    logs = [
        states[side].replicas[broker].log if broker is not None else [] for side, broker in enumerate(leading)
    ]
    rows = []
    for offset, (one, other) in enumerate(zip_longest(*logs)):
        row_fates = fates[0].fate(one or other), fates[1].fate(other or one)
        rows.append(LogRow(offset=offset, entries=(one, other), fates=row_fates))
    return LogsDiff(name=name, brokers=(leading[0], leading[1]), rows=rows, lost=(lost[0], lost[1]))


def _leader_or_longest(state: PartitionState) -> int | None:
    """Return the leader, or else the broker with the longest log."""
    if state.leader in state.replicas:
        return state.leader
    return max(state.replicas, key=lambda broker: state.replicas[broker].leo, default=None)


# JSON


def runs_document(diff: RunsDiff) -> dict[str, Any]:
    difference = diff.difference
    return {
        "schema": SCHEMA,
        "same": diff.is_same,
        "runs": [
            {"run": str(run.recorded.folder), **run_mapping(run.recorded, run.run)} for run in diff.runs
        ],
        "plan": [{"key": key, "values": values} for key, *values in diff.plan],
        "service": [{"key": key, "values": values} for key, *values in diff.service],
        "first_difference": None
        if difference is None
        else {
            "line": difference.position + 1,
            "fields": list(difference.fields),
            "events": [event_as_mapping(difference.recorded), event_as_mapping(difference.replayed)],
            "before": [event_as_mapping(event) for event in difference.before],
        },
        "first_telling_difference": [
            None if event is None else {"line": event[0], **(event_as_mapping(event[1]) or {})}
            for event in diff.telling_difference
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
                        "status": [fate.status for fate in row.fates],
                    }
                    for row in logs.rows
                ],
            }
            for logs in diff.logs
        ],
    }

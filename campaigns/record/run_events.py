"""Merges the trace of a run and the history of its clients into one sequence of events.

The result is the same for runs in memory and runs in ``results/``, so that later code need not
distinguish them.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from types import UnionType
from typing import Any, Final

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.record.recorded_findings import as_tuples
from harrow.campaigns.record.recorded_run import TRACE, RecordedRun, RecordError, record_text
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.swarm import draw_for_seed
from harrow.checks.replay.partition_state import ACKED, FAILED, UNKNOWN
from harrow.cluster_model.controller.assignment import partition_assignments
from harrow.cluster_model.events import (
    EVENTS,
    HISTORY_EVENTS,
    ClientEnded,
    ClientPolled,
    ClientSent,
    event_fields,
)
from harrow.cluster_model.history import FAIL, INVOKE, OK, READING_OR_WRITING
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.trace import TraceEvent

HISTORY: Final = "history.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvents:
    """The events of a run.

    ``events`` are the events of the trace and of the clients
    (`harrow.cluster_model.events.HISTORY_EVENTS`), sorted by time. In the same microsecond, events
    of clients come before those of the trace, because a script may have waited for one of them
    before its next step. ``numbers`` are the lines of the events in ``trace.jsonl``, from 1. An
    event of a client has the line of the last trace event before it. ``plan`` is the plan that the
    seed drew, and ``replicas`` are the brokers to which each partition was assigned at the start.
    """

    plan: Plan
    replicas: Mapping[str, tuple[int, ...]]
    events: Sequence[TraceEvent]
    numbers: Sequence[int]

    @property
    def last_number(self) -> int:
        """The number of the last trace event, or 0."""
        return self.numbers[-1] if self.numbers else 0

    @property
    def end_us(self) -> int:
        """The time of the last event, in virtual microseconds."""
        return self.events[-1][0] if self.events else 0

    def trace_event(self, number: int) -> TraceEvent | None:
        """Return the event on a line of ``trace.jsonl``; None if there is no such line."""
        # Among events with the same number, the trace event comes first.
        position = bisect_left(self.numbers, number)
        if position == len(self.numbers) or self.numbers[position] != number:
            return None
        event = self.events[position]
        return None if event[1] in HISTORY_EVENTS else event


def events_of_result(result: RunResult) -> RunEvents:
    evidence = result.evidence
    operations = (operation.as_mapping() for operation in evidence.operations)
    return _merge(result.plan, evidence.trace, operations, evidence.process_names)


def events_of_recorded(recorded: RecordedRun) -> RunEvents:
    """Return the events of a run that was read from ``results/``.

    Raises:
        RecordError: the trace was changed, or has events that this version cannot read, or the
            history is missing or damaged.

    """
    if not recorded.is_whole:
        message = f"its events do not have the digest in run.json ({recorded.trace_digest})"
        raise RecordError(recorded.folder / TRACE, message)
    trace = [_trace_event(recorded, number) for number in range(len(recorded.events))]
    operations = _read_operations(recorded.folder / HISTORY)
    plan = draw_for_seed(recorded.plan, recorded.seed).plan
    return _merge(plan, trace, operations, recorded.processes)


def named_fields(event: TraceEvent) -> dict[str, Any]:
    """Return the fields of an event of the trace or of a client, by name."""
    return dict(zip(event_fields(event[1]), event[2:], strict=True))


def _merge(
    plan: Plan,
    trace: Sequence[TraceEvent],
    operations: Iterable[Mapping[str, Any]],
    names: Mapping[int, str],
) -> RunEvents:
    of_clients = sorted(client_events(operations, names), key=itemgetter(0))
    events: list[TraceEvent] = []
    numbers: list[int] = []
    position = 0
    for number, event in enumerate(trace, 1):
        while position < len(of_clients) and of_clients[position][0] <= event[0]:
            events.append(of_clients[position])
            numbers.append(number - 1)
            position += 1
        events.append(event)
        numbers.append(number)
    events += of_clients[position:]
    numbers += [len(trace)] * (len(of_clients) - position)
    return replace(no_events(plan), events=events, numbers=numbers)


def no_events(plan: Plan) -> RunEvents:
    """Return a run of a plan before its first event."""
    return RunEvents(plan=plan, replicas=partition_assignments(plan.running_cluster()), events=(), numbers=())


def client_events(operations: Iterable[Mapping[str, Any]], names: Mapping[int, str]) -> Iterator[TraceEvent]:
    """Yield the sends, their outcomes and the polls in a history.

    *names* are the names of the clients by their processes.
    """
    for operation in operations:
        at_us = operation["time"] // 1_000
        process = operation["process"]
        client = names.get(process, f"process {process}")
        for micro in operation["value"] if operation["f"] in READING_OR_WRITING else ():
            if micro[0] == "send":
                yield _send_event(at_us, client, operation, micro)
            elif len(micro) > 1:
                for partition, pairs in micro[1].items():
                    records = tuple(
                        (_checked(int, offset), _checked(str | int, value)) for offset, value in pairs
                    )
                    yield (at_us, ClientPolled.name, client, partition, records)


def _send_event(at_us: int, client: str, operation: Mapping[str, Any], micro: Sequence[Any]) -> TraceEvent:
    partition, written = _checked(str, micro[1]), micro[2]
    offset, value = written if isinstance(written, (list, tuple)) else (None, written)
    value = _checked(str | int, value)
    if operation["type"] == INVOKE:
        return (at_us, ClientSent.name, client, partition, value)
    status = {OK: ACKED, FAIL: FAILED}.get(operation["type"], UNKNOWN)
    error = _checked(str | None, operation.get("error"))
    return (at_us, ClientEnded.name, client, partition, value, status, _checked(int | None, offset), error)


def _checked(kind: type[Any] | UnionType, value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{type(value).__name__} is not {kind}")
    return value


def _trace_event(recorded: RecordedRun, position: int) -> TraceEvent:
    event = recorded.events[position]
    unreadable = ""
    if event.event not in EVENTS:
        unreadable = ", which this version does not have"
    elif list(event.fields) != list(event_fields(event.event)):
        unreadable = " with other fields than this version"
    if unreadable:
        message = f"version {recorded.version} wrote `{event.event}`{unreadable}; run its campaign again"
        raise RecordError(recorded.folder / TRACE, message, position + 1)
    return (event.at_us, event.event, *map(as_tuples, event.fields.values()))


def _read_operations(path: Path) -> list[Mapping[str, Any]]:
    # Not `splitlines`: a value may contain Unicode line separators.
    lines = record_text(path, "it has the sends and polls of the clients").removesuffix("\n").split("\n")
    return [_operation(path, number, line) for number, line in enumerate(lines, 1)]


def _operation(path: Path, number: int, line: str) -> Mapping[str, Any]:
    try:
        operation: Mapping[str, Any] = json.loads(line)
        # The operation is interpreted here once, because only here the line of an error is known.
        list(client_events([operation], {}))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        raise RecordError(path, "not an operation of a history", number) from None
    return operation

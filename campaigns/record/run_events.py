"""Everything that happened in a run, in one order: its trace, and its clients' history among it.

A run in memory and one in ``results/`` give the same events, so code that tells of runs needs one form.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from types import UnionType
from typing import Any, Final

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.record.recorded_findings import as_tuples
from harrow.campaigns.record.recorded_run import TRACE, RecordedRun, RecordError
from harrow.campaigns.record.regular_file import regular_text
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
from harrow.cluster_model.trace import TraceEvent

HISTORY: Final = "history.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvents:
    """What happened in a run.

    ``events`` are those of the trace and those of `harrow.cluster_model.events.HISTORY_EVENTS`, in the order of their times: what a
    client was told comes before what the cluster did in the same microsecond, which a script may have
    waited for. ``numbers`` has for each the line of ``trace.jsonl``, from 1; a client's event has that
    of the last trace event before it. ``plan`` has nothing open any more, ``replicas`` are the brokers
    that each partition is assigned to.
    """

    plan: Plan
    replicas: Mapping[str, tuple[int, ...]]
    events: Sequence[TraceEvent]
    numbers: Sequence[int]

    @property
    def last_number(self) -> int:
        """The number of the last event of the trace, 0 when there is none."""
        return self.numbers[-1] if self.numbers else 0

    @property
    def end_us(self) -> int:
        """The time of the last event, in virtual microseconds."""
        return self.events[-1][0] if self.events else 0

    def trace_event(self, number: int) -> TraceEvent | None:
        """Return the event of a line of ``trace.jsonl``, None where there is no such line."""
        # What clients did after it has its number, what they did before has the one before.
        position = bisect_left(self.numbers, number)
        if position == len(self.numbers) or self.numbers[position] != number:
            return None
        found = self.events[position]
        return None if found[1] in HISTORY_EVENTS else found


def events_of_result(result: RunResult) -> RunEvents:
    evidence = result.evidence
    operations = (operation.as_mapping() for operation in evidence.operations)
    return _merged(result.plan, evidence.trace, operations, evidence.process_names)


def events_of_recorded(recorded: RecordedRun) -> RunEvents:
    """Return what happened in a run that was read from ``results/``.

    Raises:
        RecordError: its trace is not the one that was recorded, or has events that this version
            cannot read, or its history is missing or damaged.

    """
    if not recorded.is_whole:
        raise RecordError(
            recorded.folder / TRACE, f"not the trace of run.json (digest {recorded.trace_digest})"
        )
    trace = [_trace_event(recorded, number) for number in range(len(recorded.events))]
    operations = _read_operations(recorded.folder / HISTORY)
    plan = draw_for_seed(recorded.plan, recorded.seed).plan
    return _merged(plan, trace, operations, recorded.processes)


def named_fields(event: TraceEvent) -> dict[str, Any]:
    """Return the fields of an event by their names, those of clients' events too."""
    return dict(zip(event_fields(event[1]), event[2:], strict=True))


def _merged(
    plan: Plan,
    trace: Sequence[TraceEvent],
    operations: Iterable[Mapping[str, Any]],
    names: Mapping[int, str],
) -> RunEvents:
    told = sorted(_client_events(operations, names), key=itemgetter(0))
    events: list[TraceEvent] = []
    numbers: list[int] = []
    position = 0
    for number, event in enumerate(trace, 1):
        while position < len(told) and told[position][0] <= event[0]:
            events.append(told[position])
            numbers.append(number - 1)
            position += 1
        events.append(event)
        numbers.append(number)
    events += told[position:]
    numbers += [len(trace)] * (len(told) - position)
    replicas = partition_assignments(plan.running_cluster())
    return RunEvents(plan=plan, replicas=replicas, events=events, numbers=numbers)


def _client_events(operations: Iterable[Mapping[str, Any]], names: Mapping[int, str]) -> Iterator[TraceEvent]:
    for operation in operations:
        at_us = operation["time"] // 1_000
        process = operation["process"]
        client = names.get(process, f"process {process}")
        for micro in operation["value"] if operation["f"] in READING_OR_WRITING else ():
            if micro[0] == "send":
                yield _send_event(at_us, client, operation, micro)
            elif len(micro) > 1:
                for partition, pairs in micro[1].items():
                    records = tuple((_is_a(int, offset), _is_a(str | int, value)) for offset, value in pairs)
                    yield (at_us, ClientPolled.name, client, partition, records)


def _send_event(at_us: int, client: str, operation: Mapping[str, Any], micro: Sequence[Any]) -> TraceEvent:
    partition, written = _is_a(str, micro[1]), micro[2]
    offset, value = written if isinstance(written, (list, tuple)) else (None, written)
    value = _is_a(str | int, value)
    if operation["type"] == INVOKE:
        return (at_us, ClientSent.name, client, partition, value)
    status = {OK: ACKED, FAIL: FAILED}.get(operation["type"], UNKNOWN)
    error = _is_a(str | None, operation.get("error"))
    return (at_us, ClientEnded.name, client, partition, value, status, _is_a(int | None, offset), error)


def _is_a(kind: type[Any] | UnionType, value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{type(value).__name__} is no {kind}")
    return value


def _trace_event(recorded: RecordedRun, position: int) -> TraceEvent:
    event = recorded.events[position]
    unreadable = ""
    if event.event not in EVENTS:
        unreadable = ", an event that this one does not know"
    elif list(event.fields) != list(event_fields(event.event)):
        unreadable = " with other fields than this one reads"
    if unreadable:
        message = f"version {recorded.version} wrote `{event.event}`{unreadable}; run its campaign again"
        raise RecordError(recorded.folder / TRACE, message, position + 1)
    return (event.at_us, event.event, *map(as_tuples, event.fields.values()))


def _read_operations(path: Path) -> list[Mapping[str, Any]]:
    try:
        # Not `splitlines`: a value may have what Unicode takes for the end of a line.
        lines = regular_text(path).removesuffix("\n").split("\n")
    except FileNotFoundError:
        raise RecordError(path, "is missing: who acked and read what is in it") from None
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(
            path, f"cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}"
        ) from None
    return [_operation(path, number, line) for number, line in enumerate(lines, 1)]


def _operation(path: Path, number: int, line: str) -> Mapping[str, Any]:
    try:
        found: Mapping[str, Any] = json.loads(line)
        # What the operation says is taken apart once here, so that damage has its line.
        list(_client_events([found], {}))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        raise RecordError(path, "not an operation of a history", number) from None
    return found

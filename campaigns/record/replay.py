"""Runs a recorded run again, and says where the two part."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from harrow.campaigns.language.spelling import run_name
from harrow.campaigns.record.recorded_run import TRACE, RecordedEvent, RecordedRun, RecordError
from harrow.campaigns.record.results_folder import trace_line
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.version import another_harrow, model_digest, version
from harrow.cluster_model.trace import as_mapping

SCHEMA: Final = "harrow.replay/1"
BEFORE_MAX: Final = 5
"""How many events before the difference are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first event that is not the same; a side is None where its trace has ended.

    ``position`` counts from 0, ``fields`` are those that differ, ``before`` the events that led there.
    """

    position: int
    recorded: RecordedEvent | None
    replayed: RecordedEvent | None
    fields: tuple[str, ...]
    before: tuple[RecordedEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A recorded run and the same run today; without a ``difference`` their traces are the same."""

    recorded: RecordedRun
    result: RunResult
    difference: Difference | None

    def is_same(self) -> bool:
        """Return whether the traces have the same digest."""
        return self.recorded.trace_digest == self.result.trace_digest

    def other_harrow(self) -> str | None:
        """Return which other harrow recorded the run, if its model may run it otherwise."""
        return another_harrow(self.recorded.version, self.recorded.model)

    def changes(self) -> list[tuple[str, str, str]]:
        """Return what else is not as it was recorded: what, then, now."""
        pairs = (
            ("plan digest", self.recorded.plan_digest, self.result.plan_digest()),
            ("verdict", self.recorded.verdict, self.result.verdict.status),
        )
        return [(name, then, now) for name, then, now in pairs if then != now]


def replay(recorded: RecordedRun) -> Replay:
    """Run a recorded run again and compare the traces.

    Raises:
        RecordError: the trace on disk is not the one that was recorded.

    """
    result = run_plan(recorded.plan, recorded.seed)
    lines = [trace_line(event).rstrip("\n") for event in result.evidence.trace]
    position = first_difference(recorded.lines, lines)
    same = result.trace_digest == recorded.trace_digest
    if not recorded.is_whole:
        raise _damage(recorded, position if same else None)
    if same or position is None:
        return Replay(recorded=recorded, result=result, difference=None)
    trace = result.evidence.trace
    now = _as_recorded(as_mapping(trace[position])) if position < len(trace) else None
    return Replay(recorded=recorded, result=result, difference=difference_at(recorded.events, position, now))


def replay_document(found: Replay) -> dict[str, Any]:
    recorded, result, difference = found.recorded, found.result, found.difference
    return {
        "schema": SCHEMA,
        "same": found.is_same(),
        "run": str(recorded.folder),
        "campaign": result.plan.campaign,
        "variant": recorded.variant,
        "seed": recorded.seed,
        "version": _both(recorded.version, version()),
        "model": _both(recorded.model, model_digest()),
        "plan_digest": _both(recorded.plan_digest, result.plan_digest()),
        "trace_digest": _both(recorded.trace_digest, result.trace_digest),
        "trace_events": _both(len(recorded.events), len(result.evidence.trace)),
        "verdict": _both(recorded.verdict, result.verdict.status),
        "first_difference": None
        if difference is None
        else {
            "line": difference.position + 1,
            "fields": list(difference.fields),
            "recorded": event_as_mapping(difference.recorded),
            "replayed": event_as_mapping(difference.replayed),
            "before": [event_as_mapping(event) for event in difference.before],
        },
    }


def replayed_name(found: Replay) -> str:
    """Return which run it is, as in ``loss[0.11], seed 3``."""
    return f"{run_name(found.result.plan.campaign, found.recorded.variant)}, seed {found.recorded.seed}"


def _both(recorded: Any, replayed: Any) -> dict[str, Any]:
    return {"recorded": recorded, "replayed": replayed}


def event_as_mapping(event: RecordedEvent | None) -> dict[str, Any] | None:
    """Return an event as a line of ``trace.jsonl`` has it."""
    return None if event is None else {"at_us": event.at_us, "event": event.event, **event.fields}


def first_difference(one: Sequence[Any], other: Sequence[Any]) -> int | None:
    """Return the first position at which two traces are not the same, from 0; None if there is none."""
    pairs = enumerate(zip_longest(one, other))
    return next((position for position, (then, now) in pairs if then != now), None)


def difference_at(recorded: Sequence[RecordedEvent], position: int, now: RecordedEvent | None) -> Difference:
    """Return what is different at a position where the other trace has *now*."""
    then = recorded[position] if position < len(recorded) else None
    return Difference(
        position=position,
        recorded=then,
        replayed=now,
        fields=_fields_that_differ(then, now),
        before=tuple(recorded[max(0, position - BEFORE_MAX) : position]),
    )


def _damage(recorded: RecordedRun, position: int | None) -> RecordError:
    """Return what is wrong with a trace that is not the recorded one.

    Where the run comes out as it was recorded, it tells which line is wrong.
    """
    file = recorded.folder / TRACE
    if position is None:
        message = f"its events are not those that run.json has the digest of ({recorded.trace_digest})"
        return RecordError(file, message)
    if position >= len(recorded.lines):
        message = "the events after this line are missing" if position else "all events are missing"
        return RecordError(file, message, max(position, 1))
    return RecordError(file, "this line has been changed since the run was recorded", position + 1)


def _as_recorded(event: dict[str, Any]) -> RecordedEvent:
    # As JSON has it, so that both sides show a value in the same way.
    fields = json.loads(json.dumps(event))
    return RecordedEvent(at_us=fields.pop("at_us"), event=fields.pop("event"), fields=fields)


def _fields_that_differ(then: RecordedEvent | None, now: RecordedEvent | None) -> tuple[str, ...]:
    before, after = event_as_mapping(then), event_as_mapping(now)
    if before is None or after is None:
        return ()
    names = dict.fromkeys((*before, *after))
    return tuple(name for name in names if before.get(name, ...) != after.get(name, ...))

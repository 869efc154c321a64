"""Repeats a recorded run, and finds the first difference between the two traces."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import zip_longest
from typing import Any, Final

from harrow.campaigns.language.spelling import run_name
from harrow.campaigns.record.recorded_run import TRACE, RecordedEvent, RecordedRun, RecordError
from harrow.campaigns.record.report import subject
from harrow.campaigns.record.results_folder import trace_line
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.version import another_harrow, model_digest, version
from harrow.checks.finding import RuleResult
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.trace import as_mapping

SCHEMA: Final = "harrow.replay/1"
BEFORE_MAX: Final = 5
"""The number of events that are shown before the difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first event that differs. ``recorded`` or ``replayed`` is None if that trace has ended.

    ``position`` is the event's index in the traces, ``fields`` are the names of the fields that
    differ, and ``before`` has the last events that are equal.
    """

    position: int
    recorded: RecordedEvent | None
    replayed: RecordedEvent | None
    fields: tuple[str, ...]
    before: tuple[RecordedEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferentAnswer:
    """The first answer to a real client that is not as recorded.

    ``request`` describes the request. ``recorded`` and ``replayed`` describe the answers by their
    lengths and checksums, and small ones also by the first field that differs. None means that
    there was none at that moment.
    """

    at_us: int
    request: str
    recorded: str | None
    replayed: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedAnswers:
    """The number of answers to real clients in a repeated run, and the first that differs."""

    count: int
    difference: DifferentAnswer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A recorded run and its repetition. Without a ``difference``, their traces are equal.

    A run with real clients has ``answers`` to them.
    """

    recorded: RecordedRun
    result: RunResult
    difference: Difference | None
    answers: ReplayedAnswers | None = None

    def is_same(self) -> bool:
        """Return whether the traces have the same digest, and real clients got the same answers."""
        has_same_answers = self.answers is None or self.answers.difference is None
        return has_same_answers and self.recorded.trace_digest == self.result.trace_digest

    def other_harrow(self) -> str | None:
        """Name the version of harrow that recorded the run, if its model may run it differently."""
        return another_harrow(self.recorded.version, self.recorded.model)

    def changes(self) -> list[tuple[str, str, str]]:
        """Return the differences outside the traces: the name, the recorded and the new value."""
        pairs = (
            ("plan digest", self.recorded.plan_digest, self.result.plan_digest()),
            ("verdict", self.recorded.verdict, self.result.verdict.status),
        )
        rules = {**self.recorded.rules, **self.result.verdict.rules}
        findings = (
            (rule, _found(self.recorded.rules.get(rule)), _found(self.result.verdict.rules.get(rule)))
            for rule in (rules if self.recorded.rules else ())
        )
        return [(name, then, now) for name, then, now in (*pairs, *findings) if then != now]


def _found(judged: RuleResult | None) -> str:
    """Return the status of a rule and the subjects of its findings."""
    if judged is None:
        return "not judged"
    subjects = sorted({subject(finding) for finding in judged.findings})
    return f"{judged.status} ({', '.join(subjects)})" if subjects else judged.status


def replay(recorded: RecordedRun) -> Replay:
    """Run a recorded run again and compare the traces.

    Raises:
        RecordError: The trace on disk is not the one that was recorded.

    """
    return compared(recorded, run_plan(recorded.plan, recorded.seed))


def compared(recorded: RecordedRun, result: RunResult, answers: ReplayedAnswers | None = None) -> Replay:
    """Compare the trace of a recorded run with that of its repetition.

    Raises:
        RecordError: The trace on disk is not the one that was recorded.

    """
    lines = [trace_line(event).rstrip("\n") for event in result.evidence.trace]
    position = first_difference(recorded.lines, lines)
    same = result.trace_digest == recorded.trace_digest
    if not recorded.is_whole:
        raise _damage(recorded, position if same else None)
    if same or position is None:
        return Replay(recorded=recorded, result=result, difference=None, answers=answers)
    trace = result.evidence.trace
    now = _as_recorded(as_mapping(trace[position])) if position < len(trace) else None
    difference = difference_at(recorded.events, position, now)
    return Replay(recorded=recorded, result=result, difference=difference, answers=answers)


def replay_document(repetition: Replay) -> dict[str, Any]:
    recorded, result, difference = repetition.recorded, repetition.result, repetition.difference
    return {
        "schema": SCHEMA,
        "same": repetition.is_same(),
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
        "answers": None if repetition.answers is None else asdict(repetition.answers),
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


def replayed_name(repetition: Replay) -> str:
    """Return the name of the run, as in ``loss[0.11], seed 3``."""
    recorded = repetition.recorded
    return f"{run_name(repetition.result.plan.campaign, recorded.variant)}, seed {recorded.seed}"


def _both(recorded: Any, replayed: Any) -> dict[str, Any]:
    return {"recorded": recorded, "replayed": replayed}


def event_as_mapping(event: RecordedEvent | None) -> dict[str, Any] | None:
    """Return an event as in ``trace.jsonl``."""
    return None if event is None else {"at_us": event.at_us, "event": event.event, **event.fields}


def first_difference(one: Sequence[Any], other: Sequence[Any]) -> int | None:
    """Return the first position, from 0, at which two traces differ; None if they are equal."""
    pairs = enumerate(zip_longest(one, other))
    return next((position for position, (then, now) in pairs if then != now), None)


def difference_at(recorded: Sequence[RecordedEvent], position: int, now: RecordedEvent | None) -> Difference:
    """Return the difference at a position. The new trace has the event *now* there, or None."""
    then = recorded[position] if position < len(recorded) else None
    return Difference(
        position=position,
        recorded=then,
        replayed=now,
        fields=_fields_that_differ(then, now),
        before=tuple(recorded[max(0, position - BEFORE_MAX) : position]),
    )


def _damage(recorded: RecordedRun, position: int | None) -> RecordError:
    """Return the error for a damaged trace.

    *position* is the index of the damaged line. It is known only if the repetition has the recorded
    digest.
    """
    file = recorded.folder / TRACE
    if position is None:
        return RecordError(file, f"its events do not have the digest in run.json ({recorded.trace_digest})")
    if position >= len(recorded.lines):
        message = "the events after this line are missing" if position else "all events are missing"
        return RecordError(file, message, max(position, 1))
    return RecordError(file, "this line has been changed since the run was recorded", position + 1)


def _as_recorded(event: dict[str, Any]) -> RecordedEvent:
    # The event is converted to JSON and back, so that its values look like recorded ones.
    fields = json.loads(json.dumps(event))
    return RecordedEvent(at_us=fields.pop("at_us"), event=fields.pop("event"), fields=fields)


def _fields_that_differ(then: RecordedEvent | None, now: RecordedEvent | None) -> tuple[str, ...]:
    before, after = event_as_mapping(then), event_as_mapping(now)
    if before is None or after is None:
        return ()
    names = dict.fromkeys((*before, *after))
    return tuple(name for name in names if before.get(name, ...) != after.get(name, ...))

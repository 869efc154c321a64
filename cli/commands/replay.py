"""`harrow replay`: runs a recorded run again, and compares the two traces."""

import json
import shlex
from collections.abc import Iterator
from typing import Final

from rich.console import Console

from harrow.campaigns.language.spelling import counted, printable
from harrow.campaigns.record.recorded_run import (
    MODEL,
    RecordedEvent,
    RecordedRun,
    find_run,
    read_run,
)
from harrow.campaigns.record.replay import Difference, Replay, replay, replay_document, replayed_name
from harrow.campaigns.run.run_result import SERVED
from harrow.cli import exit_code
from harrow.cli.ci.suite import REPRODUCE, Case, Status, Suite
from harrow.cli.console import plain_text, show, unbroken
from harrow.cli.interrupts import Interrupts
from harrow.cli.requests.results import ReplayRequest
from harrow.cli.session import Refusal, publish
from harrow.cli.text import Text
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

_SIDE_WIDTH: Final = 10


def session(request: ReplayRequest) -> int:
    with Interrupts():
        recorded = read_run(find_run(request.run, request.results))
        comparison = _replayed(recorded)

        def show_lines(console: Console) -> None:
            if not (request.quiet and comparison.is_same()):
                show(console, *_lines(comparison))

        publish(
            request,
            document=lambda: replay_document(comparison),
            suites=lambda: [_suite(comparison)],
            noun="replay",
            show=show_lines,
        )
    return exit_code.OK if comparison.is_same() else exit_code.BROKEN


def _replayed(recorded: RecordedRun) -> Replay:
    if recorded.target == MODEL:
        return replay(recorded)
    if recorded.target == SERVED:
        from harrow.live_cluster.serve.replay.served_replay import replay_served

        return replay_served(recorded)
    kind = printable(recorded.target)
    raise Refusal(f"nothing was run: {kind} is not the model, so this run cannot be repeated")


def _suite(comparison: Replay) -> Suite:
    """Return a suite with one case. It fails if the trace differs from the recorded trace."""
    recorded = comparison.recorded
    reproduce = shlex.join(["harrow", "replay", str(recorded.folder)])
    message = "the same trace as recorded"
    if not comparison.is_same():
        line = (
            ""
            if comparison.difference is None
            else f" at line {comparison.difference.position + 1} of trace.jsonl"
        )
        message = f"DIFFERENT from the recorded run{line}"
    case = Case(
        name="trace",
        status=Status.PASSED if comparison.is_same() else Status.FAILED,
        message=message,
        details=tuple(plain_text(*_lines(comparison)).strip().splitlines()),
        properties=(
            ("seed", str(recorded.seed)),
            (REPRODUCE, reproduce),
            ("trace_digest", recorded.trace_digest),
            ("version", recorded.version),
        ),
    )
    return Suite(name=replayed_name(comparison), cases=(case,), summary=message, reproduce=reproduce)


def _lines(comparison: Replay) -> Iterator[Text]:
    if comparison.is_same():
        notes = [
            f"the {name} was {printable(then)}, is {now} now" for name, then, now in comparison.changes()
        ]
        same = f"the same {counted(len(comparison.recorded.events), 'event')} as recorded"
        if comparison.answers is not None:
            same += f", and the same {counted(comparison.answers.count, 'answer')} to clients"
        words = "; ".join(filter(None, [same, *notes, _other_harrow(comparison)]))
        yield unbroken(Text(f"{replayed_name(comparison)}: {words} ({comparison.result.trace_digest})"))
        return
    yield unbroken(Text(f"{replayed_name(comparison)}: DIFFERENT from the recorded run", "bold red"))
    if other := _other_harrow(comparison):
        yield unbroken(Text(f"  {other}, and its model may differ"))
    digests = ("trace digest", comparison.recorded.trace_digest, comparison.result.trace_digest)
    for name, then, now in (digests, *comparison.changes()):
        yield unbroken(Text(f"  {name}: recorded {then}, now {now}"))
    yield from _different_answer(comparison)
    unchanged = {"plan digest"} - {name for name, _, _ in comparison.changes()}
    unchanged |= set() if other else {"model"}
    if unchanged:
        verb = "is" if len(unchanged) == 1 else "are"
        yield unbroken(Text(f"  the {' and the '.join(sorted(unchanged))} {verb} the same"))
    if comparison.difference is None:
        if comparison.recorded.trace_digest != comparison.result.trace_digest:
            yield unbroken(Text("  every line of the trace is the same, but the digests differ"))
    else:
        yield from _difference(comparison.difference)


def _different_answer(comparison: Replay) -> Iterator[Text]:
    """Show the first answer to a client that differs, which may be before the trace does."""
    different = None if comparison.answers is None else comparison.answers.difference
    if different is None:
        return
    at_s = different.at_us / US_PER_SECOND
    yield unbroken(Text(f"  the answer to {different.request} differs, at {at_s:.6f}s:"))
    for side, answer, style in (
        ("recorded", different.recorded, "red"),
        ("now", different.replayed, "green"),
    ):
        yield unbroken(Text.assemble(f"    {side:{_SIDE_WIDTH}}", (answer or "none at that moment", style)))


def _other_harrow(comparison: Replay) -> str:
    return printable(comparison.other_harrow() or "")


def _difference(difference: Difference) -> Iterator[Text]:
    yield unbroken(Text(f"  they differ from line {difference.position + 1} of trace.jsonl:"))
    margin = f"    {'':{_SIDE_WIDTH}}"
    for event in difference.before:
        yield unbroken(Text(f"{margin}{_event(event)}", "dim"))
    sides = (("recorded", difference.recorded, "red"), ("now", difference.replayed, "green"))
    for side, shown, style in sides:
        text = "the trace has ended" if shown is None else _event(shown)
        yield unbroken(Text.assemble(f"    {side:{_SIDE_WIDTH}}", (text, style)))
    if difference.fields:
        yield unbroken(Text(f"{margin}different: {', '.join(map(printable, difference.fields))}"))


def _event(event: RecordedEvent) -> str:
    """Return an event with its time to the microsecond, and all its fields."""
    fields = (
        f"{printable(name)}={json.dumps(value, ensure_ascii=True, separators=(',', ':'))}"
        for name, value in event.fields.items()
    )
    return " ".join([f"{event.at_us / US_PER_SECOND:.6f}s", printable(event.event), *fields])

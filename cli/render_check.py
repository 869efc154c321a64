"""The verdict on a history for people: a line for each anomaly that was seen, and why."""

from collections.abc import Iterator
from typing import Final

from rich.console import Console, RenderableType
from rich.text import Text

from campaigns.check_report import HistorySize
from campaigns.report import place, subject
from checks.finding import HELD, INCONCLUSIVE, Finding, RuleResult, Verdict
from checks.stated_settings import StatedSettings
from cli.console import show
from cli.layout import DIM, indented
from cli.render_run import STYLES, marks
from cli.render_story import UNDECIDED, story_of

_FINDINGS_SHOWN: Final = 3
_FINDINGS_SHOWN_VERBOSE: Final = 50


def show_verdict(
    console: Console,
    verdict: Verdict,
    size: HistorySize,
    name: str,
    settings: StatedSettings,
    *,
    quiet: bool,
    verbose: bool,
) -> None:
    """Print a verdict; *quiet* only what was violated, *verbose* more findings of each kind."""
    seen = {rule: judged for rule, judged in verdict.rules.items() if judged.findings}
    if quiet:
        seen = {rule: judged for rule, judged in seen.items() if _is_broken(judged)}
        if not seen:
            return
    show(console, Text(name, "bold"), indented(Text(_size(size), DIM), 2))
    shown_max = _FINDINGS_SHOWN_VERBOSE if verbose else _FINDINGS_SHOWN
    for rule, judged in seen.items():
        mark = marks(console)[judged.status]
        count = len(judged.findings)
        times = "" if count == 1 else f" ({count} times)"
        line = Text.assemble((f"{mark} {rule}", STYLES[judged.status]), f"{times}: {_judgement(judged)}")
        show(console, Text(), indented(line, 2))
        for finding in _worst_first(judged.findings)[:shown_max]:
            show(console, *_finding(finding))
        if count > shown_max:
            more = "--format json has all" if verbose else "--verbose shows more, --format json all"
            show(console, indented(Text(f"and {count - shown_max} more; {more}", DIM)))
    show(console, *_conclusion(verdict, settings))


def _finding(finding: Finding) -> Iterator[RenderableType]:
    value = "" if finding.value is None else f"{subject(finding)}, "
    yield indented(Text(f"{value}{place(finding)}:", "bold"))
    yield from story_of(finding)


def _worst_first(findings: tuple[Finding, ...]) -> list[Finding]:
    return sorted(findings, key=lambda finding: finding.permitted_by is not None)


def _is_broken(judged: RuleResult) -> bool:
    return any(finding.permitted_by is None for finding in judged.findings)


def _judgement(judged: RuleResult) -> str:
    if judged.status == INCONCLUSIVE:
        return "undecided"
    permitted_by = list(dict.fromkeys(f.permitted_by for f in judged.findings if f.permitted_by is not None))
    broken = sum(finding.permitted_by is None for finding in judged.findings)
    if not broken:
        return f"permitted by {' and '.join(permitted_by)}"
    beside = f"; {len(judged.findings) - broken} permitted by {' and '.join(permitted_by)}"
    return f"despite {judged.promise}{beside if permitted_by else ''}"


def _size(size: HistorySize) -> str:
    return (
        f"{size.lines} lines, {size.processes} processes, {size.partitions} partitions: "
        f"{size.sent} sent, {size.acked} acked, {size.polled} polled"
    )


def _conclusion(verdict: Verdict, settings: StatedSettings) -> Iterator[RenderableType]:
    yield Text()
    for reason in verdict.reasons:
        yield Text.assemble(("undecided: ", UNDECIDED), reason)
    held = sum(judged.status == HELD for judged in verdict.rules.values())
    yield Text.assemble(
        (verdict.status, STYLES[verdict.status]), f": {held} of {len(verdict.rules)} rules held"
    )
    if settings.is_strictest() and any(_is_broken(judged) for judged in verdict.rules.values()):
        yield Text("Judged as if everything that Kafka can promise was asked for; --set says what was.", DIM)

"""Renders the verdict on a history for people: each anomaly with its cause."""

from collections.abc import Iterator
from typing import Final

from rich.console import Console, RenderableType

from harrow.campaigns.language.spelling import counted
from harrow.campaigns.record.check_report import HistorySize
from harrow.campaigns.record.report import place, subject
from harrow.checks.finding import HELD, INCONCLUSIVE, SKIPPED, RuleResult, Verdict
from harrow.checks.stated_settings import StatedSettings
from harrow.cli.console import show
from harrow.cli.render.figures import grouped
from harrow.cli.render.layout import DIM, STYLES, UNDECIDED, indented, marks
from harrow.cli.render.story import story_of
from harrow.cli.text import Text

_FINDINGS_SHOWN: Final = 3
_FINDINGS_SHOWN_VERBOSE: Final = 50
_NOT_TRIED_SHOWN: Final = 4


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
    """Print a verdict: with *quiet* only violations, with *verbose* more findings for each rule."""
    rules = {rule: judged for rule, judged in verdict.rules.items() if judged.findings}
    if quiet:
        rules = {rule: judged for rule, judged in rules.items() if judged.broken}
        if not rules:
            return
    processes = "1 process" if size.processes == 1 else f"{size.processes} processes"
    sizes = (
        f"{counted(size.lines, 'line')}, {processes}, "
        f"{counted(size.partitions, 'partition')}: {size.sent} sent, {size.acked} acked, {size.polled} polled"
    )
    show(console, Text(name, "bold"), indented(sizes, 2, DIM))
    shown_max = _FINDINGS_SHOWN_VERBOSE if verbose else _FINDINGS_SHOWN
    for rule, judged in rules.items():
        mark = marks(console)[judged.status]
        count = judged.count
        times = "" if count == 1 else f" ({grouped(count)} times)"
        line = Text.assemble((f"{mark} {rule}", STYLES[judged.status]), f"{times}: {_judgement(judged)}")
        show(console, Text(), indented(line, 2))
        for finding in sorted(judged.findings, key=lambda each: each.permitted_by is not None)[:shown_max]:
            value = "" if finding.value is None else f"{subject(finding)}, "
            heading = indented(f"{value}{place(finding)}:", style="bold")
            show(console, heading, *story_of(finding))
        if count > shown_max:
            more = "--format json shows more" if verbose else "--verbose shows more, --format json even more"
            if count == len(judged.findings):
                more = (
                    "--format json shows all" if verbose else "--verbose shows more, --format json shows all"
                )
            show(console, indented(f"and {grouped(count - shown_max)} more; {more}", style=DIM))
    show(console, *_conclusion(verdict, settings, verbose=verbose))


def _judgement(judged: RuleResult) -> str:
    if judged.status == INCONCLUSIVE:
        return "undecided"
    permitted_by = list(dict.fromkeys(f.permitted_by for f in judged.findings if f.permitted_by is not None))
    if not judged.broken:
        return f"permitted by {' and '.join(permitted_by)}"
    permitted_too = f"; {grouped(judged.count - judged.broken)} permitted by {' and '.join(permitted_by)}"
    return f"despite {judged.promise}{permitted_too if permitted_by else ''}"


def _conclusion(verdict: Verdict, settings: StatedSettings, *, verbose: bool) -> Iterator[RenderableType]:
    yield Text()
    for reason in verdict.reasons:
        yield Text.assemble(("undecided: ", UNDECIDED), reason)
    held = sum(judged.status == HELD for judged in verdict.rules.values())
    skipped = [rule for rule, judged in verdict.rules.items() if judged.status == SKIPPED]
    judged = len(verdict.rules) - len(skipped)
    yield Text.assemble(
        (verdict.status, STYLES[verdict.status]), f": {held} of {judged} rules held" if judged else ""
    )
    if skipped:
        are_named = verbose or len(skipped) <= _NOT_TRIED_SHOWN
        rules = ", ".join(skipped) if are_named else f"{counted(len(skipped), 'rule')}; --verbose names them"
        yield Text(f"not tried by this history: {rules}", DIM)
    if settings.is_strictest() and any(judged.broken for judged in verdict.rules.values()):
        yield Text("harrow assumed Kafka's strictest settings; state yours with --set.", DIM)

"""Renders the story of one run for people: findings with causes, and missed expectations."""

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType

from harrow.campaigns.language.units import duration_text, fields_text
from harrow.campaigns.record.campaign_copy import expect_line
from harrow.campaigns.record.phrases import epochs_text, prevention_lines, sentence, shortened, values_text
from harrow.campaigns.record.report import (
    OTHERWISE,
    UNEXPECTED,
    FindingGroup,
    anomalies,
    in_short,
    others_of,
    place,
    reason,
)
from harrow.campaigns.run.run_result import RunResult
from harrow.checks.causes.story import seconds
from harrow.checks.finding import HELD, SKIPPED, Finding, worst_first
from harrow.checks.link import Link
from harrow.cli.commands.run_tally import FinishedRun
from harrow.cli.console import unbroken
from harrow.cli.render.layout import DIM, FAILED, INDENT, UNDECIDED, columns, indented, terms
from harrow.cli.render.service import service_lines
from harrow.cli.text import Text

if TYPE_CHECKING:
    from rich.table import Table

_FINDINGS_SHOWN: Final = 3


def detail_of(run: FinishedRun) -> str:
    """Return why a run has its verdict. The story has missed expectations, so they are left out."""
    result = run.result
    is_miss = run.outcome in (UNEXPECTED, OTHERWISE) and bool(result.missed) and result.difference is None
    return in_short(result) if is_miss else reason(result)


def short_story(run: FinishedRun) -> Iterator[RenderableType]:
    """Yield why a run failed: one story for each broken promise, because others are similar."""
    for anomaly in anomalies(run.result):
        if anomaly.permitted_by is None:
            yield from _findings(anomaly, shown_max=1, everything=False)
    yield from _release_line(run)
    difference = run.result.difference
    if difference is None or run.outcome == UNEXPECTED:
        yield from _missed_and_undecided(run, shown=detail_of(run))
    elif difference.step is not None:
        # The trial only showed that the script gets further, so other causes are possible.
        yield from _expectations(run)
    if run.result.drawn:
        drawn = ", ".join(f"{name}={value}" for name, value in run.result.drawn)
        yield indented(terms([(Text("drawn    ", DIM), drawn)], gap=1))
    yield from _commands_and_files(run)


def chosen_story(run: FinishedRun, rules: Collection[str]) -> Iterator[RenderableType]:
    """Yield a story for each broken promise and each anomaly of *rules*, and the service levels."""
    for anomaly in anomalies(run.result):
        if anomaly.permitted_by is None or anomaly.rule in rules:
            yield from _findings(anomaly, shown_max=1, everything=False)
    yield from _missed_and_undecided(run)
    for part in service_lines(run.result.service):
        yield indented(part)
    yield Text()
    yield from _commands_and_files(run)


def whole_story(run: FinishedRun) -> Iterator[RenderableType]:
    """Yield the details of a run. They fill a screen or two."""
    result = run.result
    yield indented(
        f"Kafka {result.plan.kafka}, seed {result.seed}, {result.simulated_us / 1_000_000:.3f} s of cluster time, "
        f"{result.events} steps, trace {result.trace_digest}",
        style=DIM,
    )
    for anomaly in anomalies(result):
        yield from _findings(anomaly, shown_max=_FINDINGS_SHOWN, everything=True)
    yield from _release_line(run)
    yield from _missed_and_undecided(run)
    for part in service_lines(result.service):
        yield indented(part)
    for table in _detail_tables(result):
        if table.row_count:
            yield Text()
            yield indented(table)
    yield Text()
    yield from _commands_and_files(run)


def _findings(anomaly: FindingGroup, *, shown_max: int, everything: bool) -> Iterator[RenderableType]:
    incidents = anomaly.incidents()
    for incident in incidents[:shown_max]:
        finding = incident.first
        value = "" if finding.value is None else f" {finding.value}"
        others = f", {others_of(incident)}" if len(incident.findings) > 1 else ""
        yield indented(Text.assemble((f"{anomaly.rule}{value}", "bold"), f", {place(finding)}{others}:"))
        yield from story_of(finding, everything=everything)
    rest = sum(len(incident.findings) for incident in incidents[shown_max:])
    if rest:
        yield indented(f"and {rest} more of {anomaly.rule} (report.md has all)", style=DIM)


def story_of(finding: Finding, *, everything: bool = False) -> Iterator[RenderableType]:
    """Yield the chain that led to a finding, and what would have prevented the finding.

    Without *everything*, a long chain is shortened to its turning points.
    """
    chain = finding.chain if everything else shortened(finding.chain)
    yield indented(chain_table(chain), INDENT + 2)
    yield from prevention_of(finding, INDENT + 2)


def prevention_of(finding: Finding, left: int) -> Iterator[RenderableType]:
    """Yield what would have prevented a finding. Commands are on lines that are not wrapped."""
    for line in prevention_lines(finding):
        indent = left + 2 * line.depth
        if line.is_command:
            yield unbroken(Text(f"{' ' * indent}{line.text}"))
        else:
            yield indented(Text(line.text, DIM if line.depth > 1 else ""), indent)


def chain_table(chain: Iterable[Link]) -> "Table":
    """Return the links of a chain, with their times in a column. A dash stands for no time."""
    rows = (("-" if link.at_us is None else seconds(link.at_us), Text(sentence(link))) for link in chain)
    return terms(rows, style=DIM, gap=1, justify="right")


def _release_line(run: FinishedRun) -> Iterator[RenderableType]:
    plan = run.result.plan
    if plan.written_for is not None and (run.result.missed or run.result.verdict.reasons):
        yield indented(Text(f"written for {plan.written_for}, run as of Kafka {plan.kafka}", DIM))


def _expectations(run: FinishedRun) -> Iterator[RenderableType]:
    """Yield the missed expectations of the campaign."""
    result = run.result
    is_failure = result.plan.written_for is None or run.outcome == UNEXPECTED
    word, style = ("missed", FAILED) if is_failure else (OTHERWISE, DIM)
    for line, missed in groupby(result.missed, key=lambda each: each.line):
        place = line or expect_line(run.file, result.plan.variant)
        where = f"{run.file}:{place}" if place else str(run.file)
        first, *others = (each.message for each in missed)
        yield indented(Text.assemble((f"{word} ", style), f"{where}: {first}"))
        for message in others:
            yield indented(message, INDENT + len(word) + 1)


def _missed_and_undecided(run: FinishedRun, *, shown: str = "") -> Iterator[RenderableType]:
    """Yield missed expectations, and why the run is undecided, but not the reason *shown* first."""
    yield from _expectations(run)
    result = run.result
    for step in result.timed_out_steps:
        where = f"{run.file}:{step.line}" if step.line else f"step {step.number}"
        waited = f"went on after {duration_text(step.waited_us)} without its condition: {step.missing}"
        yield indented(Text.assemble(("hurried ", DIM), f"{where} {waited}"))
    # harrow observes real brokers only at intervals, so it cannot check some expectations.
    for unseen in result.unseen:
        place = f"{run.file}:{unseen.line}: " if unseen.line else ""
        yield indented(Text.assemble(("unseen ", DIM), f"{place}{unseen.message}"))
    skipped = result.verdict.status == SKIPPED
    label = Text("skipped", DIM) if skipped else Text("undecided", UNDECIDED)
    causes = result.verdict.reasons
    if causes and shown.startswith(causes[0]):
        causes = causes[1:]
    if causes:
        yield indented(terms([(label, cause) for cause in causes], gap=1))


def _commands_and_files(run: FinishedRun) -> Iterator[RenderableType]:
    # Lines to copy are not wrapped.
    margin = " " * INDENT
    yield unbroken(Text.assemble(margin, ("reproduce ", DIM), run.reproduce))
    if run.folder is not None:
        yield unbroken(Text.assemble(margin, ("files     ", DIM), str(run.folder)))


def _detail_tables(result: RunResult) -> Iterator["Table"]:
    yield columns("left open", "drawn", rows=result.drawn)
    table = columns("rule", "status", "findings", "promise")
    rules = worst_first(result.verdict.rules).items()
    for name, judged in rules:
        if judged.status != HELD:
            table.add_row(name, judged.status, str(len(judged.findings) or ""), judged.promise)
    held = sum(judged.status == HELD for _, judged in rules)
    table.add_row(f"{'the other' if table.row_count else 'all'} {held}", HELD, "", "")
    not_tried = len(result.verdict.not_tried)
    if not_tried:
        table.add_row(f"{not_tried} more", "not tried", "", "")
    yield table
    faults = (
        (duration_text(fault.at_us), fault.fault, fields_text(fault.details)) for fault in result.faults
    )
    yield columns("at", "fault", "details", rows=faults)
    probes = ((name, str(count)) for name, count in sorted(result.probes.items()) if count)
    yield columns("rare state", "times", rows=probes)
    table = columns("replica", "broker", "LEO", "HW", "epoch@start", "log")
    for partition, replicas in result.evidence.replicas.items():
        for broker, log in sorted(replicas.items()):
            ends = (str(broker), str(log.leo), str(log.hw))
            table.add_row(partition, *ends, epochs_text(log), values_text(log))
    yield table

"""The story of one run for people: what was found and why, what was missed, how to run it again."""

from collections.abc import Iterator
from typing import Final, Literal

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from campaigns.campaign_copy import expect_line
from campaigns.markdown_report import epochs_text, values_text
from campaigns.report import Anomaly, anomalies, place, when_and_what
from campaigns.run_result import RunResult
from campaigns.units import duration_text, fields_text
from checks.finding import HELD, Finding
from cli.console import unbroken
from cli.layout import DIM, INDENT, indented
from cli.run_tally import FinishedRun

FAILED: Final = "bold red"
UNDECIDED: Final = "bold magenta"
_FINDINGS_SHOWN: Final = 3


def short_story(run: FinishedRun) -> Iterator[RenderableType]:
    """Yield what somebody needs who has to find out why a run failed.

    Of each broken promise that is one story: those of the other records are mostly the same.
    """
    for anomaly in anomalies(run.result):
        if anomaly.permitted_by is None:
            yield from _findings(anomaly, shown_max=1)
    yield from _misses(run)
    if run.result.drawn:
        drawn = ", ".join(f"{name}={value}" for name, value in run.result.drawn)
        yield indented(Text.assemble(("drawn     ", DIM), drawn))
    yield from _pointers(run)


def whole_story(run: FinishedRun) -> Iterator[RenderableType]:
    """Yield everything about a run that fits a screen or two."""
    result = run.result
    yield indented(
        Text(
            f"Kafka {result.plan.kafka}, seed {result.seed}, {result.simulated_us / 1_000_000:.3f} s of cluster time, "
            f"{result.events} events, trace {result.trace_digest}",
            DIM,
        )
    )
    for anomaly in anomalies(result):
        yield from _findings(anomaly, shown_max=_FINDINGS_SHOWN)
    yield from _misses(run)
    for table in (_drawn(result), _rules(result), _faults(result), _probes(result), _replicas(result)):
        if table.row_count:
            yield Text()
            yield indented(table)
    yield Text()
    yield from _pointers(run)


def _findings(anomaly: Anomaly, *, shown_max: int) -> Iterator[RenderableType]:
    for finding in anomaly.findings[:shown_max]:
        value = "" if finding.value is None else f" {finding.value}"
        yield indented(Text.assemble((f"{anomaly.rule}{value}", "bold"), f", {place(finding)}:"))
        yield from story_of(finding)
    rest = len(anomaly.findings) - shown_max
    if rest > 0:
        yield indented(Text(f"and {rest} more of {anomaly.rule} (report.md has all)", DIM))


def story_of(finding: Finding) -> Iterator[RenderableType]:
    """Yield what led to a finding, a line for each event, and what would have prevented it.

    Times stand in a column of their own; what has no time is set off by a dash.
    """
    chain = _two_columns("right")
    for link in finding.chain:
        at, what = when_and_what(link)
        chain.add_row(at or "-", Text(what))
    yield indented(chain, INDENT + 2)
    if finding.prevented_by:
        prevention = _two_columns("left")
        for number, what in enumerate(finding.prevented_by):
            prevention.add_row("or by" if number else "prevented by", Text(what))
        yield indented(prevention, INDENT + 2)


def _two_columns(justify: Literal["left", "right"]) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(justify=justify, no_wrap=True, style=DIM)
    table.add_column(overflow="fold")
    return table


def _misses(run: FinishedRun) -> Iterator[RenderableType]:
    for missed in run.result.missed:
        line = missed.line or expect_line(run.file, run.result.plan.variant)
        where = f"{run.file}:{line}" if line else str(run.file)
        yield indented(Text.assemble(("missed ", FAILED), f"{where}: {missed.message}"))
    for reason in run.result.verdict.reasons:
        yield indented(Text.assemble(("undecided ", UNDECIDED), reason))


def _pointers(run: FinishedRun) -> Iterator[RenderableType]:
    margin = " " * INDENT
    # What is to be copied is not broken into lines.
    yield unbroken(Text.assemble(margin, ("reproduce ", DIM), str(run.mapping["reproduce"])))
    if run.folder is not None:
        yield unbroken(Text.assemble(margin, ("files     ", DIM), str(run.folder)))


def _drawn(result: RunResult) -> Table:
    table = _table("left open", "drawn")
    for name, value in result.drawn:
        table.add_row(name, value)
    return table


def _rules(result: RunResult) -> Table:
    table = _table("rule", "status", "findings", "promise")
    held = 0
    for name, judged in result.verdict.rules.items():
        if judged.status == HELD:
            held += 1
        else:
            table.add_row(name, judged.status, str(len(judged.findings) or ""), judged.promise)
    table.add_row(f"{'all' if not table.row_count else 'the other'} {held}", HELD, "", "")
    return table


def _faults(result: RunResult) -> Table:
    table = _table("at", "fault that struck", "details")
    for fault in result.faults:
        table.add_row(duration_text(fault.at_us), fault.fault, fields_text(fault.details))
    return table


def _probes(result: RunResult) -> Table:
    table = _table("rare state", "times")
    for name, count in sorted(result.probes.items()):
        if count:
            table.add_row(name, str(count))
    return table


def _replicas(result: RunResult) -> Table:
    table = _table("replica", "broker", "LEO", "HW", "epoch@start", "log")
    for partition, replicas in result.evidence.replicas.items():
        for broker, log in sorted(replicas.items()):
            table.add_row(
                partition, str(broker), str(log.leo), str(log.hw), epochs_text(log), values_text(log)
            )
    return table


def _table(*heads: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style=DIM)
    for head in heads:
        table.add_column(head, overflow="fold")
    return table

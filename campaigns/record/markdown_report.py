"""Writes ``report.md``, the report of a run in Markdown, for example for a pull request.

The findings and the command that reproduces them come first. The tables below them are collapsed.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from harrow.campaigns.language.spelling import run_name
from harrow.campaigns.language.units import duration_text, fields_text
from harrow.campaigns.record.markdown import code, console, document, folded, table, text
from harrow.campaigns.record.phrases import epochs_text, prevention_lines, timed_sentence, values_text
from harrow.campaigns.record.report import (
    AS_EXPECTED,
    anomalies,
    difference_text,
    others_of,
    outcome,
    place,
    reason,
    run_id,
)
from harrow.campaigns.record.service_report import (
    consumer_text,
    coordination_rows,
    latency_text,
    outage_rows,
    sends_text,
)
from harrow.campaigns.run.run_result import RunResult
from harrow.checks.finding import HELD, worst_first

_OUTAGES_MAX: Final = 50
_FINDINGS_MAX: Final = 50
"""How many findings of one rule the report shows. ``run.json`` has all of them."""


def markdown_report(result: RunResult, reproduce: str) -> str:
    sections = (
        _head(result),
        console(reproduce),
        _findings(result),
        _misses(result),
        _service(result),
        _rules(result),
        _faults(result),
        _replicas(result),
    )
    return document(sections)


def _head(result: RunResult) -> str:
    plan = result.plan
    met = outcome(result)
    verdict = f"**{result.verdict.status}**, {met if met == AS_EXPECTED else f'**{met}**'}"
    written_for = "" if plan.written_for is None else f" (written for {plan.written_for})"
    run = (
        f"Kafka {plan.kafka}{written_for}, seed {result.seed}: {duration_text(result.simulated_us)} of cluster time, "
        f"{result.events} events, trace `{result.trace_digest}`, run `{run_id(result)}`."
    )
    lines = [f"# {text(run_name(plan.campaign, plan.variant))}", verdict]
    lines += [text(anomaly.sentence()) for anomaly in anomalies(result)]
    lines += [f"Undecided: {text(cause)}" for cause in result.verdict.reasons]
    if result.difference is not None:
        lines.append(text(difference_text(result, result.difference)))
    elif result.verdict.status == HELD and not result.missed:
        lines += [text(cost) for cost in (reason(result),) if cost]
    return "\n\n".join([*lines, run, *([text(plan.description)] if plan.description else [])])


def _findings(result: RunResult) -> str:
    lines = []
    for anomaly in anomalies(result):
        incidents = anomaly.incidents()
        for incident in incidents[:_FINDINGS_MAX]:
            finding = incident.first
            value = "" if finding.value is None else f" {code(str(finding.value))}"
            judged = text(anomaly.measured_against())
            others = f", {text(others_of(incident))}" if len(incident.findings) > 1 else ""
            lines.append(f"- **{anomaly.rule}**{value}, {text(place(finding))}{others}, {judged}:")
            lines += [f"  - {text(timed_sentence(link))}" for link in finding.chain]
            for line in prevention_lines(finding):
                shown = code(line.text) if line.is_command else text(line.text)
                lines.append(f"  {'  ' * line.depth}- {shown}")
        if rest := sum(len(incident.findings) for incident in incidents[_FINDINGS_MAX:]):
            lines.append(f"- and {rest} more of {anomaly.rule}")
    return "## Findings\n\n" + "\n".join(lines) if lines else ""


def _misses(result: RunResult) -> str:
    lines = [
        f"- {f'line {missed.line}: ' if missed.line else ''}{text(missed.message)}"
        for missed in result.missed
    ]
    return "## Missed expectations\n\n" + "\n".join(lines) if lines else ""


def _service(result: RunResult) -> str:
    levels = result.service
    if not levels.total.sent and not levels.consumers:
        return ""
    lines = [
        f"- sends: {sends_text(levels.total)}",
        f"- time to ack: {latency_text(levels.total.ack_latency)}",
        f"- end to end: {latency_text(levels.end_to_end)}",
    ]
    lines += [f"- {noun}: {text(words)}" for noun, words in coordination_rows(levels)]
    lines += [f"- {text(name)}: {consumer_text(level)}" for name, level in levels.consumers.items()]
    service = "## Service\n\n" + "\n".join(lines)
    rows = [tuple(map(text, row)) for row in outage_rows(levels, _OUTAGES_MAX)]
    if not rows:
        return service
    heading = f"Times without an ack: {len(levels.outages)}"
    return f"{service}\n\n{_folded(heading, ('no acks of', 'from', 'for', 'because'), rows)}"


def _rules(result: RunResult) -> str:
    rows = [
        (name, judged.status, str(len(judged.findings)), text(judged.promise))
        for name, judged in worst_first(result.verdict.rules).items()
    ]
    # Most rules held, and their rows come last.
    other = [row for row in rows if row[1] != HELD]
    held = len(rows) - len(other)
    not_tried = len(result.verdict.not_tried)
    heading = f"Rules: {held} held" + (f", {len(other)} did not" if other else "")
    heading += f", {not_tried} not tried" if not_tried else ""
    heads = ("rule", "status", "findings", "promise")
    return _folded(heading, heads, [*other, *(row for row in rows if row[1] == HELD)])


def _faults(result: RunResult) -> str:
    rows = [
        (duration_text(fault.at_us), fault.fault, text(fields_text(fault.details))) for fault in result.faults
    ]
    return _folded(f"Faults that struck: {len(rows)}", ("at", "fault", "details"), rows) if rows else ""


def _replicas(result: RunResult) -> str:
    rows = [
        (text(partition), str(broker), str(log.leo), str(log.hw), epochs_text(log), text(values_text(log)))
        for partition, replicas in result.evidence.replicas.items()
        for broker, log in sorted(replicas.items())
    ]
    heads = ("partition", "broker", "LEO", "HW", "epoch@start", "log")
    return _folded("Replicas at the end", heads, rows)


def _folded(heading: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return folded(heading, table(heads, rows))

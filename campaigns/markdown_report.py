"""``report.md``: a run for a reader, in Markdown."""

from collections.abc import Iterable, Sequence

from campaigns.report import AS_EXPECTED, anomalies, outcome, place, run_id
from campaigns.run_result import RunResult
from campaigns.units import duration_text, fields_text
from checks.evidence import ReplicaLog

_VALUES_MAX = 12


def markdown_report(result: RunResult, reproduce: str) -> str:
    """Return the report of a run."""
    sections = (
        _head(result),
        _promises(result),
        _findings(result),
        _misses(result),
        _faults(result),
        _replicas(result),
        f"## Run it again\n\n    {reproduce}",
    )
    return "\n\n".join(section for section in sections if section) + "\n"


def _head(result: RunResult) -> str:
    plan = result.plan
    variant = "" if plan.variant is None else f", variant {plan.variant}"
    met = outcome(result)
    verdict = f"**{result.verdict.status}**, {met if met == AS_EXPECTED else f'**{met}**'}"
    run = (
        f"Kafka {plan.kafka}, seed {result.seed}: {duration_text(result.simulated_us)} of cluster time, "
        f"{result.events} events, trace `{result.trace_digest}`, run `{run_id(result)}`."
    )
    lines = [f"# {plan.campaign}{variant}", verdict, *(anomaly.sentence() for anomaly in anomalies(result))]
    lines += [f"Undecided: {reason}" for reason in result.verdict.reasons]
    return "\n\n".join([*lines, run, *([plan.description.strip()] if plan.description else [])])


def _promises(result: RunResult) -> str:
    rows = (
        (name, judged.status, str(len(judged.findings)), judged.promise)
        for name, judged in result.verdict.rules.items()
    )
    return "## Rules\n\n" + _table(("rule", "status", "findings", "promise"), rows)


def _findings(result: RunResult) -> str:
    lines = []
    for anomaly in anomalies(result):
        for finding in anomaly.findings:
            value = "" if finding.value is None else f" `{finding.value}`"
            judged = anomaly.measured_against()
            lines.append(f"- **{anomaly.rule}**{value}, {place(finding)}, {judged}:")
            lines += [f"  - {_indented(link.text)}" for link in finding.chain]
            if finding.prevented_by:
                lines.append(f"  - prevented by {'; or by '.join(finding.prevented_by)}")
    return "## Findings\n\n" + "\n".join(lines) if lines else ""


def _misses(result: RunResult) -> str:
    lines = [
        f"- {f'line {missed.line}: ' if missed.line else ''}{_indented(missed.message)}"
        for missed in result.missed
    ]
    return "## Missed expectations\n\n" + "\n".join(lines) if lines else ""


def _faults(result: RunResult) -> str:
    if not result.faults:
        return ""
    rows = ((duration_text(fault.at_us), fault.fault, fields_text(fault.details)) for fault in result.faults)
    return "## Faults that struck\n\n" + _table(("at", "fault", "details"), rows)


def _replicas(result: RunResult) -> str:
    rows = (
        (partition, str(broker), str(log.leo), str(log.hw), epochs_text(log), values_text(log))
        for partition, replicas in result.evidence.replicas.items()
        for broker, log in sorted(replicas.items())
    )
    heads = ("partition", "broker", "LEO", "HW", "epoch@start", "log")
    return "## Replicas at the end\n\n" + _table(heads, rows)


def epochs_text(log: ReplicaLog) -> str:
    """Return a replica's leader epochs, each with the offset where it starts: ``0@0 2@17``."""
    return " ".join(f"{epoch}@{start}" for epoch, start in log.epochs)


def values_text(log: ReplicaLog, shown_max: int = _VALUES_MAX) -> str:
    """Return the records of a log; only its ends when there are many."""
    values = log.values()
    if len(values) <= shown_max:
        return " ".join(values)
    return f"{values[0]} {values[1]} ... {values[-1]}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _indented(text: str) -> str:
    return text.strip().replace("\n", "\n  ")

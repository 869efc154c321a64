"""A row of a sweep: the record of one run.

A row is made where the run takes place, on a machine that may have only Python and harrow's core.
Everything but ``wall_us`` is the same on every engine.
"""

import hashlib
import os
import socket
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final

from harrow.campaigns.record.report import AS_EXPECTED, OTHERWISE, UNDECIDED, UNEXPECTED, outcome
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import collector_off, run_plan
from harrow.campaigns.run.service import MEASURES
from harrow.campaigns.search.signature import signatures
from harrow.campaigns.sweep.cell import Cell
from harrow.campaigns.sweep.chunk import Task
from harrow.campaigns.version import version
from harrow.checks.finding import HELD
from harrow.checks.promise import DEMANDED
from harrow.checks.service.levels import ServiceLevels

SCHEMA_VERSION: Final = "harrow.sweep/1"

ERROR: Final = "error"
"""The verdict of a run that harrow itself could not finish."""

EXPECTATION: Final = "expectation"
"""The rule of a run that broke no promise but missed an expectation of its campaign."""

OUTCOMES: Final = {
    AS_EXPECTED: "as-expected",
    UNEXPECTED: "unexpected",
    OTHERWISE: "otherwise",
    UNDECIDED: "undecided",
}
"""The outcomes in rows, by their names in `harrow.campaigns.record.report.outcome`."""

FAILED: Final = OUTCOMES[UNEXPECTED]

_ROOMS: Final = frozenset({"cluster_model", "faults", "checks", "campaigns"})


Row = dict[str, Any]
"""One run: values by column (`harrow.campaigns.sweep.row_table.COLUMNS`). Missing ones are null."""


def this_worker() -> str:
    """Return the name of this process among all workers."""
    return f"{socket.gethostname()}:{os.getpid()}"


def run_task(cells: Mapping[int, Cell], task: Task) -> Iterator[Row]:
    """Run a task's seeds. *cells* maps the number of a cell in the sweep to the cell."""
    worker = this_worker()
    for place, seed in enumerate(task.seeds):
        if not task.not_on or task.not_on[place] != worker:
            yield run_row(cells[task.cell], seed)


def run_row(cell: Cell, seed: int) -> Row:
    """Run a cell's plan with a seed and return its row, whatever happens."""
    begun_ns = time.perf_counter_ns()
    try:
        with collector_off():
            row = _row(cell, run_plan(cell.plan, seed, measured=True, chains_later=True))
    except Exception as error:  # noqa: BLE001 - a bug in harrow costs one row, and does not end the sweep
        row = error_row(cell, seed, *_traceback(error))
    return {**row, "wall_us": (time.perf_counter_ns() - begun_ns) // 1_000}


def error_row(cell: Cell, seed: int, error: str, where: str) -> Row:
    """Return the row of a run that did not finish. *where* tells such failures apart."""
    return {
        **_key(cell, seed),
        "kafka": cell.plan.kafka,
        "verdict": ERROR,
        "outcome": FAILED,
        **_EMPTY_COLUMNS,
        **signature_columns(ERROR, "", where),
        "error": error,
    }


_EMPTY_COLUMNS: Final[Row] = {
    **dict.fromkeys(("rules", "reasons", "missed", "drawn", "faults", "probes"), ()),
    **dict.fromkeys(("events", "simulated_ms", "wall_us"), 0),
    **dict.fromkeys(("sent", "acked", "failed", "unknown", "outages", "outage_us", "lag"), 0),
}


def _key(cell: Cell, seed: int) -> Row:
    return {
        "campaign": cell.campaign,
        "cell": cell.name,
        "variant": cell.variant,
        "settings": cell.settings,
        "plan_digest": cell.digest,
        "seed": seed,
        "version": version(),
    }


def _row(cell: Cell, result: RunResult) -> Row:
    verdict = result.verdict
    result_outcome = outcome(result)
    return {
        **_key(cell, result.seed),
        "kafka": result.plan.kafka,
        "verdict": verdict.status,
        "outcome": OUTCOMES[result_outcome],
        "rules": [
            {"rule": rule, "status": judged.status, "count": len(judged.findings)}
            for rule, judged in verdict.rules.items()
            if judged.status != HELD
        ],
        "reasons": verdict.reasons,
        "missed": [missed.message for missed in result.missed],
        "drawn": result.drawn,
        "faults": sorted(Counter(fault.fault for fault in result.faults).items()),
        "probes": [
            {"probe": probe, "count": count} for probe, count in sorted(result.probes.items()) if count
        ],
        "trace_digest": result.trace_digest,
        "events": result.events,
        "simulated_ms": result.simulated_us // 1_000,
        **_service(result.measured),
        **(_worst_failure(result) if result_outcome == UNEXPECTED else {}),
    }


def _service(levels: ServiceLevels) -> Row:
    total = levels.total
    return {
        "sent": total.sent,
        "acked": total.acked,
        "failed": total.failed,
        "unknown": total.unknown,
        "outages": len(levels.outages),
        **{column: MEASURES[name].value(levels) for name, column in COLUMNS_OF_MEASURES.items()},
    }


COLUMNS_OF_MEASURES: Final = {
    "outage": "outage_us",
    "ack_p50": "ack_p50_us",
    "ack_p99": "ack_p99_us",
    "ack_max": "ack_max_us",
    "end_to_end_p50": "end_to_end_p50_us",
    "end_to_end_p99": "end_to_end_p99_us",
    "end_to_end_max": "end_to_end_max_us",
    "transaction_p50": "transaction_p50_us",
    "transaction_p99": "transaction_p99_us",
    "transaction_max": "transaction_max_us",
    "rebalance": "rebalance_us",
    "unread": "unread_us",
    "lag": "lag",
}
"""The columns of the measures that a campaign can limit, by the measure's key
(`harrow.campaigns.run.service.MEASURES`)."""


def _worst_failure(result: RunResult) -> Row:
    for signature, finding in signatures(result).items():
        judged = result.verdict.rules[signature.rule].promise
        promise = judged if judged == DEMANDED else signature.promise or judged
        # The kinds of the chain's events, each once, in the order of their first occurrence.
        chain = " > ".join(dict.fromkeys(link.event for link in finding.chain))
        return signature_columns(signature.rule, promise, chain)
    messages = sorted({missed.kind or missed.message for missed in result.missed})
    return signature_columns(EXPECTATION, "", "; ".join(messages))


def signature_columns(rule: str, promise: str, chain: str) -> Row:
    """Return the columns that all failures of a kind share.

    The signature can be used as the name of a folder.
    """
    digest = hashlib.sha256(f"{rule}\n{promise}\n{chain}".encode()).hexdigest()
    return {"signature": f"{rule}-{digest[:8]}", "failed_rule": rule, "promise": promise, "chain": chain}


def _traceback(error: Exception) -> tuple[str, str]:
    """Return an error's traceback, which is the same on every machine, and where it occurred."""
    lines: list[str] = []
    where = ""
    for frame in traceback.extract_tb(error.__traceback__):
        parts = PurePath(frame.filename).parts
        rooms = [place for place, part in enumerate(parts) if part in _ROOMS]
        file = "/".join(parts[rooms[-1] :]) if rooms else parts[-1]
        where = f"{type(error).__name__} in {file}:{frame.lineno}"
        lines += [f"{file}:{frame.lineno} in {frame.name}", f"    {frame.line}"]
    lines += [line.rstrip("\n") for line in traceback.format_exception_only(error)]
    # Arrow cannot hold half of a surrogate pair, and that must not end the sweep.
    return "\n".join(lines).encode("utf-8", "backslashreplace").decode("utf-8"), where

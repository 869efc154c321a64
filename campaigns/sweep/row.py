"""A row of a sweep: what is kept of one run.

Rows are made where the run was, on a machine that may have nothing but Python and the core.
Everything but ``wall_us`` is the same whoever runs it, so that two engines leave the same rows.
"""

import hashlib
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from campaigns.report import AS_EXPECTED, UNDECIDED, UNEXPECTED, outcome
from campaigns.run_result import RunResult
from campaigns.runner import run_plan
from campaigns.signature import signatures
from campaigns.sweep.cell import Cell
from campaigns.version import VERSION
from checks.finding import HELD, Finding

ERROR: Final = "error"
"""The verdict of a run that harrow itself could not finish."""

EXPECTATION: Final = "expectation"
"""The rule of a run in which no promise was broken, but what its campaign expects did not come about."""

OUTCOMES: Final = {AS_EXPECTED: "as-expected", UNEXPECTED: "unexpected", UNDECIDED: "undecided"}
"""What a row says of how a run went, by what `campaigns.report.outcome` says."""

FAILED: Final = OUTCOMES[UNEXPECTED]

_ROOMS: Final = frozenset({"cluster_model", "faults", "checks", "campaigns"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCount:
    """How many findings a rule has in a run, and its status; a rule that held is left out."""

    rule: str
    status: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureSignature:
    """What makes failures the same: the rule, what it promised, and the kinds of events that led to it."""

    rule: str
    promise: str
    chain: str

    @property
    def name(self) -> str:
        """A short name, which a folder can have: the rule, and a digest of all."""
        text = f"{self.rule}\n{self.promise}\n{self.chain}"
        return f"{self.rule}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run. The key is (campaign, cell, seed) within a sweep, with the plan's digest and the version.

    ``outcome`` says whether the run went as its campaign expects. ``failure`` is there when it did
    not. ``faults`` counts those that struck, by kind. Times: ``simulated_ms`` of virtual time,
    ``wall_us`` microseconds that the run took. ``error`` has the traceback of a run that failed in
    harrow itself, or says why it was given up.
    """

    campaign: str
    cell: str
    variant: str
    settings: tuple[tuple[str, str], ...]
    kafka: str
    plan_digest: str
    seed: int
    version: str
    verdict: str
    outcome: str
    rules: tuple[RuleCount, ...] = ()
    reasons: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    drawn: tuple[tuple[str, str], ...] = ()
    faults: tuple[tuple[str, int], ...] = ()
    probes: tuple[tuple[str, int], ...] = ()
    trace_digest: str | None = None
    events: int = 0
    simulated_ms: int = 0
    wall_us: int = 0
    failure: FailureSignature | None = None
    error: str | None = None


def run_row(cell: Cell, seed: int) -> Row:
    """Run a cell's plan with a seed and return its row, whatever happens."""
    begun_ns = time.perf_counter_ns()
    try:
        result = run_plan(cell.plan, seed)
        return _row(cell, result, _since_us(begun_ns))
    except Exception as error:  # noqa: BLE001 - a flaw of harrow is one row, and not the end of a sweep
        return error_row(cell, seed, *_told(error), wall_us=_since_us(begun_ns))


def error_row(cell: Cell, seed: int, error: str, where: str, *, wall_us: int = 0) -> Row:
    """Return the row of a run that could not be finished; *where* tells such failures apart."""
    return Row(
        campaign=cell.campaign,
        cell=cell.name,
        variant=cell.variant,
        settings=cell.settings,
        kafka=cell.plan.kafka,
        plan_digest=cell.digest,
        seed=seed,
        version=VERSION,
        verdict=ERROR,
        outcome=FAILED,
        wall_us=wall_us,
        failure=FailureSignature(rule=ERROR, promise="", chain=where),
        error=error,
    )


def _since_us(begun_ns: int) -> int:
    return (time.perf_counter_ns() - begun_ns) // 1_000


def _row(cell: Cell, result: RunResult, wall_us: int) -> Row:
    if result.given_up is not None:
        return error_row(cell, result.seed, result.given_up, "given up", wall_us=wall_us)
    verdict = result.verdict
    how = outcome(result)
    return Row(
        campaign=cell.campaign,
        cell=cell.name,
        variant=cell.variant,
        settings=cell.settings,
        kafka=result.plan.kafka,
        plan_digest=cell.digest,
        seed=result.seed,
        version=VERSION,
        verdict=verdict.status,
        outcome=OUTCOMES[how],
        rules=tuple(
            RuleCount(rule=rule, status=judged.status, count=len(judged.findings))
            for rule, judged in verdict.rules.items()
            if judged.status != HELD
        ),
        reasons=verdict.reasons,
        missed=tuple(missed.message for missed in result.missed),
        drawn=result.drawn,
        faults=tuple(sorted(Counter(fault.fault for fault in result.faults).items())),
        probes=tuple(sorted((probe, count) for probe, count in result.probes.items() if count)),
        trace_digest=result.trace_digest,
        events=result.events,
        simulated_ms=result.simulated_us // 1_000,
        wall_us=wall_us,
        failure=None if how != UNEXPECTED else _failure(result),
    )


def _failure(result: RunResult) -> FailureSignature:
    """Return the worst failure of a run."""
    for signature, finding in signatures(result).items():
        promise = signature.promise or result.verdict.rules[signature.rule].promise
        return FailureSignature(rule=signature.rule, promise=promise, chain=_kinds(finding))
    messages = sorted({missed.message for missed in result.missed})
    return FailureSignature(rule=EXPECTATION, promise="", chain="; ".join(messages))


def _kinds(finding: Finding) -> str:
    """Return the kinds of a chain's events, each where it first stands."""
    return " > ".join(dict.fromkeys(link.event for link in finding.chain))


def _told(error: Exception) -> tuple[str, str]:
    """Return an error's traceback, the same on every machine, and where it came up."""
    lines: list[str] = []
    where = ""
    for frame in traceback.extract_tb(error.__traceback__):
        parts = PurePath(frame.filename).parts
        rooms = [place for place, part in enumerate(parts) if part in _ROOMS]
        file = "/".join(parts[rooms[-1] :]) if rooms else parts[-1]
        where = f"{type(error).__name__} in {file}:{frame.lineno}"
        lines += [f"{file}:{frame.lineno} in {frame.name}", f"    {frame.line}"]
    lines += [line.rstrip("\n") for line in traceback.format_exception_only(error)]
    # What Arrow cannot have, half of a surrogate pair, must not be the end of a sweep either.
    return "\n".join(lines).encode("utf-8", "backslashreplace").decode("utf-8"), where

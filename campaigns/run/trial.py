"""Repeats a run with a remedy, and decides whether the repetition proves that the remedy holds.

A remedy often prevents what the script of a campaign waits for, such as an ack. The script would
stop there, the fault that did the damage would never strike, and nothing would break. So in a trial
no step waits longer than `limits.step` for its condition, and the script then goes on without it. A
trial without the findings proves something only if

- every fault that had struck by the time of the damage strikes again,
- the faults that were in force then are in force again, where a step ran without its condition, and
- the trial is conclusive and had as much to judge as the run: an ack that never came cannot be
  broken, and a partition that was not read back cannot lack a record.

A remedy holds if the findings are gone and no rule reports new ones in their place.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

from harrow.campaigns.language.literals import duration_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.plan_file import WrittenPlan
from harrow.campaigns.run.remedies import options_of
from harrow.campaigns.run.run_result import InjectedFault, RunResult
from harrow.checks.finding import INCONCLUSIVE, Finding
from harrow.checks.link import cause_key
from harrow.checks.prevention import NOT_TRIED, REFUTED, TRIED_HELD, Refutation, Remedy, Trial
from harrow.cluster_model.events import FaultEnded, FaultStruck
from harrow.cluster_model.history import OK
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.trace import select
from harrow.faults.fault import Fault

_EVENTS_FACTOR: Final = 4
_EVENTS_MIN: Final = 100_000
"""A trial with this many times the events of its run is caught in a loop and shows nothing."""

_PATIENCE_US: Final = (30 * US_PER_SECOND, US_PER_SECOND)
"""How much longer than in the run a step may wait. The first is longer than a session timeout or
replica lag by default. The second is short, for trials in which the faults were over by then."""

Cause = tuple[str | None, frozenset[Hashable]]
"""The permission of findings and the kinds of their causes. Findings that share them are tried
together."""

_Explanation = tuple[str | None, Hashable]
"""The permission of a finding and the kind of one of its causes, None if it has none."""

_Judged = tuple[str | None, int | None]
"""A replica in sync at the end, a partition that was read back, or (with neither) any ack."""

_StrikeKey = tuple[Fault | None, int]
"""A fault as the campaign writes it, and how often the same one had struck before."""


@dataclass(frozen=True)
class _Struck:
    result: RunResult

    @cached_property
    def faults(self) -> Mapping[_StrikeKey, InjectedFault]:
        """The faults in the order in which they struck."""
        counted: Counter[Fault | None] = Counter()
        faults: dict[_StrikeKey, InjectedFault] = {}
        for fault in self.result.faults:
            faults[fault.origin, counted[fault.origin]] = fault
            counted[fault.origin] += 1
        return faults

    @cached_property
    def lasting(self) -> Mapping[_StrikeKey, frozenset[_StrikeKey]]:
        """For each fault, the earlier ones still in force when it struck.

        A fault that ends another has none.
        """
        keys = list(self.faults)
        in_force: set[_StrikeKey] = set()
        lasting: dict[_StrikeKey, frozenset[_StrikeKey]] = {}
        for event in select(self.result.evidence.trace, FaultStruck, FaultEnded):
            key = keys[event.strike - 1]
            if isinstance(event, FaultStruck):
                mended = {other for other in in_force if self._mends(key, other)}
                lasting[key] = frozenset() if mended else frozenset(in_force)
                in_force -= mended
                in_force.add(key)
            else:
                in_force.discard(key)
        return lasting

    def _mends(self, key: _StrikeKey, other: _StrikeKey) -> bool:
        fault, struck = self.faults[key].concrete, self.faults[other].concrete
        return fault is not None and struck is not None and fault.ends(struck)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A run with a remedy, and the options that reproduce it."""

    result: RunResult
    struck: _Struck
    options: tuple[str, ...]


class Trials:
    """Repeats a run with remedies, once for each, at most *runs_max* times in total."""

    def __init__(self, first: RunResult, run: Callable[[Plan, int], RunResult], runs_max: int) -> None:
        self._first = first
        self._run = run
        self._left = runs_max
        self._written = WrittenPlan(first.plan)
        self._plans: dict[Remedy, Plan | None] = {}
        self._attempts: dict[tuple[Remedy, int], _Attempt] = {}
        self._struck = _Struck(first)
        waited_us = -(-first.waited_us // US_PER_SECOND) * US_PER_SECOND
        waits = any(step.when is not None for step in first.plan.script)
        is_bounded = first.plan.step_limit_us is not None or not waits
        self._limits_us = (0,) if is_bounded else tuple(waited_us + more_us for more_us in _PATIENCE_US)

    def is_possible(self, remedy: Remedy) -> bool:
        """Return whether Kafka and the model accept a remedy, and it changes anything."""
        return self._plan(remedy) is not None

    def trial(self, remedy: Remedy, rule: str, findings: Sequence[Finding]) -> Trial | None:
        """Try a remedy for a rule's *findings* of one cause; None if no run is left."""
        trial: Trial | None = None
        for limit_us in self._limits_us:
            attempt = self._attempt(remedy, limit_us)
            if attempt is None:
                return trial
            trial = self._outcome(attempt, rule, findings)
            if trial.outcome != NOT_TRIED or not attempt.result.hurried:
                return trial
        return trial

    def _plan(self, remedy: Remedy) -> Plan | None:
        if remedy not in self._plans:
            self._plans[remedy] = self._written.with_options(options_of(remedy)) if remedy else None
        return self._plans[remedy]

    def _attempt(self, remedy: Remedy, limit_us: int) -> _Attempt | None:
        key = remedy, limit_us
        plan = self._plan(remedy)
        if key not in self._attempts and plan is not None and self._left > 0:
            self._left -= 1
            first = self._first
            events_max = max(_EVENTS_MIN, _EVENTS_FACTOR * first.events)
            bounded = replace(
                plan,
                events_limit=min(plan.events_limit, events_max),
                step_limit_us=limit_us or plan.step_limit_us,
            )
            result = self._run(bounded, first.seed)
            patience = (f"limits.step={duration_text(limit_us)}",) if limit_us and result.hurried else ()
            self._attempts[key] = _Attempt(result, _Struck(result), (*options_of(remedy), *patience))
        return self._attempts.get(key)

    def _outcome(self, attempt: _Attempt, rule: str, findings: Sequence[Finding]) -> Trial:
        again = attempt.result
        damage_us = _damage_us(findings)
        needed = {key: fault for key, fault in self._struck.faults.items() if fault.at_us <= damage_us}
        struck = attempt.struck.faults
        missing = [fault.fault for key, fault in needed.items() if key not in struck]
        refuted_by = _again(rule, again, findings)
        reason = "" if refuted_by else self._no_proof(attempt, rule, needed, missing)
        if not (reason or refuted_by):
            refuted_by = _instead(again, self._first, rule)
        return Trial(
            outcome=REFUTED if refuted_by else NOT_TRIED if reason else TRIED_HELD,
            reason=reason,
            refuted_by=refuted_by,
            verdict=again.verdict.status,
            struck=tuple(fault.fault for key, fault in needed.items() if key in struck),
            missing=tuple(missing),
            is_finished=again.is_script_finished and again.given_up is None,
            options=attempt.options,
            is_drawn=self._first.open_plan is not None,
            digest=again.trace_digest,
        )

    def _no_proof(
        self, attempt: _Attempt, rule: str, needed: Collection[_StrikeKey], missing: Sequence[str]
    ) -> str:
        """Return why a trial without the findings proves nothing; empty if it proves something."""
        again = attempt.result
        judged = again.verdict.rules.get(rule)
        if again.given_up is not None:
            return again.given_up
        waits = _waits_for(again)
        if missing:
            return f"{missing[0]} did not strike{waits and f'; {waits}'}"
        if waits and any(self._struck.lasting[key] - attempt.struck.lasting[key] for key in needed):
            # Faults that were in force together in the run came one after the other in the trial.
            return waits
        if again.verdict.status == INCONCLUSIVE or judged is None or judged.status == INCONCLUSIVE:
            return "; ".join(again.verdict.reasons) or "the trial is inconclusive"
        if again.evidence.unfinished:
            return "; ".join(again.evidence.unfinished)
        lacking = _judged_on(self._first) - _judged_on(again)
        return min(map(_lacking_text, lacking)) if lacking else ""


def _waits_for(result: RunResult) -> str:
    """Describe what the script waited for in vain; empty if it did not."""
    return next(
        (f"the run waits in vain in step {step.number}: {step.missing}" for step in result.hurried), ""
    )


def cause_of(finding: Finding) -> Cause:
    return finding.permitted_by, frozenset(map(cause_key, finding.causes))


def _place(finding: Finding) -> Hashable:
    return finding.partition, finding.offset if finding.value is None else str(finding.value)


def _again(rule: str, trial: RunResult, findings: Sequence[Finding]) -> Refutation | None:
    """Return a finding that is still there: at the same place, or with the same permission."""
    judged = trial.verdict.rules.get(rule)
    permitted_by, places = findings[0].permitted_by, set(map(_place, findings))
    return next(
        (
            _refutation(rule, finding)
            for finding in (() if judged is None else judged.findings)
            if finding.permitted_by == permitted_by or _place(finding) in places
        ),
        None,
    )


def _instead(again: RunResult, first: RunResult, rule: str) -> Refutation | None:
    """Return a finding of the trial that is new: replacing one loss by another is not a remedy.

    It comes from a rule that had no findings, or it has a cause that no rule, or not the rule in
    question, had found in the run.
    """
    before = {
        name: _explanations(judged.findings)
        for name, judged in first.verdict.rules.items()
        if judged.findings
    }
    all_explanations: frozenset[_Explanation] = frozenset().union(*before.values())
    for name, judged in again.verdict.rules.items():
        for finding in judged.findings:
            explanations = _explanations([finding])
            if not (
                name in before
                and explanations <= all_explanations
                and (name != rule or explanations <= before[name])
            ):
                return _refutation(name, finding, is_new=True)
    return None


def _refutation(rule: str, finding: Finding, *, is_new: bool = False) -> Refutation:
    return Refutation(
        rule=rule,
        partition=finding.partition,
        offset=finding.offset,
        value=finding.value,
        permitted_by=finding.permitted_by,
        causes=tuple(dict.fromkeys(cause.kind.name for cause in finding.causes)),
        is_new=is_new,
    )


def _explanations(findings: Iterable[Finding]) -> frozenset[_Explanation]:
    return frozenset(
        (finding.permitted_by, kind) for finding in findings for kind in cause_of(finding)[1] or (None,)
    )


def _damage_us(findings: Sequence[Finding]) -> int:
    """Return the time of the last event in the chains. Without chains, all faults count."""
    times = [link.at_us for finding in findings for link in finding.chain if link.at_us is not None]
    return max(times, default=_NEVER_US)


_NEVER_US: Final = 2**63


def _judged_on(result: RunResult) -> frozenset[_Judged]:
    """Return what a run had to judge: acks, partitions read to their end, replicas in sync."""
    evidence = result.evidence
    in_sync = {
        (partition, broker)
        for partition, replicas in evidence.replicas.items()
        for broker, log in replicas.items()
        if log.in_sync
    }
    has_acks = any(operation.type == OK and any(operation.sends()) for operation in evidence.operations)
    read_back = {(partition, None) for partition in evidence.read_back}
    return frozenset({*read_back, *in_sync, *({(None, None)} if has_acks else ())})


def _lacking_text(lacking: _Judged) -> str:
    """Describe something that a run had to judge and its trial had not."""
    partition, broker = lacking
    if partition is None:
        return "nothing was acknowledged"
    return f"{partition} was not read to its end" if broker is None else f"broker {broker} was not in sync"

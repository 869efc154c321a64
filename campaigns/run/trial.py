"""Repeats a run with a remedy, and decides whether this trial proves that the remedy helps.

A remedy often prevents what the script of a campaign waits for, such as an ack. Then the script
would wait forever, the fault that did the damage would never strike, and nothing would break. So in
a trial no step waits for its condition longer than `limits.step`; then it runs without the
condition. A trial without the findings proves something only if

- every fault that had struck by the time of the damage strikes again,
- faults that were in force together in the run are so in the trial too, in case a step ran without
  its condition, and
- the trial is conclusive and had as much to judge as the run: a record that was never acked cannot
  be lost, and nothing can be missing from a partition that was not read back.

A remedy helps if the findings are gone and no rule reports new findings instead.
"""

from collections import Counter
from collections.abc import Collection, Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import cached_property, partial
from typing import Final

from harrow.campaigns.language.literals import duration_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.plan_file import WrittenPlan
from harrow.campaigns.run.remedies import options_of
from harrow.campaigns.run.run_result import InjectedFault, RunResult, TimedOutStep
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.workers.workers import Run, RunAhead, RunOne, Workers
from harrow.checks.finding import INCONCLUSIVE, Finding, Verdict
from harrow.checks.link import cause_key
from harrow.checks.prevention import (
    NOT_TRIED,
    REFUTED,
    TRIED_HELD,
    Prevention,
    Refutation,
    Remedy,
    Trial,
    together,
)
from harrow.cluster_model.events import FaultEnded, FaultStruck
from harrow.cluster_model.history import OK
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.trace import select
from harrow.faults.fault import Fault

_EVENTS_FACTOR: Final = 4
_EVENTS_MIN: Final = 100_000
"""A trial with this many times the events of its run is probably in a loop, and shows nothing."""

_PATIENCE_US: Final = (30 * US_PER_SECOND, US_PER_SECOND)
"""How much longer than in the run a step may wait, in the first and second trial of a remedy.
The first value is more than the defaults of the session timeout and of ``replica.lag.time.max.ms``.
The second is short, in case faults of the first trial ended before the script went on."""

Cause = tuple[str | None, frozenset[Hashable]]
"""The permission of findings and the kinds of their causes. Remedies are tried together for all
findings with the same permission and kinds."""

_Explanation = tuple[str | None, Hashable]
"""The permission of a finding and the kind of one of its causes; None for a missing one."""

_JudgedThing = tuple[str | None, int | None]
"""What a run had to judge, as a partition and a broker.

With both, it is a replica in sync at the end; with a partition only, a partition that was read
back; with neither, at least one ack."""

_StrikeKey = tuple[Fault | None, int]
"""A fault as the campaign writes it, and how often this fault had struck before."""


@dataclass(frozen=True)
class _Strikes:
    """The faults that struck in a run, and which of them were in force together."""

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
    def overlaps(self) -> Mapping[_StrikeKey, frozenset[_StrikeKey]]:
        """For each fault, the earlier faults that were still in force when it struck.

        A fault that ends another fault has none.
        """
        keys = list(self.faults)
        in_force: set[_StrikeKey] = set()
        overlaps: dict[_StrikeKey, frozenset[_StrikeKey]] = {}
        for event in select(self.result.evidence.trace, FaultStruck, FaultEnded):
            key = keys[event.strike - 1]
            if isinstance(event, FaultStruck):
                ended = {other for other in in_force if self._ends_fault(key, other)}
                overlaps[key] = frozenset() if ended else frozenset(in_force)
                in_force -= ended
                in_force.add(key)
            else:
                in_force.discard(key)
        return overlaps

    def _ends_fault(self, key: _StrikeKey, other: _StrikeKey) -> bool:
        fault, struck = self.faults[key].concrete, self.faults[other].concrete
        return fault is not None and struck is not None and fault.ends(struck)


@dataclass(frozen=True, slots=True)
class _TrialOutcome:
    """The parts of a run with a remedy that are compared with the first run.

    Transferring a whole result from another process would often take longer than the run.
    ``overlaps`` is empty if every step ran with its condition, because then it is not compared.
    """

    verdict: Verdict
    faults: Mapping[_StrikeKey, InjectedFault]
    overlaps: Mapping[_StrikeKey, frozenset[_StrikeKey]]
    judged_on: frozenset[_JudgedThing]
    timed_out_steps: tuple[TimedOutStep, ...]
    unfinished: tuple[str, ...]
    given_up: str | None
    is_script_finished: bool
    trace_digest: str


def run_trial(plan: Plan, seed: int, workers: Workers) -> RunResult:
    return run_plan(plan, seed, check=workers.check)


def _attempt(plan: Plan, seed: int, workers: Workers, *, run: RunOne[RunResult]) -> _TrialOutcome:
    result = run(plan, seed, workers)
    strikes = _Strikes(result)
    return _TrialOutcome(
        verdict=result.verdict,
        faults=strikes.faults,
        overlaps=strikes.overlaps if result.timed_out_steps else {},
        judged_on=_judged_things(result),
        timed_out_steps=result.timed_out_steps,
        unfinished=tuple(result.evidence.unfinished),
        given_up=result.given_up,
        is_script_finished=result.is_script_finished,
        trace_digest=result.trace_digest,
    )


class Trials:
    """Repeats a run with remedies. All trials together are at most *runs_max* runs."""

    def __init__(
        self, first: RunResult, runs_max: int, workers: Workers, run: RunOne[RunResult] = run_trial
    ) -> None:
        self._first = first
        self._run_one = partial(_attempt, run=run)
        self._runs_left = runs_max
        self._workers = workers
        self._runs_ahead: dict[tuple[Remedy, int], RunAhead[_TrialOutcome]] = {}
        self._written_plan = WrittenPlan(first.plan)
        self._plans: dict[Remedy, Plan | None] = {}
        self._attempts: dict[tuple[Remedy, int], _TrialOutcome] = {}
        self._strikes = _Strikes(first)
        waited_us = -(-first.waited_us // US_PER_SECOND) * US_PER_SECOND
        waits = any(step.when is not None for step in first.plan.script)
        is_bounded = first.plan.step_limit_us is not None or not waits
        self._limits_us = (0,) if is_bounded else tuple(waited_us + more_us for more_us in _PATIENCE_US)

    def is_possible(self, remedy: Remedy) -> bool:
        """Return whether Kafka and the model accept a remedy, and it changes anything."""
        return self._plan(remedy) is not None

    def ahead(self, groups: Iterable[Sequence[Prevention]]) -> Generator[Sequence[Prevention]]:
        """Yield each group of remedies to try together, while other cores begin the next groups."""

        def run_of(group: Sequence[Prevention]) -> Run | None:
            key = together(group).remedy, self._limits_us[0]
            plan = None if key in self._attempts else self._bounded_plan(*key)
            return None if plan is None else (plan, self._first.seed)

        with closing(self._workers.ahead(self._run_one, filter(None, groups), run_of)) as begun:
            for group, run in begun:
                if run is not None:
                    self._runs_ahead[together(group).remedy, self._limits_us[0]] = run
                yield group

    def trial(self, remedy: Remedy, rule: str, findings: Sequence[Finding]) -> Trial | None:
        """Try a remedy for a rule's *findings* of one cause; None if no run is left."""
        trial: Trial | None = None
        for limit_us in self._limits_us:
            attempt = self._attempt(remedy, limit_us)
            if attempt is None:
                return trial
            patience = (
                (f"limits.step={duration_text(limit_us)}",) if limit_us and attempt.timed_out_steps else ()
            )
            trial = self._outcome(attempt, rule, findings, (*options_of(remedy), *patience))
            if trial.outcome != NOT_TRIED or not attempt.timed_out_steps:
                return trial
        return trial

    def _plan(self, remedy: Remedy) -> Plan | None:
        if remedy not in self._plans:
            self._plans[remedy] = self._written_plan.with_options(options_of(remedy)) if remedy else None
        return self._plans[remedy]

    def _attempt(self, remedy: Remedy, limit_us: int) -> _TrialOutcome | None:
        key = remedy, limit_us
        plan = self._bounded_plan(remedy, limit_us)
        if key not in self._attempts and plan is not None and self._runs_left > 0:
            self._runs_left -= 1
            begun = self._runs_ahead.pop(key, None)
            self._attempts[key] = (
                self._run_one(plan, self._first.seed, self._workers) if begun is None else begun.result()
            )
        return self._attempts.get(key)

    def _bounded_plan(self, remedy: Remedy, limit_us: int) -> Plan | None:
        plan = self._plan(remedy)
        events_max = max(_EVENTS_MIN, _EVENTS_FACTOR * self._first.events)
        return plan and replace(
            plan,
            events_limit=min(plan.events_limit, events_max),
            step_limit_us=limit_us or plan.step_limit_us,
        )

    def _outcome(
        self, attempt: _TrialOutcome, rule: str, findings: Sequence[Finding], options: tuple[str, ...]
    ) -> Trial:
        damage_us = _damage_us(findings)
        needed_faults = {
            key: fault for key, fault in self._strikes.faults.items() if fault.at_us <= damage_us
        }
        attempt_faults = attempt.faults
        missing = [fault.fault for key, fault in needed_faults.items() if key not in attempt_faults]
        refuted_by = _repeated_finding(rule, attempt.verdict, findings)
        reason = "" if refuted_by else self._no_proof(attempt, rule, needed_faults, missing)
        if not (reason or refuted_by):
            refuted_by = _new_finding(attempt.verdict, self._first.verdict, rule)
        return Trial(
            outcome=REFUTED if refuted_by else NOT_TRIED if reason else TRIED_HELD,
            reason=reason,
            refuted_by=refuted_by,
            verdict=attempt.verdict.status,
            struck=tuple(fault.fault for key, fault in needed_faults.items() if key in attempt_faults),
            missing=tuple(missing),
            is_finished=attempt.is_script_finished and attempt.given_up is None,
            options=options,
            is_drawn=self._first.open_plan is not None,
            digest=attempt.trace_digest,
        )

    def _no_proof(
        self, attempt: _TrialOutcome, rule: str, needed_faults: Collection[_StrikeKey], missing: Sequence[str]
    ) -> str:
        """Return why a trial without the findings proves nothing; empty if it proves something."""
        judged = attempt.verdict.rules.get(rule)
        if attempt.given_up is not None:
            return attempt.given_up
        waits = _vain_wait_text(attempt)
        if missing:
            return f"{missing[0]} did not strike{waits and f'; {waits}'}"
        if waits and any(self._strikes.overlaps[key] - attempt.overlaps[key] for key in needed_faults):
            # Faults that overlapped in the run struck one after the other in the trial.
            return waits
        if attempt.verdict.status == INCONCLUSIVE or judged is None or judged.status == INCONCLUSIVE:
            return "; ".join(attempt.verdict.reasons) or "the trial is inconclusive"
        if attempt.unfinished:
            return "; ".join(attempt.unfinished)
        lacking = _judged_things(self._first) - attempt.judged_on
        return min(map(_lacking_text, lacking)) if lacking else ""


def _vain_wait_text(attempt: _TrialOutcome) -> str:
    """Describe the first condition that the script awaited in vain; empty if there is none."""
    return next(
        (f"the run waits in vain in step {step.number}: {step.missing}" for step in attempt.timed_out_steps),
        "",
    )


def cause_of(finding: Finding) -> Cause:
    return finding.permitted_by, frozenset(map(cause_key, finding.causes))


def _place(finding: Finding) -> Hashable:
    return finding.partition, finding.offset if finding.value is None else str(finding.value)


def _repeated_finding(rule: str, verdict: Verdict, findings: Sequence[Finding]) -> Refutation | None:
    """Return a finding of the trial with the place or the permission of a finding of the run."""
    judged = verdict.rules.get(rule)
    permitted_by, places = findings[0].permitted_by, set(map(_place, findings))
    return next(
        (
            _refutation(rule, finding)
            for finding in (() if judged is None else judged.findings)
            if finding.permitted_by == permitted_by or _place(finding) in places
        ),
        None,
    )


def _new_finding(trial: Verdict, first: Verdict, rule: str) -> Refutation | None:
    """Return a new finding of the trial: a remedy that replaces one loss with another is none.

    A finding is new if its rule had no findings in the run, if no finding of the run had its cause,
    or if it is from *rule* and no finding of *rule* in the run had its cause.
    """
    before = {name: _explanations(judged.findings) for name, judged in first.rules.items() if judged.findings}
    all_explanations: frozenset[_Explanation] = frozenset().union(*before.values())
    for name, judged in trial.rules.items():
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
    """Return when the damage was done: the last event in the chains of the findings.

    Without chains this is unknown, so it is after all faults.
    """
    times = [link.at_us for finding in findings for link in finding.chain if link.at_us is not None]
    return max(times, default=_NEVER_US)


_NEVER_US: Final = 2**63


def _judged_things(result: RunResult) -> frozenset[_JudgedThing]:
    """Return what a run had to judge: acks, partitions that were read back, replicas in sync."""
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


def _lacking_text(lacking: _JudgedThing) -> str:
    """Describe something that the run had to judge but the trial did not have."""
    partition, broker = lacking
    if partition is None:
        return "nothing was acknowledged"
    return f"{partition} was not read to its end" if broker is None else f"broker {broker} was not in sync"

"""Runs a plan: disturbs a cluster, heals it, reads every partition back, and judges the run.

``Plan + Choices -> RunResult``. `harrow run`, sweeps and searches all go through `run_plan`.
"""

import gc
from collections.abc import Callable, Collection, Mapping
from typing import Final

from harrow.campaigns.clients.client import Reader
from harrow.campaigns.language.plan import Expectation, Plan
from harrow.campaigns.language.plan_cost import refusal
from harrow.campaigns.language.spelling import counted
from harrow.campaigns.probes.probe_counter import NoticeCounter, ProbeCounter
from harrow.campaigns.probes.probes import never_reached
from harrow.campaigns.run.awaited import awaited_events
from harrow.campaigns.run.core_recovery import CoreRecovery
from harrow.campaigns.run.injection.fault_injector import FaultInjector
from harrow.campaigns.run.run_result import MissedExpectation, RunResult, measured_levels
from harrow.campaigns.run.script import Script
from harrow.campaigns.run.service import missed_bounds
from harrow.campaigns.run.swarm import draw_for_seed
from harrow.campaigns.run.targets.model_target import ModelTarget
from harrow.campaigns.run.targets.target import Target
from harrow.checks.evidence import Evidence, HealedCore
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED, VIOLATED, Verdict
from harrow.checks.index import Index
from harrow.checks.judge import judge
from harrow.checks.rules.catalogue import RULE_OF_INVARIANT, RULES, watched_in
from harrow.cluster_model.events import FetchDelayed, FetchExpired, MessageDelivered
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.packed_log import PackedLog
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.simulator import StepLimitExceeded
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND

_STEPS_BETWEEN_CHECKS = 1_000
_YOUNG_GENERATION: Final = 0
_EVENTS_PER_COLLECTION: Final = 250_000
"""How many events pass between garbage collections.

Collections free brokers that have died, which are in reference cycles: about 7 MiB for an hour of a
run. Most visit only the objects made since the one before, because most brokers die young. A full
one frees the others, each time the run is half as long again. So collections take the same share of
a run of any length.
"""
_IDLE_FETCH_EVENTS: Final = (FetchDelayed.name, FetchExpired.name, MessageDelivered.name)
RECOVERY_CHECK_US = 250 * US_PER_MS
_HIGH_WATERMARKS_US: Final = 30 * US_PER_SECOND
"""How long the model waits after recovery until followers know the high watermark."""
READ_BACK_LIMIT_US = 120 * US_PER_SECOND


class CostlyPlan(ValueError):
    """A plan exceeds a limit, for example of memory. The message names the limit."""


class RunStopped(Exception):
    """A run was stopped before its end. The message says why."""


def run_plan(
    plan: Plan,
    seed: int,
    choices: Choices | None = None,
    *,
    check: Callable[[], None] = lambda: None,
    measured: bool = False,
    chains_later: bool = False,
) -> RunResult:
    """Run a plan with the choices of *seed*, or with the given *choices*.

    The seed first draws the values that the plan leaves open. *check* is called from time to time.
    If it raises `RunStopped`, the run ends there and is inconclusive. With *measured*, the result
    has service levels in numbers. To compute them here takes a few hundredths of the time of a run,
    because the judge has built an index; to compute them later would take more than a tenth.

    With *chains_later*, the chain of a finding is built when it is first read. Until then it keeps
    the index of the run in memory, so this suits callers that soon drop the result.

    The garbage collector is off during the run (`collector_off`). A run keeps nearly everything
    that it allocates, so collections would take an eighth of the time and free almost nothing.
    Only long runs have collections (`_EVENTS_PER_COLLECTION`).

    Raises:
        CostlyPlan: The plan exceeds its limits. Campaign files are refused when they are read.

    """
    problem = refusal(plan)
    if problem is not None:
        raise CostlyPlan(problem)
    with collector_off():
        draw = draw_for_seed(plan, seed)
        choices = choices or Choices.from_seed(seed)
        result = _result_alone(draw.plan, seed, choices, check, measured=measured, chains_later=chains_later)
        return result if draw.plan is plan else replace(result, open_plan=plan, drawn=draw.values)


def _result_alone(
    plan: Plan,
    seed: int,
    choices: Choices,
    check: Callable[[], None],
    *,
    measured: bool,
    chains_later: bool,
) -> RunResult:
    """Run a plan on the model. When this returns, no variable refers to the cluster any more."""
    run = Run(plan, seed, choices, check=check, measured=measured, is_alone=True, chains_later=chains_later)
    result = run.result()
    assert isinstance(run.target, ModelTarget)
    run.target.cluster.dismantle()
    return result


def _with_own_records(evidence: Evidence) -> Evidence:
    """Move the trace and the history from the cluster to the evidence.

    They are most of the objects of a run. So they are freed together with the result, and the
    garbage collector does not have to find out that they are garbage like the cluster.
    """
    trace, operations = evidence.trace, evidence.operations
    assert isinstance(trace, PackedLog)
    assert isinstance(operations, PackedLog)
    return replace(evidence, trace=trace.moved(), operations=operations.moved())


class collector_off:  # noqa: N801 - callers use it like a function
    """Keep the garbage collector off, unless it is off already.

    The objects of a cluster refer to each other in cycles, so reference counting never frees them.
    The garbage collector frees them when it is on again: the next allocation starts a collection of
    the young objects. That costs far less if the result of the run has been freed by then. So
    leaving this context allocates nothing, which a generator would do, and a caller that needs the
    result only briefly keeps the collector off until it has dropped the result.
    """

    __slots__ = ("_collections", "_was_on")

    def __enter__(self) -> None:
        self._was_on = gc.isenabled()
        self._collections = _collections() if self._was_on else 0
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was_on:
            if _collections() != self._collections:
                # A collection has moved objects of the run to an older generation.
                gc.collect()
            gc.enable()


def _differ(offsets: Mapping[int, int]) -> bool:
    return len({*offsets.values()}) > 1


def _collections() -> int:
    return sum(generation["collections"] for generation in gc.get_stats())


class Run:
    """One run, from the start of its cluster to its verdict.

    `result` goes through all phases. A caller that steers the run itself calls `begin`, uses
    ``target`` and ``script``, and calls `end`. Without a *target* the run is on the model. From
    time to time the run calls *tell* with a function that describes what the run waits for. If the
    run *is_alone*, nothing uses its target afterwards. Only then may its chains be built later,
    because the trace of any other run may still grow.
    """

    def __init__(
        self,
        plan: Plan,
        seed: int,
        choices: Choices,
        target: Target | None = None,
        *,
        check: Callable[[], None] = lambda: None,
        tell: Callable[[Callable[[], str]], None] = lambda _: None,
        measured: bool = False,
        is_alone: bool = False,
        chains_later: bool = False,
    ) -> None:
        assert is_alone or not chains_later
        self._is_alone = is_alone
        self._chains_later = chains_later
        self._check = check
        self._tell = tell
        self._describe_wait: Callable[[], str] = self._describe_workload
        self._is_measured = measured or plan.expect.service is not None
        self._plan = plan
        self._awaited = awaited_events(plan)
        self._seed = seed
        watched = watched_in(plan.invariants, plan.kafka, plan.demand)
        self.target: Target = ModelTarget(plan, choices, watched) if target is None else target
        self._watched = frozenset(watched).intersection(self.target.invariants)
        self._notice_counter = NoticeCounter(self.target.trace)
        # The rules that cannot judge this run, because the target does not show enough.
        self._not_judged = {RULE_OF_INVARIANT[name] for name in watched if name not in self._watched}
        if self.target.patience is not None:
            self._not_judged.update(name for name, rule in RULES.items() if rule.goes_by_order)
        self.injector = FaultInjector(
            self.target, plan.cluster, choices.schedule, plan.blast_radius, plan.faults_limit
        )
        self.script = Script(plan.script, self.target, self.injector, plan.step_limit_us)
        self._unfinished: list[str] = []
        self._collection_at_event = _EVENTS_PER_COLLECTION
        self._full_collection_at_event = 2 * _EVENTS_PER_COLLECTION
        self._given_up: str | None = None
        # `_settle` replaces this. If the run is stopped before, the rules see an empty core.
        self._core = None if plan.core is None else HealedCore()
        self._read_back: frozenset[str] = frozenset()
        # The position of the final reader in partitions where an open transaction holds it up.
        self._held_up: dict[str, int] = {}
        # What groups have not read: group, partition, and the offset that the group has reached.
        self._behind: list[tuple[str, str, int]] = []
        self._missed_at_end: list[MissedExpectation] = []

    def result(self) -> RunResult:
        return self._result_after(self.begin, self._disturb, self._settle)

    def begin(self) -> None:
        """Start the cluster and its clients."""
        if not self._awaited.isdisjoint(_IDLE_FETCH_EVENTS):
            self.target.watch_fetches()
        self.target.start()
        self._check_started()
        self.target.clients.start()

    def end(self, *phases: Callable[[], None]) -> RunResult:
        """Heal the cluster after the caller's last phases, and judge the run."""
        return self._result_after(*phases, self._settle)

    def _result_after(self, *phases: Callable[[], None]) -> RunResult:
        try:
            for phase in phases:
                phase()
        except (StepLimitExceeded, RunStopped) as limit:
            self._given_up = f"the run was given up after {limit}"
            self._unfinished.append(self._given_up)
        evidence = _with_own_records(self._evidence()) if self._is_alone else self._evidence()
        probe_counter = ProbeCounter(self._notice_counter.counts)
        index = Index(evidence, probe_counter)
        verdict = judge(evidence, index)
        if not self._chains_later:
            verdict.build_chains()
        missed = [*self.script.missed, *self._missed_at_end]
        missed += _missed_at_the_end(self._plan.expect, verdict, self._not_judged)
        probes = probe_counter.result(evidence.trace[-1][0] if evidence.trace else 0)
        result = RunResult(
            plan=self._plan,
            seed=self._seed,
            verdict=verdict,
            expected=not missed and _is_expected(self._plan.expect, verdict),
            missed=tuple(missed),
            evidence=evidence,
            faults=tuple(self.injector.injected),
            probes=probes,
            probes_missed=never_reached((probes,), self._plan.expect.probes),
            events=self.target.events_handled,
            # A run may be given up before time zero, while the cluster starts.
            simulated_us=max(0, self.target.now_us),
            other_actions=tuple(self.script.other_actions),
            unseen=tuple(self.script.unseen),
            given_up=self._given_up,
            timed_out_steps=tuple(self.script.timed_out_steps),
            waited_us=self.script.waited_us,
            is_script_finished=self.script.is_finished(),
            steps_taken=self.script.steps_taken,
            levels=measured_levels(index) if self._is_measured else None,
        )
        out_of_bounds = tuple(missed_bounds(self._plan.expect.service, result))
        if not out_of_bounds:
            return result
        return replace(result, missed=(*missed, *out_of_bounds), expected=False)

    def _check_started(self) -> None:
        for partition in self.target.partition_names():
            if self.target.observer.partition_state(partition) is None:
                self._unfinished.append(f"{partition} had no leader when the campaign began")

    # Phases

    def _disturb(self) -> None:
        """Run the workload, the script and the faults."""
        plan = self._plan
        for injection in plan.faults:
            self.injector.schedule(injection)
        if MessageDelivered.name in self._awaited:
            self.target.watch_messages()
        limit_us = plan.script_limit_us
        if plan.script or self.injector.has_triggers():
            self._run_step_by_step(limit_us)
        self._advance(plan.duration_us)
        if not self.script.is_finished():
            self._unfinished.append(self.script.unfinished_text())
        self.injector.stop()

    def _run_step_by_step(self, limit_us: int) -> None:
        """Handle one event at a time, and check the conditions of steps and faults after each."""
        target, script = self.target, self.script
        script.advance()
        steps = 0
        while not script.is_finished() or (
            self.injector.has_triggers() and target.now_us < self._plan.duration_us
        ):
            wakes_at_us = script.wakes_at_us()
            waits_for_time = wakes_at_us is not None and wakes_at_us > target.now_us
            end_us = min(limit_us, wakes_at_us) if wakes_at_us is not None and waits_for_time else limit_us
            if script.is_finished():
                end_us = min(end_us, self._plan.duration_us)
            if target.patience is not None or not steps % _STEPS_BETWEEN_CHECKS:
                self._check_and_pack()
            steps += 1
            if not target.step(end_us):
                self._advance(end_us)
                if target.now_us >= limit_us or script.is_finished():
                    break
            if script.is_overdue():
                break
            if self.injector.has_triggers():
                self.injector.check_triggers()
            script.advance()
        while script.is_polling() and target.step(limit_us):
            script.advance()
        script.stop_polling()

    def _advance(self, end_us: int) -> None:
        """Let time pass until *end_us*, and check each second whether the run should continue."""
        self._check_and_pack()
        while self.target.now_us + US_PER_SECOND < end_us:
            self.target.advance(self.target.now_us + US_PER_SECOND)
            self._check_and_pack()
        self.target.advance(end_us)

    def _check_and_pack(self) -> None:
        """Check whether the run should continue, report what it waits for, and free memory."""
        self._check()
        self._tell(self._describe_wait)
        self.target.trace.pack()
        events = self.target.events_handled
        if events >= self._collection_at_event:
            self._collection_at_event = events + _EVENTS_PER_COLLECTION
            if events < self._full_collection_at_event:
                gc.collect(_YOUNG_GENERATION)
            else:
                self._full_collection_at_event = events + events // 2
                gc.collect()

    def _describe_workload(self) -> str:
        """Describe what the run waits for while faults strike."""
        if not self.script.is_finished():
            return self.script.waiting_text()
        left_us = max(self._plan.duration_us - self.target.now_us, 0)
        return f"{left_us // US_PER_SECOND} s of the workload are left"

    def _describe_recovery(self) -> str:
        """Describe what the healed run waits for."""
        reason = self._missing_recovery()
        if reason is not None:
            return f"healed: {reason}"
        behind = [
            f"group {group} has not read {partition} to its end" for group, partition, _ in self._behind
        ]
        return f"healed: {behind[0] if behind else 'about to check again'}"

    def _settle(self) -> None:
        """Heal the cluster, check the expected end state, and read every partition back."""
        if self._plan.core is not None:
            self._core = CoreRecovery(self.target, self._plan, self._plan.core).run()
        self._recover()
        self._missed_at_end = self._final_mismatches()
        self._read_everything_back()
        self._unfinished += [
            f"group {group} had not read {partition} to its end"
            for group, partition, reached in self._behind
            if reached < self._held_up.get(partition, reached + 1)
        ]

    def _recover(self) -> None:
        """Heal the cluster, and wait until replicas are in sync and clients have finished."""
        target = self.target
        target.heal()
        self._describe_wait = self._describe_recovery
        deadline_us = target.now_us + self._plan.recovery_limit_us
        reason, self._behind = self._missing_recovery(), self._unread_partitions()
        while (reason is not None or self._behind) and target.now_us < deadline_us:
            self._advance(target.now_us + RECOVERY_CHECK_US)
            reason, self._behind = self._missing_recovery(), self._unread_partitions()
        if reason is not None:
            self._unfinished.append(f"{reason} at the end")
            self._behind = []
        if reason is not None or self._behind:
            return
        if target.patience is None:
            # Without new writes, a follower may never learn the high watermark. In a fetch session
            # the leader omits what it has sent before (KIP-227). But the follower may have dropped
            # that response because of a new leader epoch, or the response only told it where the
            # logs diverge (KIP-595). So this wait has its own, short limit.
            deadline_us = min(deadline_us, target.now_us + _HIGH_WATERMARKS_US)
            while self._high_watermarks_differ() and target.now_us < deadline_us:
                self._advance(target.now_us + RECOVERY_CHECK_US)

    def _high_watermarks_differ(self) -> bool:
        observer = self.target.observer
        for partition in self.target.partition_names():
            views = [
                (broker, observer.replica(partition, broker)) for broker in observer.replicas_of(partition)
            ]
            offsets = {broker: view.hw for broker, view in views if view is not None}
            if _differ(offsets) and _differ(self._without_stuck(partition, offsets)):
                return True
        return False

    def _without_stuck(self, partition: str, offsets: Mapping[int, int]) -> dict[int, int]:
        """Return the offsets of replicas without those that damaged records hold up."""
        is_stuck = self.target.observer.is_stuck
        return {broker: offset for broker, offset in offsets.items() if not is_stuck(partition, broker)}

    def _missing_recovery(self) -> str | None:
        """Describe what has not recovered yet; None when everything has."""
        observer, unfinished = self.target.observer, self.target.clients.unfinished()
        if unfinished:
            verb = "was" if unfinished == 1 else "were"
            return f"{counted(unfinished, 'record')} {verb} still under way"
        environment = self.target.environment
        stopping = [broker for broker in environment.broker_ids() if environment.is_stopping(broker)]
        if stopping:
            return f"broker {stopping[0]} had not stopped"
        for partition in self.target.partition_names():
            replicas = observer.replicas_of(partition)
            state = observer.partition_state(partition)
            if state is None or state[0] < 0:
                return f"{partition} had no leader"
            ends: dict[int, int] = {}
            for broker in replicas:
                view = observer.replica(partition, broker)
                if view is None:
                    return f"a replica of {partition} was not started"
                ends[broker] = view.leo
            if len({*state[2]}) == len(replicas) and not _differ(ends):
                continue
            healthy = self._without_stuck(partition, ends)
            if len({*state[2], *(ends.keys() - healthy)}) < len(replicas):
                return f"the ISR of {partition} was {list(state[2])}"
            if _differ(healthy):
                return f"the replicas of {partition} had not caught up"
        return None

    def _unread_partitions(self) -> list[tuple[str, str, int]]:
        """Return the partitions that groups have not read to their end, with the offsets reached.

        The items are group, partition and offset. The run does not wait for a group without running
        members. If a transaction never ends, a group cannot read beyond it; `_settle` excludes such
        partitions after they are read back.
        """
        behind: list[tuple[str, str, int]] = []
        for group, members in self.target.clients.group_readers().items():
            if not any(member.is_running() for member in members):
                continue
            offsets = {name: offset for member in members for name, offset in member.positions().items()}
            for partition in members[0].sources():
                state = self.target.observer.partition_state(partition)
                leader = None if state is None else self.target.observer.replica(partition, state[0])
                if leader is not None and offsets.get(partition, 0) < leader.leo:
                    behind.append((group, partition, offsets.get(partition, 0)))
        return behind

    def _read_everything_back(self) -> None:
        """Let a new consumer read every partition from its beginning to its end.

        If it reads committed records only, the end is the last stable offset. The wait is long
        enough for coordinators to abort open transactions.
        """
        target = self.target
        self._describe_wait = lambda: "healed: everything is read back"
        reader = target.clients.start_reader()
        deadline_us = target.now_us + READ_BACK_LIMIT_US + target.clients.transactions_us
        while not (is_complete := self._is_read_back(reader)) and target.now_us < deadline_us:
            self._advance(target.now_us + RECOVERY_CHECK_US)
        for partition in target.partition_names():
            position = reader.position(partition)
            if position is not None and reader.is_held_up(partition):
                self._held_up[partition] = position
        self._read_back = frozenset(
            partition
            for partition in target.partition_names()
            if is_complete or partition in self._held_up or self._has_reached_end(reader, partition)
        )

    def _is_read_back(self, reader: Reader) -> bool:
        return reader.has_read_to_end() and all(
            self._has_reached_end(reader, partition) for partition in self.target.partition_names()
        )

    def _has_reached_end(self, reader: Reader, partition: str) -> bool:
        """Return whether the reader has reached the end of the leader's log (LEO)."""
        state = self.target.observer.partition_state(partition)
        leader = None if state is None else self.target.observer.replica(partition, state[0])
        return leader is not None and reader.position(partition) == leader.leo

    # The result

    def _final_mismatches(self) -> list[MissedExpectation]:
        final = self._plan.expect.final
        if final is None:
            return []
        self.target.observer.step_taken(0)
        patience = self.target.patience
        if patience is not None:
            until_us = self.target.now_us + patience.transient_us
            while not final.holds(self.target.observer) and self.target.step(until_us):
                pass
        return [MissedExpectation(line=0, message=line) for line in final.mismatches(self.target.observer)]

    def _evidence(self) -> Evidence:
        return replace(
            self.target.evidence(),
            read_back=self._read_back,
            held_up=self._held_up,
            unfinished=tuple(self._unfinished),
            not_struck=self.injector.reasons_not_struck() if self._given_up is None else (),
            behaviours=dict(self._plan.behaviours),
            invariants=self._watched,
            demanded=frozenset(self._plan.demand),
            core=self._core,
        )


def _is_expected(expect: Expectation, verdict: Verdict) -> bool:
    """Return whether the campaign expects this verdict, if no single expectation was missed."""
    if verdict.status == INCONCLUSIVE:
        return expect.verdict == INCONCLUSIVE
    return not expect.is_empty() or verdict.status in (HELD, PERMITTED)


def _outcome_of(verdict: Verdict, rule: str) -> str:
    if rule in verdict.rules:
        return verdict.rules[rule].status
    return "not tried" if rule in verdict.not_tried else "not judged"


def _missed_at_the_end(
    expect: Expectation, verdict: Verdict, not_judged: Collection[str]
) -> list[MissedExpectation]:
    if verdict.status == INCONCLUSIVE and expect.verdict != INCONCLUSIVE:
        # The run ended too early to decide. Its reasons are reported instead of the expectation.
        return []
    missed = []
    is_comparable = not any(rule in not_judged and status == expect.verdict for rule, status in expect.rules)
    if is_comparable and expect.verdict is not None and expect.verdict != verdict.status:
        missed.append(f"the verdict is {verdict.status}, expected {expect.verdict}")
    for rule, status in expect.rules:
        if rule in not_judged:
            continue
        outcome = _outcome_of(verdict, rule)
        if outcome != status:
            missed.append(f"{rule} is {outcome}, expected {status}")
    if expect.verdict is None and not expect.is_empty():
        expected_rules = {rule for rule, status in expect.rules if status == VIOLATED}
        missed += [
            f"{rule} is violated, but the campaign does not expect that"
            for rule, result in verdict.rules.items()
            if result.status == VIOLATED and rule not in expected_rules
        ]
    for rule, expected in (("lost-write", expect.lost), ("duplicate", expect.duplicated)):
        if expected is not None:
            judged = verdict.rules.get(rule)
            findings = () if judged is None else judged.findings
            actual = sorted({str(finding.value) for finding in findings if finding.value is not None})
            if actual != sorted(expected):
                name = "lost" if rule == "lost-write" else "duplicated"
                missed.append(
                    f"{name}: {', '.join(actual) or 'nothing'}; expected {', '.join(sorted(expected)) or 'nothing'}"
                )
    return [MissedExpectation(line=0, message=message) for message in missed]

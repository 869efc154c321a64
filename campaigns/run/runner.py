"""Runs a plan: simulate, heal (a core first, if the plan says so), recover, read everything back, judge.

``Plan + Choices -> RunResult``. There is one road: `harrow run` and everything that
runs plans in numbers come through `run_plan`.
"""

import gc
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final

from harrow.campaigns.clients.client import Reader
from harrow.campaigns.language.plan import Expectation, Plan
from harrow.campaigns.language.plan_cost import refusal
from harrow.campaigns.probes.probe_counter import NoticeCounter, count_probes
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
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.simulator import StepLimitExceeded
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND

_STEPS_UNCHECKED = 1_000
_YOUNG: Final = 0
_OLD: Final = 2
_EVENTS_COLLECTED: Final = 500_000
"""How often garbage is collected: brokers that have died hold themselves in circles, 7 MiB of them an hour."""
_OF_IDLE_FETCHES: Final = (FetchDelayed.name, FetchExpired.name, MessageDelivered.name)
RECOVERY_CHECK_US = 250 * US_PER_MS
_HIGH_WATERMARKS_US: Final = 30 * US_PER_SECOND
"""How long a recovered model is given to tell followers of high watermarks; of one that was told already no fetch tells again."""
READ_BACK_LIMIT_US = 120 * US_PER_SECOND


class CostlyPlan(ValueError):
    """A plan asks for more than its limits allow: memory, or faults that strike at once. The message says for what."""


class RunStopped(Exception):
    """Somebody does not want to wait for the end of a run; the message says why."""


def run_plan(
    plan: Plan,
    seed: int,
    choices: Choices | None = None,
    *,
    check: Callable[[], None] = lambda: None,
    measured: bool = False,
) -> RunResult:
    """Run a plan with the choices that *seed* stands for, or with the given ones.

    What the plan leaves open the seed decides first. *check* is called now and then; when it raises `RunStopped`
    the run ends there, and is inconclusive. *measured* is whether service levels are wanted, as numbers: with what
    judging has looked up they cost a few hundredths of a run, and later more than a tenth.

    The garbage collector rests meanwhile: a run keeps nearly all that it makes, so
    looking through it again and again finds nothing and takes an eighth of the time. Once in half a million events
    everything is looked through, and afterwards what the run made: the objects of a cluster refer to each other in cycles,
    so that reference counting never frees them.

    Raises:
        CostlyPlan: the plan asks for more than its limits allow. Campaign files are refused where they are read.

    """
    too_much = refusal(plan)
    if too_much is not None:
        raise CostlyPlan(too_much)
    collecting, collected = gc.isenabled(), _full_collections()
    gc.disable()
    try:
        made = draw_for_seed(plan, seed)
        # No name is left for the cluster, or it could not go below.
        result = Run(
            made.plan, seed, choices or Choices.from_seed(seed), check=check, measured=measured
        ).result()
        return result if made.plan is plan else replace(result, given=plan, drawn=made.values)
    finally:
        if collecting:
            gc.enable()
            # What has survived a collection is taken for old.
            gc.collect(_YOUNG if _full_collections() == collected else _OLD)


def _full_collections() -> int:
    collections: int = gc.get_stats()[_OLD]["collections"]
    return collections


class Run:
    """One run, from the cluster's start to its verdict.

    `result` goes through all phases. A caller that steers the run itself begins it, uses ``target`` and ``script``, and
    ends it. Without a *target* the run is on the model. From time to time the run calls *tell* with a function that
    says what the run waits for.
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
    ) -> None:
        self._check = check
        self._tell = tell
        self._awaits: Callable[[], str] = self._workload
        self._is_measured = measured or plan.expect.service is not None
        self._plan = plan
        self._awaited = awaited_events(plan)
        self._seed = seed
        watched = watched_in(plan.invariants, plan.kafka, plan.demand)
        self.target: Target = ModelTarget(plan, choices, watched) if target is None else target
        self._watched = frozenset(watched).intersection(self.target.invariants)
        self._noticed = NoticeCounter(self.target.trace)
        self._not_judged = {RULE_OF_INVARIANT[name] for name in watched if name not in self._watched}
        if self.target.patience is not None:
            self._not_judged.update(name for name, rule in RULES.items() if rule.goes_by_order)
        self.injector = FaultInjector(
            self.target, plan.cluster, choices.schedule, plan.blast_radius, plan.faults_limit
        )
        self.script = Script(plan.script, self.target, self.injector, plan.step_limit_us)
        self._unfinished: list[str] = []
        self._collection_at_event = _EVENTS_COLLECTED
        self._given_up: str | None = None
        # What a core did is unknown until its phase is over.
        self._core = None if plan.core is None else HealedCore()
        self._read_back: frozenset[str] = frozenset()
        self._held_up: dict[str, int] = {}
        self._behind: list[tuple[str, str, int]] = []
        self._final: list[MissedExpectation] = []

    def result(self) -> RunResult:
        return self._judged_after(self.begin, self._disturb, self._settle)

    def begin(self) -> None:
        """Start the cluster and its clients."""
        if not self._awaited.isdisjoint(_OF_IDLE_FETCHES):
            self.target.watch_fetches()
        self.target.start()
        self._check_started()
        self.target.clients.start()

    def end(self) -> RunResult:
        """Heal the cluster, let it recover, read everything back and judge."""
        return self._judged_after(self._settle)

    def _judged_after(self, *phases: Callable[[], None]) -> RunResult:
        try:
            for phase in phases:
                phase()
        except (StepLimitExceeded, RunStopped) as limit:
            self._given_up = f"the run was given up after {limit}"
            self._unfinished.append(self._given_up)
        evidence = self._evidence()
        index = Index(evidence)
        verdict = judge(evidence, index)
        missed = [*self.script.missed, *self._final]
        missed += _missed_at_the_end(self._plan.expect, verdict, self._not_judged)
        trace = self.target.trace
        probes = count_probes(trace.events, self._noticed.counts)
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
            trace_digest=trace.digest(),
            events=self.target.events_handled,
            # A run may be given up before its cluster is ready, which it is at time zero.
            simulated_us=max(0, self.target.now_us),
            operated=tuple(self.script.operated),
            unseen=tuple(self.script.unseen),
            given_up=self._given_up,
            hurried=tuple(self.script.hurried),
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
        """Workload, script and faults, up to the last of them."""
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
            self._unfinished.append(self.script.waits_for())
        self.injector.stop()

    def _run_step_by_step(self, limit_us: int) -> None:
        """Handle one event at a time, and look at the conditions after each."""
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
            if target.patience is not None or not steps % _STEPS_UNCHECKED:
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
        while script.is_looking() and target.step(limit_us):
            script.advance()
        script.look_no_more()

    def _advance(self, end_us: int) -> None:
        """Let the target run, and look after each of its seconds whether it is still to."""
        self._check_and_pack()
        while self.target.now_us + US_PER_SECOND < end_us:
            self.target.advance(self.target.now_us + US_PER_SECOND)
            self._check_and_pack()
        self.target.advance(end_us)

    def _check_and_pack(self) -> None:
        """Look whether the run is to go on, say what it waits for, and let go what a long one needs no more."""
        self._check()
        self._tell(self._awaits)
        self.target.trace.pack()
        if self.target.events_handled >= self._collection_at_event:
            self._collection_at_event = self.target.events_handled + _EVENTS_COLLECTED
            gc.collect()

    def _workload(self) -> str:
        """Return what a run waits for before its faults are over."""
        if not self.script.is_finished():
            return self.script.lacks()
        left_us = max(self._plan.duration_us - self.target.now_us, 0)
        return f"{left_us // US_PER_SECOND} s of the workload are left"

    def _recovery(self) -> str:
        """Return what a healed run waits for."""
        reason = self._not_recovered()
        if reason is not None:
            return f"healed: {reason}"
        behind = [
            f"group {group} has not read {partition} to its end" for group, partition, _ in self._behind
        ]
        return f"healed: {behind[0] if behind else 'it looks once more'}"

    def _settle(self) -> None:
        """Heal, recover, look at what the campaign expects of the end, and read everything back."""
        if self._plan.core is not None:
            self._core = CoreRecovery(self.target, self._plan, self._plan.core).run()
        self._recover()
        self._final = self._final_mismatches()
        self._read_everything_back()
        self._unfinished += [
            f"group {group} had not read {partition} to its end"
            for group, partition, reached in self._behind
            if reached < self._held_up.get(partition, reached + 1)
        ]

    def _recover(self) -> None:
        """Heal, and wait until every replica is in sync, every send has been reported, and applications have read their input."""
        target = self.target
        target.heal()
        self._awaits = self._recovery
        deadline_us = target.now_us + self._plan.recovery_limit_us
        reason, self._behind = self._not_recovered(), self._not_processed()
        while (reason is not None or self._behind) and target.now_us < deadline_us:
            self._advance(target.now_us + RECOVERY_CHECK_US)
            reason, self._behind = self._not_recovered(), self._not_processed()
        if reason is not None:
            self._unfinished.append(f"{reason} at the end")
            self._behind = []
        if reason is not None or self._behind:
            return
        if target.patience is None:
            # Where nothing is written any more a follower may never learn the high watermark. A fetch session leaves out what it has told
            # (KIP-227), also in an answer that the follower has dropped for a new leader epoch, or that said where the logs diverge (KIP-595).
            deadline_us = min(deadline_us, target.now_us + _HIGH_WATERMARKS_US)
            while self._high_watermarks_differ() and target.now_us < deadline_us:
                self._advance(target.now_us + RECOVERY_CHECK_US)

    def _high_watermarks_differ(self) -> bool:
        observer = self.target.observer
        for partition in self.target.partition_names():
            of_all = observer.replicas_of(partition)
            brokers = [broker for broker in of_all if not observer.is_stuck(partition, broker)]
            views = [observer.replica(partition, broker) for broker in brokers]
            if len({view.hw for view in views if view is not None}) > 1:
                return True
        return False

    def _not_recovered(self) -> str | None:
        """Return what is still missing of the cluster after the faults, and of what was sent; None when all is well."""
        observer, unfinished = self.target.observer, self.target.clients.unfinished()
        if unfinished:
            return f"{unfinished} records were still under way"
        environment = self.target.environment
        stopping = [broker for broker in environment.broker_ids() if environment.is_stopping(broker)]
        if stopping:
            return f"broker {stopping[0]} had not stopped"
        for partition in self.target.partition_names():
            replicas = observer.replicas_of(partition)
            state = observer.partition_state(partition)
            if state is None or state[0] < 0:
                return f"{partition} had no leader"
            views = [observer.replica(partition, broker) for broker in replicas]
            if any(view is None for view in views):
                return f"a replica of {partition} was not started"
            stuck = [broker for broker in replicas if observer.is_stuck(partition, broker)]
            if len({*state[2], *stuck}) < len(replicas):
                return f"the ISR of {partition} was {list(state[2])}"
            whole = [view for broker, view in zip(replicas, views, strict=True) if broker not in stuck]
            if len({view.leo for view in whole if view is not None}) > 1:
                return f"the replicas of {partition} had not caught up"
        return None

    def _not_processed(self) -> list[tuple[str, str, int]]:
        """Return the group, the partition and how far that was read, where an application has not read its input to the end.

        A group without a running member is not waited for. One that stands before a transaction which nothing ends any more has read what there is for it:
        which partitions have one is known once everything has been read back, and what to say of that is for a rule.
        """
        found: list[tuple[str, str, int]] = []
        for group, members in self.target.clients.group_readers().items():
            if not any(member.is_running() for member in members):
                continue
            reached = {name: offset for member in members for name, offset in member.reached().items()}
            for partition in members[0].sources():
                state = self.target.observer.partition_state(partition)
                leader = None if state is None else self.target.observer.replica(partition, state[0])
                if leader is not None and reached.get(partition, 0) < leader.leo:
                    found.append((group, partition, reached.get(partition, 0)))
        return found

    def _read_everything_back(self) -> None:
        """Read every partition from its beginning to its end, as a new consumer.

        With read_committed that is the last stable offset, for whatever was open has been aborted when the time is over.
        """
        target = self.target
        self._awaits = lambda: "healed: everything is read back"
        reader = target.clients.start_reader()
        deadline_us = target.now_us + READ_BACK_LIMIT_US + target.clients.transactions_us
        while not self._is_read_back(reader) and target.now_us < deadline_us:
            self._advance(target.now_us + RECOVERY_CHECK_US)
        for partition in target.partition_names():
            position = reader.position(partition)
            if position is not None and reader.is_held_up(partition):
                self._held_up[partition] = position
        self._read_back = frozenset(
            p for p in target.partition_names() if self._ends_at(reader, p) or p in self._held_up
        )

    def _is_read_back(self, reader: Reader) -> bool:
        return reader.has_read_to_end() and all(
            self._ends_at(reader, partition) for partition in self.target.partition_names()
        )

    def _ends_at(self, reader: Reader, partition: str) -> bool:
        """Return whether the reader has reached the leader's LEO, with nothing above its HW."""
        state = self.target.observer.partition_state(partition)
        leader = None if state is None else self.target.observer.replica(partition, state[0])
        return leader is not None and reader.position(partition) == leader.leo

    # What is left behind

    def _final_mismatches(self) -> list[MissedExpectation]:
        final = self._plan.expect.final
        if final is None:
            return []
        self.target.observer.step_taken(0)
        patience = self.target.patience
        if patience is not None:
            until_us = self.target.now_us + patience.passing_us
            while not final.holds(self.target.observer) and self.target.step(until_us):
                pass
        return [MissedExpectation(line=0, message=line) for line in final.mismatches(self.target.observer)]

    def _evidence(self) -> Evidence:
        return replace(
            self.target.evidence(),
            read_back=self._read_back,
            held_up=self._held_up,
            unfinished=tuple(self._unfinished),
            not_struck=self.injector.misses() if self._given_up is None else (),
            behaviours=dict(self._plan.behaviours),
            invariants=self._watched,
            demanded=frozenset(self._plan.demand),
            core=self._core,
        )


def _is_expected(expect: Expectation, verdict: Verdict) -> bool:
    """Return whether a verdict that misses nothing in particular is what a campaign expects."""
    if verdict.status == INCONCLUSIVE:
        return expect.verdict == INCONCLUSIVE
    return not expect.is_empty() or verdict.status in (HELD, PERMITTED)


def _missed_at_the_end(
    expect: Expectation, verdict: Verdict, not_judged: Collection[str]
) -> list[MissedExpectation]:
    if verdict.status == INCONCLUSIVE and expect.verdict != INCONCLUSIVE:
        # The run did not get far enough to tell: its reasons are reported, not the expectation.
        return []
    missed = []
    is_told = not any(rule in not_judged and status == expect.verdict for rule, status in expect.rules)
    if is_told and expect.verdict is not None and expect.verdict != verdict.status:
        missed.append(f"the verdict is {verdict.status}, expected {expect.verdict}")
    for rule, status in expect.rules:
        if rule in not_judged:
            continue
        judged = verdict.rules.get(rule)
        found = "not judged" if judged is None else judged.status
        if found != status:
            missed.append(f"{rule} is {found}, expected {status}")
    if expect.verdict is None and not expect.is_empty():
        foreseen = {rule for rule, status in expect.rules if status == VIOLATED}
        missed += [
            f"{rule} is violated, which nothing here expects"
            for rule, result in verdict.rules.items()
            if result.status == VIOLATED and rule not in foreseen
        ]
    for rule, wanted in (("lost-write", expect.lost), ("duplicate", expect.duplicated)):
        if wanted is not None:
            actual = sorted({str(f.value) for f in verdict.rules[rule].findings if f.value is not None})
            if actual != sorted(wanted):
                name = "lost" if rule == "lost-write" else "duplicated"
                missed.append(
                    f"{name}: {', '.join(actual) or 'nothing'}; expected {', '.join(sorted(wanted)) or 'nothing'}"
                )
    return [MissedExpectation(line=0, message=message) for message in missed]

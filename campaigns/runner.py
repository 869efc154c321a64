"""Runs a plan: simulate, heal (a core first, if the plan says so), recover, read everything back, judge.

``Plan + Choices -> RunResult``. There is one road: `harrow run` and everything that
runs plans in numbers come through `run_plan`.
"""

import gc
from collections.abc import Callable
from dataclasses import replace

from campaigns.clients import Clients, ConsumerClient
from campaigns.core_recovery import CoreRecovery
from campaigns.fault_injector import FaultInjector
from campaigns.observer import ClusterObserver
from campaigns.plan import Expect, Expectation, Plan
from campaigns.probe_counter import count_probes
from campaigns.probes import never_reached
from campaigns.run_result import MissedExpectation, RunResult
from campaigns.script import Script
from campaigns.swarm import drawn
from checks.catalogue import watched_in
from checks.evidence import Evidence, HealedCore, PartitionSettings, ReplicaLog, StoredBatch
from checks.finding import HELD, INCONCLUSIVE, PERMITTED, VIOLATED, Verdict
from checks.judge import judge
from cluster_model.choices import Choices
from cluster_model.cluster import Cluster
from cluster_model.replica_log import ReplicaLog as ModelLog
from cluster_model.simulator import StepLimitExceeded
from cluster_model.trace import digest
from cluster_model.virtual_time import US_PER_MS, US_PER_SECOND
from faults.injection import When

RECOVERY_CHECK_US = 250 * US_PER_MS
READ_BACK_LIMIT_US = 120 * US_PER_SECOND


def run_plan(plan: Plan, seed: int, choices: Choices | None = None) -> RunResult:
    """Run a plan with the choices that *seed* stands for, or with the given ones.

    What the plan leaves open the seed decides first.

    The garbage collector rests meanwhile: a run keeps nearly all that it makes, so
    looking through it again and again finds nothing and takes an eighth of the time. Afterwards
    what it made is looked through once: a cluster holds itself in circles, and would stay for ever.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        made = drawn(plan, seed)
        result = Run(made.plan, seed, choices or Choices.from_seed(seed)).result()
        return result if made.plan is plan else replace(result, given=plan, drawn=made.values)
    finally:
        if collecting:
            gc.enable()
            gc.collect(0)


class Run:
    """One run, from the cluster's start to its verdict.

    `result` goes through all phases. What steers a run itself (`campaigns.live_run`) begins it, does
    what it likes with ``cluster``, ``clients`` and ``injector``, and ends it.
    """

    def __init__(self, plan: Plan, seed: int, choices: Choices) -> None:
        self._plan = plan
        self._seed = seed
        self._watched = watched_in(plan.invariants, plan.kafka, plan.demand)
        self.cluster = Cluster(
            plan.cluster,
            plan.kafka,
            plan.behaviour_switches(),
            choices,
            plan.events_limit,
            self._watched,
        )
        self.clients = Clients(plan.producers, plan.consumers, self.cluster, plan.kafka)
        self._observer = ClusterObserver(self.cluster, self.clients)
        self.injector = FaultInjector(self.cluster, self.clients, self._observer, survivable=plan.survivable)
        self._script = Script(plan.script, self.cluster, self.clients, self.injector, self._observer)
        self._unfinished: list[str] = []
        self._given_up: str | None = None
        # What a core did is unknown until its phase is over.
        self._core = None if plan.core is None else HealedCore()
        self._read_back: frozenset[str] = frozenset()
        self._final: list[MissedExpectation] = []

    def result(self) -> RunResult:
        """Go through all phases."""
        return self._judged_after(self.begin, self._disturb, self._settle)

    def begin(self) -> None:
        """Start the cluster and its clients."""
        self.cluster.start()
        self._check_started()
        self.clients.start()

    def end(self) -> RunResult:
        """Heal the cluster, let it recover, read everything back and judge."""
        return self._judged_after(self._settle)

    def _judged_after(self, *phases: Callable[[], None]) -> RunResult:
        try:
            for phase in phases:
                phase()
        except StepLimitExceeded as limit:
            self._given_up = f"the run was given up after {limit}"
            self._unfinished.append(self._given_up)
        evidence = self._evidence()
        verdict = judge(evidence)
        missed = [*self._script.missed, *self._final]
        missed += _missed_at_the_end(self._plan.expect, verdict)
        expected = not missed and _is_expected(self._plan.expect, verdict)
        trace = self.cluster.trace
        probes = count_probes(trace.events)
        return RunResult(
            plan=self._plan,
            seed=self._seed,
            verdict=verdict,
            expected=expected,
            missed=tuple(missed),
            evidence=evidence,
            faults=tuple(self.injector.injected),
            probes=probes,
            probes_missed=never_reached((probes,), self._plan.expect.probes),
            trace_digest=digest(trace.events),
            events=self.cluster.simulator.events_handled,
            simulated_us=self.cluster.simulator.now_us,
            operated=tuple(self._script.operated),
            given_up=self._given_up,
        )

    def _check_started(self) -> None:
        for partition in self._plan.cluster.partition_names():
            if self.cluster.partition_state(partition) is None:
                self._unfinished.append(f"{partition} had no leader when the campaign began")

    # Phases

    def _disturb(self) -> None:
        """Workload, script and faults, up to the last of them."""
        plan = self._plan
        for injection in plan.faults:
            self.injector.schedule(injection)
        self._watch_messages_if_wanted()
        limit_us = plan.script_limit_us
        if plan.script or self.injector.has_triggers():
            self._run_step_by_step(limit_us)
        self.cluster.simulator.run_until(plan.duration_us)
        if not self._script.is_finished():
            self._unfinished.append(self._script.waits_for())
        self.injector.stop()

    def _run_step_by_step(self, limit_us: int) -> None:
        """Handle one event at a time, and look at the conditions after each."""
        simulator = self.cluster.simulator
        script = self._script
        script.advance()
        while not script.is_finished() or (
            self.injector.has_triggers() and simulator.now_us < self._plan.duration_us
        ):
            due_us = script.due_us()
            waits_for_time = due_us is not None and due_us > simulator.now_us
            end_us = min(limit_us, due_us) if due_us is not None and waits_for_time else limit_us
            if script.is_finished():
                end_us = min(end_us, self._plan.duration_us)
            if not simulator.step(end_us):
                simulator.run_until(end_us)
                if simulator.now_us >= limit_us or script.is_finished():
                    break
            if self.injector.has_triggers():
                self.injector.check_triggers()
            script.advance()

    def _watch_messages_if_wanted(self) -> None:
        """Put every message into the trace if a condition asks for messages; it is not cheap."""
        plan = self._plan
        conditions = [step.when for step in plan.script]
        conditions += [a.condition for step in plan.script for a in step.actions if isinstance(a, Expect)]
        conditions += [i.timing.condition for i in plan.faults if isinstance(i.timing, When)]
        conditions.append(plan.expect.final)
        wanted = [e for c in conditions if c is not None for e in (*c.events, *c.no_events)]
        if any(event.event == "message" for event in wanted):
            self.cluster.network.watch_messages()

    def _settle(self) -> None:
        """Heal, recover, look at what the campaign expects of the end, and read everything back."""
        if self._plan.core is not None:
            settings = self._all_partition_settings()
            self._core = CoreRecovery(self.cluster, self.clients, settings, self._plan.core).run()
        self._recover()
        self._final = self._final_mismatches()
        self._read_everything_back()

    def _recover(self) -> None:
        """Heal, and wait until every replica is in sync and every send has been reported."""
        simulator = self.cluster.simulator
        self.cluster.heal()
        deadline_us = simulator.now_us + self._plan.recovery_limit_us
        while self._not_recovered() is not None and simulator.now_us < deadline_us:
            simulator.run_until(simulator.now_us + RECOVERY_CHECK_US)
        reason = self._not_recovered()
        if reason is not None:
            self._unfinished.append(reason)

    def _not_recovered(self) -> str | None:
        """Return what is still missing after the faults; None when all is well."""
        if self.clients.unfinished():
            return f"{self.clients.unfinished()} records were still under way at the end"
        for partition in self._plan.cluster.partition_names():
            replicas = self.cluster.replicas_of(partition)
            state = self.cluster.partition_state(partition)
            if state is None or state.leader < 0:
                return f"{partition} had no leader at the end"
            logs = [self._live_log(partition, broker) for broker in replicas]
            if any(log is None for log in logs):
                return f"a replica of {partition} was not started at the end"
            if len(state.isr) < len(replicas):
                return f"the ISR of {partition} was {list(state.isr)} at the end"
            if len({(log.log_end_offset, log.high_watermark) for log in logs if log is not None}) > 1:
                return f"the replicas of {partition} had not caught up at the end"
        return None

    def _live_log(self, partition: str, broker: int) -> ModelLog | None:
        life = self.cluster.brokers.get(broker)
        found = None if life is None else life.replicas.partitions.get(partition)
        return None if found is None else found.log

    def _read_everything_back(self) -> None:
        """Read every partition from its beginning to its end, as a new consumer."""
        simulator = self.cluster.simulator
        reader = self.clients.start_reader()
        deadline_us = simulator.now_us + READ_BACK_LIMIT_US
        while not self._is_read_back(reader) and simulator.now_us < deadline_us:
            simulator.run_until(simulator.now_us + RECOVERY_CHECK_US)
        self._read_back = frozenset(
            p for p in self._plan.cluster.partition_names() if self._ends_at(reader, p)
        )

    def _is_read_back(self, reader: ConsumerClient) -> bool:
        consumer = reader.consumer
        return (
            consumer is not None
            and consumer.has_read_to_end()
            and all(self._ends_at(reader, p) for p in self._plan.cluster.partition_names())
        )

    def _ends_at(self, reader: ConsumerClient, partition: str) -> bool:
        """Return whether the reader has reached the leader's LEO, with nothing above its HW."""
        state = self.cluster.partition_state(partition)
        log = None if state is None else self._live_log(partition, state.leader)
        consumer = reader.consumer
        return log is not None and consumer is not None and consumer.position[partition] == log.log_end_offset

    # What is left behind

    def _final_mismatches(self) -> list[MissedExpectation]:
        final = self._plan.expect.final
        if final is None:
            return []
        self._observer.step_taken(0)
        return [MissedExpectation(line=0, message=line) for line in final.mismatches(self._observer)]

    def _evidence(self) -> Evidence:
        cluster = self.cluster
        return Evidence(
            release=self._plan.kafka,
            operations=cluster.history.operations,
            trace=cluster.trace.events,
            process_names=cluster.history.process_names,
            producers=self.clients.producer_settings(),
            partitions=self._all_partition_settings(),
            replicas={name: self._replica_logs(name) for name in self._plan.cluster.partition_names()},
            read_back=self._read_back,
            unfinished=tuple(self._unfinished),
            behaviours=dict(self._plan.behaviours),
            invariants=frozenset(self._watched),
            demanded=frozenset(self._plan.demand),
            core=self._core,
        )

    def _all_partition_settings(self) -> dict[str, PartitionSettings]:
        return {name: self._partition_settings(name) for name in self._plan.cluster.partition_names()}

    def _partition_settings(self, partition: str) -> PartitionSettings:
        config = self.cluster.topic_config(partition.rsplit("-", 1)[0])
        return PartitionSettings(
            replicas=self.cluster.replicas_of(partition),
            min_insync_replicas=config.min_insync_replicas,
            unclean_leader_election=config.unclean_leader_election,
            flush_messages=config.flush_messages,
        )

    def _replica_logs(self, partition: str) -> dict[int, ReplicaLog]:
        """Return the replicas' logs: as their brokers have them, else as their disks do."""
        found = {}
        state = self.cluster.partition_state(partition)
        for broker in self.cluster.replicas_of(partition):
            live = self._live_log(partition, broker)
            file = self.cluster.disks[broker].log_file(partition)
            found[broker] = ReplicaLog(
                leo=file.log_end_offset,
                hw=0 if live is None else live.high_watermark,
                flushed=file.flushed_offset,
                epochs=tuple(self.cluster.disks[broker].epoch_checkpoint(partition)),
                batches=tuple(
                    StoredBatch(
                        base_offset=batch.base_offset,
                        leader_epoch=batch.leader_epoch,
                        producer_id=batch.producer_id,
                        base_sequence=batch.base_sequence,
                        values=batch.values,
                    )
                    for batch in file.batches
                ),
                in_sync=state is not None and broker in state.isr,
            )
        return found


def _is_expected(expect: Expectation, verdict: Verdict) -> bool:
    """Return whether a verdict that misses nothing in particular is what a campaign expects."""
    if verdict.status == INCONCLUSIVE:
        return expect.verdict == INCONCLUSIVE
    return not expect.is_empty() or verdict.status in (HELD, PERMITTED)


def _missed_at_the_end(expect: Expectation, verdict: Verdict) -> list[MissedExpectation]:
    """Compare a verdict with what the campaign expects of it."""
    if verdict.status == INCONCLUSIVE and expect.verdict != INCONCLUSIVE:
        # The run did not get far enough to tell: its reasons are reported, not the expectation.
        return []
    missed = []
    if expect.verdict is not None and expect.verdict != verdict.status:
        missed.append(f"the verdict is {verdict.status}, expected {expect.verdict}")
    for rule, status in expect.rules:
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

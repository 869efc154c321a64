"""Whether what a real cluster did is among what the model allows."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED, SKIPPED
from harrow.checks.promise import NONMONOTONIC_SEND
from harrow.cluster_model.invariants.catalogue import INVARIANTS
from harrow.cluster_model.topology import HIGHEST_FINISHED, WATERMARK
from harrow.live_cluster.reach.rehearsal import applications_of

AGREED: Final = "agreed"
DIFFERS: Final = "differs"
NOT_COMPARED: Final = "skipped"

Conformity = Literal["agreed", "differs", "skipped"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run, as far as the model and real brokers both tell.

    ``rules`` are those that both judge, with their status. Of a campaign whose records a script sends, ``lost`` and ``doubled`` are
    values, and ``logs`` those of the replicas, by partition and broker; of generated ones, which are others in each run,
    whether there were any. What workers in parallel write is in another order in each run, and in no log here. ``in_sync`` are the brokers in the ISR at the end, by partition.
    """

    rules: tuple[tuple[str, str], ...]
    lost: tuple[str, ...]
    doubled: tuple[str, ...]
    logs: tuple[tuple[str, int, tuple[str | None, ...]], ...]
    in_sync: tuple[tuple[str, tuple[int, ...]], ...]

    def differences(self, other: "Outcome") -> list[str]:
        """Return in words where another outcome parts from this one."""
        theirs = dict(other.rules)
        found = [
            f"{rule}: {status}, and {theirs[rule]}" for rule, status in self.rules if theirs[rule] != status
        ]
        for name, mine, its in (("lost", self.lost, other.lost), ("doubled", self.doubled, other.doubled)):
            if mine != its:
                found.append(f"{name}: {', '.join(mine) or 'nothing'}, and {', '.join(its) or 'nothing'}")
        known = {(partition, broker): values for partition, broker, values in other.logs}
        found += [
            f"{partition} on broker {broker}: {list(values)}, and {list(known.get((partition, broker), ()))}"
            for partition, broker, values in self.logs
            if known.get((partition, broker)) != values
        ]
        isrs = dict(other.in_sync)
        found += [
            f"ISR of {partition}: {list(isr)}, and {list(isrs.get(partition, ()))}"
            for partition, isr in self.in_sync
            if isrs.get(partition) != isr
        ]
        return found


@dataclass(frozen=True, slots=True)
class Service:
    """How clients with a workload of their own were served in a run: as real time and the model's are not the same, nothing to differ in."""

    sent: int
    acked: int
    ack_p50_us: int
    ack_p99_us: int
    without_ack_us: int
    """The longest time for which no producer that sent to a partition got an ack."""


@dataclass(frozen=True, slots=True)
class ModelledRun:
    """What is compared of a run on the model; no outcome where that comes to no verdict."""

    outcome: Outcome | None
    service: tuple[Service, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A plan on a real target and on the model. ``real`` are the runs there, ``modelled`` how often the model came to what.

    ``reasons`` say why nothing was compared, or in which respects the real runs part from what of the model is nearest.
    ``service`` is of the real runs that were decided, ``modelled_service`` of the model's; of scripts there is none.
    """

    plan: Plan
    status: Conformity
    real: tuple[RunResult, ...]
    modelled: tuple[tuple[Outcome, int], ...]
    reasons: tuple[str, ...]
    service: tuple[Service, ...] = ()
    modelled_service: tuple[Service, ...] = ()

    def alike(self, run: RunResult) -> int:
        """Return how many runs of the model came to what a real one did; none where that was not decided."""
        if run.verdict.status in (SKIPPED, INCONCLUSIVE):
            return 0
        outcome = outcome_of(run)
        return sum(count for known, count in self.modelled if not outcome.differences(known))


def modelled_run(plan: Plan, seed: int) -> ModelledRun:
    """Run a plan on the model, and keep what is compared: with its trace a run of minutes takes a lot of memory."""
    return compared_part(run_plan(plan, seed))


def compared_part(result: RunResult) -> ModelledRun:
    """Return what is compared of a run on the model."""
    if result.verdict.status == INCONCLUSIVE:
        return ModelledRun(None, ())
    return ModelledRun(outcome_of(result), tuple(service_of(result)))


def compared(plan: Plan, real: Sequence[RunResult], model: Iterable[ModelledRun]) -> Comparison:
    """Compare runs of a plan on real brokers with runs of it on the model, which are asked for only if any of the former was decided."""
    decided = [run for run in real if run.verdict.status not in (SKIPPED, INCONCLUSIVE)]
    outcomes: Counter[Outcome] = Counter()
    modelled_service: list[Service] = []
    for made in model if decided else ():
        if made.outcome is not None:
            outcomes[made.outcome] += 1
            modelled_service += made.service
    modelled = outcomes.most_common()
    reasons: list[str] = []
    status: Conformity = AGREED
    if not modelled:
        status = NOT_COMPARED
        reasons += dict.fromkeys(reason for run in real for reason in run.verdict.reasons)
        if decided:
            reasons.append("the model comes to no verdict")
    for run in decided if modelled else ():
        nearest = min((outcome_of(run).differences(outcome) for outcome, _ in modelled), key=len)
        if nearest:
            status = DIFFERS
            reasons += nearest
    return Comparison(
        plan=plan,
        status=status,
        real=tuple(real),
        modelled=tuple(modelled),
        reasons=tuple(reasons),
        service=tuple(service for run in decided for service in service_of(run)),
        modelled_service=tuple(modelled_service),
    )


def service_of(result: RunResult) -> Iterator[Service]:
    """Yield how clients were served, where they sent by themselves and got an ack."""
    if _is_scripted(result.plan):
        return
    levels = result.measured
    latency = levels.total.ack_latency
    if latency is not None:
        yield Service(
            levels.total.sent, levels.total.acked, latency.p50_us, latency.p99_us, levels.longest_us
        )


def _is_scripted(plan: Plan) -> bool:
    return all(producer.interval_us is None for producer in plan.producers)


def outcome_of(result: RunResult) -> Outcome:
    """Return what came of a run."""
    rules = result.verdict.rules
    is_scripted = _is_scripted(result.plan)

    def values(rule: str) -> tuple[str, ...]:
        found = sorted({str(finding.value) for finding in rules[rule].findings})
        return tuple(found if is_scripted else ["some"] * bool(found))

    def status(name: str) -> str:
        found = rules[name].status
        # When a connection is lost with several requests in flight, the Java client of the model turns their order round
        # (`oldest_request_fails_first`), and librdkafka keeps it. Where the settings permit either, either is right.
        is_clients = name == NONMONOTONIC_SEND and not is_scripted
        return HELD if is_clients and found == PERMITTED else found

    evidence = result.evidence
    unordered = {
        application.target
        for application in applications_of(result.plan)
        if application.delivery in (WATERMARK, HIGHEST_FINISHED)
    }
    return Outcome(
        rules=tuple((name, status(name)) for name in sorted(rules) if name not in INVARIANTS),
        lost=values("lost-write"),
        doubled=values("duplicate"),
        logs=tuple(
            (partition, broker, tuple(log.values()))
            for partition, logs in sorted(evidence.replicas.items())
            if partition.rpartition("-")[0] not in unordered
            for broker, log in sorted(logs.items())
            # A log that could not be read to its end says nothing of what follows.
            if len(log.values()) == log.leo
        )
        if is_scripted
        else (),
        in_sync=tuple(
            (partition, tuple(sorted(broker for broker, log in logs.items() if log.in_sync)))
            for partition, logs in sorted(evidence.replicas.items())
        ),
    )

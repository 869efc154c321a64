"""Compares runs on real brokers with runs of the same plan on the model."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED, SKIPPED
from harrow.checks.promise import NONMONOTONIC_SEND
from harrow.cluster_model.invariants.catalogue import INVARIANTS
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.topology import HIGHEST_FINISHED, WATERMARK
from harrow.live_cluster.reach.rehearsal import applications_of

AGREED: Final = "agreed"
DIFFERS: Final = "differs"
NOT_COMPARED: Final = "skipped"
NOT_TRIED: Final = "not tried"
"""Nothing in the run could have broken the rule. Only a broken rule differs from this."""

Conformity = Literal["agreed", "differs", "skipped"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The part of a run's result that can be equal on the model and on real brokers.

    ``rules`` has the status of each rule that applies to both. If a script sends the records,
    ``lost`` and ``doubled`` have their values, and ``logs`` has the replicas' logs by partition and
    broker. Generated records differ between runs, so for them ``lost`` and ``doubled`` only say
    whether any record was lost or doubled. Parallel workers write in a different order in each run,
    so ``logs`` omits their topics. ``in_sync`` has the final ISR of each partition.
    """

    rules: tuple[tuple[str, str], ...]
    lost: tuple[str, ...]
    doubled: tuple[str, ...]
    logs: tuple[tuple[str, int, tuple[str | None, ...]], ...]
    in_sync: tuple[tuple[str, tuple[int, ...]], ...]

    def differences(self, other: "Outcome") -> list[str]:
        """Describe the differences to another outcome."""
        rules = dict(other.rules)
        differences = [
            f"{rule}: {status}, and {rules[rule]}"
            for rule, status in self.rules
            if status != rules[rule] and {status, rules[rule]} != {HELD, NOT_TRIED}
        ]
        for name, own_values, other_values in (
            ("lost", self.lost, other.lost),
            ("doubled", self.doubled, other.doubled),
        ):
            if own_values != other_values:
                differences.append(
                    f"{name}: {', '.join(own_values) or 'nothing'}, and {', '.join(other_values) or 'nothing'}"
                )
        logs = {(partition, broker): values for partition, broker, values in other.logs}
        differences += [
            f"{partition} on broker {broker}: {list(values)}, and {list(logs.get((partition, broker), ()))}"
            for partition, broker, values in self.logs
            if logs.get((partition, broker)) != values
        ]
        isrs = dict(other.in_sync)
        differences += [
            f"ISR of {partition}: {list(isr)}, and {list(isrs.get(partition, ()))}"
            for partition, isr in self.in_sync
            if isrs.get(partition) != isr
        ]
        return differences

    def untried(self, other: "Outcome") -> list[str]:
        """Return the rules that this run, the other one or both did not try."""
        rules = dict(other.rules)
        return [rule for rule, status in self.rules if NOT_TRIED in (status, rules[rule])]


@dataclass(frozen=True, slots=True)
class Service:
    """Throughput and latency of generated workloads.

    harrow shows them without a comparison, because times differ.
    """

    sent: int
    acked: int
    ack_p50_us: int
    ack_p99_us: int
    without_ack_us: int
    """The longest time in which no producer of a partition got an ack."""


@dataclass(frozen=True, slots=True)
class ModelledRun:
    """The comparable part of a run on the model. Its outcome is None if the run is inconclusive."""

    outcome: Outcome | None
    service: tuple[Service, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A comparison of ``real`` runs with runs on the model.

    ``modelled`` has the outcomes on the model, each with the number of runs that had it.
    ``reasons`` say why there was no comparison, or how the real runs differ from the nearest
    outcome of the model. ``not_tried`` are the rules that a real run and its nearest outcome did
    not both try, so they were not compared. ``service`` comes from conclusive real runs,
    ``modelled_service`` from runs on the model. Scripted workloads have no service levels.
    """

    plan: Plan
    status: Conformity
    real: tuple[RunResult, ...]
    modelled: tuple[tuple[Outcome, int], ...]
    reasons: tuple[str, ...]
    not_tried: tuple[str, ...] = ()
    service: tuple[Service, ...] = ()
    modelled_service: tuple[Service, ...] = ()

    def count_equal_runs(self, run: RunResult) -> int:
        """Count the model's runs with the outcome of a real run; 0 if that run is inconclusive."""
        if run.verdict.status in (SKIPPED, INCONCLUSIVE):
            return 0
        outcome = outcome_of(run)
        return sum(count for modelled, count in self.modelled if not outcome.differences(modelled))


def run_on_model(plan: Plan, seed: int) -> ModelledRun:
    """Run a plan on the model, and keep only the comparable part, because traces are large."""
    return comparable_part(run_plan(plan, seed))


def comparable_part(result: RunResult) -> ModelledRun:
    if result.verdict.status == INCONCLUSIVE:
        return ModelledRun(None, ())
    return ModelledRun(outcome_of(result), tuple(service_of(result)))


def compare_runs(plan: Plan, real: Sequence[RunResult], model: Iterable[ModelledRun]) -> Comparison:
    """Compare runs of a plan on real brokers and on the model.

    The model runs only if a real run is conclusive.
    """
    conclusive = [run for run in real if run.verdict.status not in (SKIPPED, INCONCLUSIVE)]
    outcomes: Counter[Outcome] = Counter()
    modelled_service: list[Service] = []
    for modelled_part in model if conclusive else ():
        if modelled_part.outcome is not None:
            outcomes[modelled_part.outcome] += 1
            modelled_service += modelled_part.service
    modelled = outcomes.most_common()
    reasons: list[str] = []
    status: Conformity = AGREED
    if not modelled:
        status = NOT_COMPARED
        reasons += dict.fromkeys(reason for run in real for reason in run.verdict.reasons)
        if conclusive:
            reasons.append("the model reached no verdict")
    not_tried: set[str] = set()
    for run in conclusive if modelled else ():
        outcome = outcome_of(run)
        differences, untried = min(
            ((outcome.differences(each), outcome.untried(each)) for each, _ in modelled),
            key=lambda comparison: tuple(map(len, comparison)),
        )
        not_tried.update(untried)
        if differences:
            status = DIFFERS
            reasons += differences
        elif len(untried) == len(outcome.rules) and status == AGREED:
            status = NOT_COMPARED
            reasons.append("no rule was tried both on brokers and on the model")
    return Comparison(
        plan=plan,
        status=status,
        real=tuple(real),
        modelled=tuple(modelled),
        reasons=tuple(reasons),
        not_tried=tuple(sorted(not_tried)),
        service=tuple(service for run in conclusive for service in service_of(run)),
        modelled_service=tuple(modelled_service),
    )


def service_of(result: RunResult) -> Iterator[Service]:
    """Yield the service of a generated workload, if any record was acknowledged."""
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
    rules = {
        **dict.fromkeys(result.verdict.not_tried, (NOT_TRIED, ())),
        **{name: (judged.status, judged.findings) for name, judged in result.verdict.rules.items()},
    }
    is_scripted = _is_scripted(result.plan)

    def values(rule: str) -> tuple[str, ...]:
        _, findings = rules[rule]
        values = sorted({str(finding.value) for finding in findings})
        return tuple(values if is_scripted else ["some"] * bool(values))

    def status(name: str) -> str:
        # When a connection is lost with several requests in flight, the Java client of the model
        # reverses their order (`oldest_request_fails_first`), and librdkafka keeps it. Both are
        # right if the settings permit both.
        is_about_order = name == NONMONOTONIC_SEND and not is_scripted
        status, _ = rules[name]
        return HELD if is_about_order and status == PERMITTED else status

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
            # Skip a log that could not be read to its end.
            if len(log.values()) == log.leo
        )
        if is_scripted
        else (),
        in_sync=tuple(
            (partition, tuple(sorted(broker for broker, log in logs.items() if log.in_sync)))
            for partition, logs in sorted(evidence.replicas.items())
        ),
    )

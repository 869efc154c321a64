"""Runs campaigns on real brokers."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar, Final

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.record.report import repaired_flaws, run_name_of
from harrow.campaigns.record.results_folder import CLUSTER
from harrow.campaigns.run.run_result import MissedExpectation, RealTarget, RunResult
from harrow.campaigns.run.runner import Run, RunStopped
from harrow.campaigns.run.swarm import draw_for_seed
from harrow.campaigns.temporary_folder import temporary_folder
from harrow.checks.evidence import Evidence
from harrow.checks.finding import INCONCLUSIVE, SKIPPED, Verdict
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.sim.choices import Choices
from harrow.faults.handlers import Handlers
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.reach.feasible import as_run_on_brokers
from harrow.live_cluster.reach.narrowed_swarm import narrow_swarm
from harrow.live_cluster.releases.kafka_release import KafkaRelease
from harrow.live_cluster.target.live_environment import LiveEnvironment
from harrow.live_cluster.target.live_target import LiveTarget
from harrow.live_cluster.target.real_cluster import ClusterContext, RealCluster

_START_FORMAT: Final = "%Y%m%dT%H%M%S.%fZ"
ShowWait = Callable[[Callable[[], str]], None]


class StoppedWaitingError(LiveError):
    """The run was stopped before the cluster was ready; the message says what it waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brokers(ABC):
    """Brokers on which campaigns run, one after the other. ``metadata`` is zookeeper or kraft."""

    kind: ClassVar[str]
    """The kind of target in the results of runs."""
    handlers: ClassVar[Handlers[LiveEnvironment]]
    """The effects that faults can have on these brokers."""
    release: KafkaRelease
    metadata: str

    @abstractmethod
    def obstacles(self, plan: Plan) -> Iterator[str]:
        """Yield the reasons why a plan cannot run on these brokers."""

    @abstractmethod
    def cluster(self, context: ClusterContext) -> AbstractContextManager[RealCluster]:
        """Return the cluster for a run."""

    def modelled_plan(self, plan: Plan) -> Plan:
        """Return the plan with the behaviours of these brokers, for the model."""
        return as_run_on_brokers(plan, self.release)[0]

    def drawn(self, plan: Plan, seed: int) -> Plan:
        """Return the plan that a seed draws from the choices that these brokers support."""
        return draw_for_seed(narrow_swarm(plan, self.obstacles)[0], seed).plan

    def run(
        self,
        plan: Plan,
        seed: int,
        results: Path | None,
        check: Callable[[], None] = lambda: None,
        tell: ShowWait = lambda _: None,
    ) -> RunResult:
        """Run a plan, or skip it if there are obstacles.

        The files of brokers and clients go to *results*. The run is inconclusive if the brokers do
        not start, or if they fail, or if *check* raises `RunStopped`. The run regularly calls
        *tell* with a function that returns a text about the condition that the run waits for.
        """
        start_s = time.monotonic()
        start_time = datetime.now(UTC).strftime(_START_FORMAT)
        target = RealTarget(
            kind=self.kind, release=self.release.name, metadata=self.metadata, began=start_time
        )
        possible, impossible_choices = narrow_swarm(plan, self.obstacles)
        drawn = draw_for_seed(possible, seed)
        reasons = tuple(self.obstacles(drawn.plan))
        if reasons:
            return _result_without_run(plan, seed, SKIPPED, reasons, target)
        real, unset_switches = as_run_on_brokers(drawn.plan, self.release)
        choices = Choices.from_seed(seed)

        def wait(what: str) -> None:
            tell(lambda: f"waits for {what}")
            try:
                check()
            except RunStopped as stopped:
                raise StoppedWaitingError(f"{stopped} came while the run waited for {what}") from stopped

        try:
            with (
                _cluster_folder(possible, seed, target, results) as folder,
                LiveTarget(real, choices, folder, self.cluster, self.handlers, wait) as cluster,
            ):
                result = Run(real, seed, choices, cluster, check=check, tell=tell).result()
        except LiveError as error:
            return _result_without_run(plan, seed, INCONCLUSIVE, (str(error),), target)
        unseen = [
            *map(str, unset_switches),
            *(f"no seed draws this on these brokers: {reason}" for reason in impossible_choices),
        ]
        if result.probes_missed:
            unseen.append(f"not reached, or not observable: {', '.join(result.probes_missed)}")
        result = replace(
            result,
            plan=drawn.plan,
            open_plan=None if plan.swarm is None else possible,
            drawn=drawn.values,
            unseen=(
                *result.unseen,
                *(MissedExpectation(line=0, message=message) for message in unseen),
            ),
            probes_missed=(),
            target=target,
            wall_ms=round((time.monotonic() - start_s) * 1_000),
        )
        if switches := repaired_flaws(result):
            written_for = f"brokers with {', '.join(switches)}"
            return replace(result, plan=replace(drawn.plan, written_for=written_for))
        return result


@contextmanager
def _cluster_folder(plan: Plan, seed: int, target: RealTarget, results: Path | None) -> Iterator[Path]:
    """Yield the folder of the brokers: with the run's other files, or a temporary one."""
    if results is not None:
        folder = results / plan.campaign / run_name_of(plan.digest(), seed, target) / CLUSTER
        folder.mkdir(parents=True)
        yield folder.absolute()
        return
    with temporary_folder() as folder:
        yield folder


def _result_without_run(
    plan: Plan, seed: int, status: str, reasons: tuple[str, ...], target: RealTarget
) -> RunResult:
    """Return the result of a run that was skipped or failed to start."""
    no_evidence = Evidence(
        release=plan.kafka,
        operations=(),
        trace=(),
        process_names={},
        producers={},
        partitions={},
        replicas={},
        read_back=frozenset(),
    )
    return RunResult(
        plan=plan,
        seed=seed,
        verdict=Verdict(status=status, rules={}, reasons=reasons),
        expected=False,
        missed=(),
        evidence=no_evidence,
        faults=(),
        probes={},
        events=0,
        simulated_us=0,
        target=target,
    )

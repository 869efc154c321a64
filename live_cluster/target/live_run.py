"""Runs of campaigns on real brokers."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
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
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.choices import Choices
from harrow.faults.handlers import Handlers
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.reach.feasible import as_real
from harrow.live_cluster.reach.narrowed_swarm import narrowed
from harrow.live_cluster.releases.kafka_release import KafkaRelease
from harrow.live_cluster.target.live_environment import LiveEnvironment
from harrow.live_cluster.target.live_target import LiveTarget
from harrow.live_cluster.target.real_cluster import RealCluster, Surroundings

_BEGAN: Final = "%Y%m%dT%H%M%S.%fZ"
Tell = Callable[[Callable[[], str]], None]


class NotAwaitedError(LiveError):
    """The run was stopped before the cluster was ready; the message says what it waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brokers(ABC):
    """Brokers on which campaigns run, one after the other. ``metadata`` is where they keep it."""

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
    def cluster(self, surroundings: Surroundings) -> AbstractContextManager[RealCluster]:
        """Return the cluster for a run."""

    def as_modelled(self, plan: Plan) -> Plan:
        """Return a plan with which the model behaves like these brokers."""
        return as_real(plan, self.release)[0]

    def drawn(self, plan: Plan, seed: int) -> Plan:
        """Return what a seed draws from the part of an open plan that these brokers support."""
        return draw_for_seed(narrowed(plan, self.obstacles)[0], seed).plan

    def run(
        self,
        plan: Plan,
        seed: int,
        results: Path | None,
        check: Callable[[], None] = lambda: None,
        tell: Tell = lambda _: None,
    ) -> RunResult:
        """Run a plan, or skip it if there are obstacles.

        Files of brokers and clients go to *results*. The run is inconclusive if the brokers do not
        come up or fail, or if *check* raises `RunStopped`. It calls *tell* from time to time with a
        function that says what it waits for.
        """
        began_s = time.monotonic()
        began = datetime.now(UTC).strftime(_BEGAN)
        target = RealTarget(kind=self.kind, release=self.release.name, metadata=self.metadata, began=began)
        possible, not_drawn = narrowed(plan, self.obstacles)
        drawn = draw_for_seed(possible, seed)
        reasons = tuple(self.obstacles(drawn.plan))
        if reasons:
            return _without(plan, seed, SKIPPED, reasons, target)
        real, left_out = as_real(drawn.plan, self.release)
        choices = Choices.from_seed(seed)

        def wait(what: str) -> None:
            tell(lambda: f"waits for {what}")
            try:
                check()
            except RunStopped as stopped:
                raise NotAwaitedError(f"{stopped} came while the run waited for {what}") from stopped

        try:
            with (
                _folder(possible, seed, target, results) as folder,
                LiveTarget(real, choices, folder, self.cluster, self.handlers, wait) as cluster,
            ):
                result = Run(real, seed, choices, cluster, check=check, tell=tell).result()
        except LiveError as error:
            return _without(plan, seed, INCONCLUSIVE, (str(error),), target)
        unseen = [*map(str, left_out), *(f"no seed draws this here: {reason}" for reason in not_drawn)]
        if result.probes_missed:
            unseen.append(f"not reached, or not to be seen: {', '.join(result.probes_missed)}")
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
            wall_ms=round((time.monotonic() - began_s) * 1_000),
        )
        if switches := repaired_flaws(result):
            written_for = f"brokers with {', '.join(switches)}"
            return replace(result, plan=replace(drawn.plan, written_for=written_for))
        return result


@contextmanager
def _folder(plan: Plan, seed: int, target: RealTarget, results: Path | None) -> Iterator[Path]:
    """Yield the folder of the brokers: with the run's other files, or a temporary one."""
    if results is not None:
        folder = results / plan.campaign / run_name_of(plan.digest(), seed, target) / CLUSTER
        folder.mkdir(parents=True)
        yield folder.absolute()
        return
    with temporary_folder() as folder:
        yield folder


def _without(plan: Plan, seed: int, status: str, reasons: tuple[str, ...], target: RealTarget) -> RunResult:
    """Return the result of a run that did not happen."""
    nothing = Evidence(
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
        evidence=nothing,
        faults=(),
        probes={},
        trace_digest="",
        events=0,
        simulated_us=0,
        target=target,
    )

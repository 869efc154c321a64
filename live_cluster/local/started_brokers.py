"""Campaigns on brokers of a release that are started for each run."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import RealTarget, RunResult
from harrow.campaigns.run.swarm import draw_for_seed
from harrow.cluster_model.topology import Metadata
from harrow.live_cluster.clients.live_kinds import LIVE
from harrow.live_cluster.local.shared_classes import SharedClasses
from harrow.live_cluster.local.started_cluster import StartedCluster
from harrow.live_cluster.local.started_effects import STARTED, started_reach
from harrow.live_cluster.reach.feasible import as_real, obstacles, voters_of
from harrow.live_cluster.reach.narrowed_swarm import narrowed
from harrow.live_cluster.releases.kafka_release import KafkaRelease
from harrow.live_cluster.target.live_run import Tell, live_run, time_of_beginning
from harrow.live_cluster.target.real_cluster import Surroundings


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedBrokers:
    """What brokers are started from: a release, with its *jars*, and where it keeps its metadata.

    Jars that are in harrow's own cache may have other files beside them (``is_cached``). ``get`` puts Java and the jars where they are expected. It is called when brokers are about to start: a campaign that
    cannot run on the release is skipped without a download.
    """

    release: KafkaRelease
    metadata: str
    java: Path
    jars: Path
    is_cached: bool = True
    get: Callable[[], None] = lambda: None

    def run(
        self,
        plan: Plan,
        seed: int,
        results: Path | None,
        check: Callable[[], None] = lambda: None,
        tell: Tell = lambda _: None,
    ) -> RunResult:
        """Run a plan on brokers of its own (`Brokers.run`)."""
        target = RealTarget(
            kind=LIVE, release=self.release.name, metadata=self.metadata, began=time_of_beginning()
        )
        return live_run(
            plan,
            seed,
            results,
            check,
            tell,
            target,
            self.release,
            obstacles_of=self._obstacles,
            make=self._make,
            handlers=STARTED,
        )

    def drawn(self, plan: Plan, seed: int) -> Plan:
        """Return what a seed draws of what these brokers can do (`Brokers.drawn`)."""
        return draw_for_seed(narrowed(plan, self._obstacles)[0], seed).plan

    def as_modelled(self, plan: Plan) -> Plan:
        """Return a plan as the model runs it (`Brokers.as_modelled`)."""
        modelled, _ = as_real(plan, self.release)
        cluster = replace(
            plan.cluster, metadata=cast("Metadata", self.metadata), voters=voters_of(plan), combined=False
        )
        return replace(modelled, cluster=cluster)

    def _make(self, surroundings: Surroundings) -> StartedCluster:
        self.get()
        return StartedCluster(
            surroundings,
            release=self.release,
            java=self.java,
            jars=self.jars,
            metadata=self.metadata,
            shared=self.shared_classes(),
        )

    def shared_classes(self) -> SharedClasses | None:
        """Return the classes that programs share, None where the jars are in a folder of the user's."""
        return SharedClasses(self.jars, self.java, self.metadata) if self.is_cached else None

    def _obstacles(self, plan: Plan) -> Iterator[str]:
        yield from obstacles(plan, started_reach(self.release, self.metadata))

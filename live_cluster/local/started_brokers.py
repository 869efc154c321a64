"""Runs campaigns on brokers of a release, which harrow starts for each run."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

from harrow.campaigns.language.plan import Plan
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.topology import Metadata
from harrow.live_cluster.clients.live_kinds import LIVE
from harrow.live_cluster.local.shared_classes import SharedClasses
from harrow.live_cluster.local.started_cluster import StartedCluster
from harrow.live_cluster.local.started_effects import STARTED, started_reach
from harrow.live_cluster.reach.feasible import as_run_on_brokers, obstacles, voters_of
from harrow.live_cluster.target.live_run import Brokers
from harrow.live_cluster.target.real_cluster import ClusterContext


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedBrokers(Brokers):
    """Brokers of a release that harrow starts from *jars*.

    With ``is_cached`` the jars are in harrow's own cache, where it may store other files.
    ``get`` provides Java and the jars when the brokers are about to start. So a campaign that
    cannot run on the release is skipped without a download.
    """

    java: Path
    jars: Path
    is_cached: bool = True
    get: Callable[[], None] = lambda: None

    kind = LIVE
    handlers = STARTED

    def modelled_plan(self, plan: Plan) -> Plan:
        modelled, _ = as_run_on_brokers(plan, self.release)
        cluster = replace(
            plan.cluster, metadata=cast("Metadata", self.metadata), voters=voters_of(plan), combined=False
        )
        return replace(modelled, cluster=cluster)

    def cluster(self, context: ClusterContext) -> StartedCluster:
        self.get()
        return StartedCluster(
            context,
            release=self.release,
            java=self.java,
            jars=self.jars,
            metadata=self.metadata,
            shared=self.shared_classes(),
        )

    def shared_classes(self) -> SharedClasses | None:
        """Return the release's class archive, None if the jars are in the user's folder."""
        return SharedClasses(self.jars, self.java, self.metadata) if self.is_cached else None

    def obstacles(self, plan: Plan) -> Iterator[str]:
        return obstacles(plan, started_reach(self.release, self.metadata))

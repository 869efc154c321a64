"""A cluster that harrow starts for a run, with access to its links, disks and logs."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from harrow.campaigns.language.plan import Plan
from harrow.cluster_model.events import NO_CONTROLLER, BatchReplicated, MessageRuleApplied
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.log.unified_log import HIGH_WATERMARK_TRUNCATION, LEADER_EPOCH_TRUNCATION
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.release.replication import HIGH_WATERMARK
from harrow.cluster_model.settings import broker_config, topic_config
from harrow.cluster_model.sim.message_rule import MessageRule
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec
from harrow.live_cluster.broker_logs.broker_log import BrokerLog, LoggedPartition
from harrow.live_cluster.broker_logs.log_lines import RefusalLine
from harrow.live_cluster.links.link_faults import LinkFaults
from harrow.live_cluster.links.observed_requests import ObservedRequests
from harrow.live_cluster.links.proxied_links import ProxiedLinks
from harrow.live_cluster.links.proxy import Proxies
from harrow.live_cluster.local.java_program import LOG_FILE
from harrow.live_cluster.local.kraft_control_plane import controller_folder
from harrow.live_cluster.local.live_disk import LiveDisk
from harrow.live_cluster.local.local_cluster import INTERNAL_PARTITIONS, LocalCluster, broker_folder
from harrow.live_cluster.local.shared_classes import SharedClasses
from harrow.live_cluster.names import SAME_NAMES, Names
from harrow.live_cluster.processes.node_process import NodeProcess
from harrow.live_cluster.reach.feasible import voters_of
from harrow.live_cluster.reach.small_segments import refuses_small_segments
from harrow.live_cluster.releases.kafka_release import KRAFT, KafkaRelease
from harrow.live_cluster.target.control_plane import ControlPlaneAccess
from harrow.live_cluster.target.real_cluster import ClusterContext, Links, ReplicaLogs
from harrow.live_cluster.watches.observed_metadata import ObservedMetadata


def _with_internal_topics(plan: Plan) -> ClusterSpec:
    """Return the cluster of a plan with the internal topics, on the same brokers as on the model.

    Brokers would create them for the first FindCoordinator, with other leaders.
    """
    with_partition_counts = replace(plan.cluster, settings={**INTERNAL_PARTITIONS, **plan.cluster.settings})
    topics = replace(plan, cluster=with_partition_counts).running_cluster().topics
    return replace(plan.cluster, topics=topics)


class StartedCluster:
    """Brokers of a release on this machine (a `RealCluster`)."""

    follows_logs = True
    names: Names = SAME_NAMES
    security: Mapping[str, str] = MappingProxyType({})

    def __init__(
        self,
        context: ClusterContext,
        *,
        release: KafkaRelease,
        java: Path,
        jars: Path,
        metadata: str,
        shared: SharedClasses | None,
    ) -> None:
        self._surroundings = context
        self._open = ExitStack()
        # If a later step fails, close all that earlier steps have opened.
        with ExitStack() as opened:
            self._open_resources(opened, release, java, jars, metadata, shared)
            self._open = opened.pop_all()

    def _open_resources(
        self,
        opened: ExitStack,
        release: KafkaRelease,
        java: Path,
        jars: Path,
        metadata: str,
        shared: SharedClasses | None,
    ) -> None:
        context = self._surroundings
        report = context.report
        by_high_watermark = (
            RELEASES[context.plan.kafka].behaviours.replication.follower_truncation == HIGH_WATERMARK
        )
        default_reason = HIGH_WATERMARK_TRUNCATION if by_high_watermark else LEADER_EPOCH_TRUNCATION
        self._broker_logs = {
            broker.id: BrokerLog(broker_folder(context.folder, broker.id) / LOG_FILE, default_reason)
            for broker in context.plan.cluster.brokers
        }
        spec = _with_internal_topics(context.plan)
        self._controller_logs: Mapping[int, BrokerLog] = self._broker_logs
        if metadata == KRAFT:
            spec = replace(spec, voters=voters_of(context.plan), combined=False)
            self._controller_logs = {
                voter: BrokerLog(controller_folder(context.folder, voter) / LOG_FILE, default_reason)
                for voter in spec.controller_ids()
            }
        active = NO_CONTROLLER

        def election_reason(controller: int, partition: str) -> str:
            nonlocal active
            if metadata != KRAFT or controller != NO_CONTROLLER:
                # A decision of a KRaft controller may become visible after it has resigned.
                active = controller
            log = self._controller_logs.get(active)
            return "" if log is None else log.election_reason(partition)

        def logged_partitions() -> Mapping[str, LoggedPartition]:
            controller = self.observed_metadata.controller() or active
            log = self._controller_logs.get(controller) if metadata == KRAFT else None
            return {} if log is None else log.partitions()

        def is_active(controller: int, controller_epoch: int) -> bool:
            return self._controller_logs[controller].is_active_in(controller_epoch)

        self._requests = ObservedRequests(report)
        context.trace.subscribe(BatchReplicated, self._requests.batch_copied)

        def report_rule(rule: MessageRule, api: str, kind: str, sender: str, receiver: str) -> None:
            report(MessageRuleApplied, rule.name, rule.action, api, kind, sender, receiver, rule.strike)

        proxies = opened.enter_context(
            Proxies(LinkFaults(context.choices.network, report_rule), self._requests, context.activity.note)
        )
        context.activity.begin()
        local = self._local = opened.enter_context(
            LocalCluster(
                spec,
                release=release,
                java=java,
                jars=jars,
                folder=context.folder,
                proxies=proxies,
                observed_metadata=ObservedMetadata(
                    report, election_reason, logged_partitions, is_active, has_znodes=metadata != KRAFT
                ),
                metadata=metadata,
                activity=context.activity,
                translates_small_segments=refuses_small_segments(context.plan.kafka),
                shared=shared,
                wait=context.wait,
            )
        )
        self.spec = local.spec
        self.observed_metadata = local.observed_metadata
        self.children = local.children
        self.control: ControlPlaneAccess = local.control
        self.brokers: Mapping[int, NodeProcess] = local.brokers
        self.servers: Mapping[int, tuple[str, int]] = local.addresses
        self.replicas_of, self.connect = local.replicas_of, local.connect
        self.links: Links = ProxiedLinks(proxies, self._requests)
        self.logs: Mapping[int, ReplicaLogs] = {
            broker.id: self._disk(broker) for broker in local.spec.brokers
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, traceback)

    def start(self) -> None:
        self._local.start()
        self._requests.topics_by_id = self._local.topics_by_id()

    def refusals(self) -> Iterator[tuple[int, RefusalLine]]:
        for broker, log in self._broker_logs.items():
            yield from ((broker, refusal) for refusal in log.refusals())

    def logged_epoch(self, broker: int, partition: str) -> int:
        return self._broker_logs[broker].leader_epoch(partition)

    def resignations(self) -> Iterator[tuple[int, int]]:
        for controller, log in self._controller_logs.items():
            yield from ((controller, epoch) for epoch in log.resignations())

    def _disk(self, broker: BrokerSpec) -> LiveDisk:
        context, spec = self._surroundings, self._local.spec
        config = broker_config(context.plan.kafka, {**spec.settings, **broker.settings})
        topics = {topic.name: topic_config(topic.settings, config) for topic in spec.topics}
        return LiveDisk(
            broker.id,
            self._local.brokers[broker.id].log_dirs,
            partial(self.observed_metadata.assignments.owned_by, broker.id),
            writeback_us=spec.disk.writeback_us,
            flushed_at_once=frozenset(name for name, config in topics.items() if config.flush_messages == 1),
            truncation_reason=self._broker_logs[broker.id].truncation_reason,
            emit=context.trace.emit,
        )

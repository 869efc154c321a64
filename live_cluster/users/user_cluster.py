"""The user's own cluster during a run."""

import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Final, Self

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.spelling import counted
from harrow.cluster_model.controller.assignment import topic_assignments
from harrow.cluster_model.settings import Value, broker_config, topic_config
from harrow.cluster_model.topology import ClusterSpec, TopicSpec
from harrow.faults import link_ends
from harrow.live_cluster.broker_logs.log_lines import RefusalLine
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.names import Names
from harrow.live_cluster.processes.child_processes import ChildProcesses
from harrow.live_cluster.processes.node_process import NodeProcess
from harrow.live_cluster.releases.kafka_release import ZOOKEEPER
from harrow.live_cluster.target.control_plane import CannotBeDoneError, ControlPlaneAccess
from harrow.live_cluster.target.real_cluster import ClusterContext, Links, ReplicaLogs
from harrow.live_cluster.users.fetched_logs import FetchedLogs
from harrow.live_cluster.users.healing import Healing, HealingError
from harrow.live_cluster.users.journal import Journal
from harrow.live_cluster.users.target_file import TOPICS, Notify, TargetFile
from harrow.live_cluster.users.user_broker import FaultCommands, UserBroker, UserLinks
from harrow.live_cluster.waiting import wait_until
from harrow.live_cluster.watches.metadata_watch import MetadataWatch
from harrow.live_cluster.watches.observed_metadata import ObservedMetadata
from harrow.live_cluster.wire.administration import create_topic, elect_preferred_leaders
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.survey import BrokerNode, Survey, survey_cluster

PREFIX: Final = "harrow-"
"""The prefix of all topics that harrow creates on a user's cluster."""
_POLL_TIMEOUT_S: Final = 2.0
_ADMIN_TIMEOUT_S: Final = 60.0
_WAIT_MAX_S: Final = 120.0
_POLL_INTERVAL_S: Final = 0.1


class NotReadyError(LiveError):
    """The cluster is not ready for a campaign; the message says what is missing."""


def map_brokers(plan: Plan, present: Iterable[int]) -> dict[int, int] | None:
    """Map a campaign's brokers to brokers with the same ids, or else to the first brokers.

    Return None if the cluster has too few brokers.
    """
    wanted, available = [broker.id for broker in plan.cluster.brokers], sorted(present)
    if set(wanted) <= set(available):
        return {broker: broker for broker in wanted}
    return dict(zip(sorted(wanted), available, strict=False)) if len(wanted) <= len(available) else None


OVERRIDABLE_BY_TOPICS: Final = frozenset(
    {"min.insync.replicas", "unclean.leader.election.enable", "log.flush.interval.messages"}
)
"""Settings of brokers that a topic can override, some of them under another name."""


def settings_of_topic(plan: Plan, topic: TopicSpec) -> dict[str, Value]:
    """Return the settings of a topic that override the brokers' (`OVERRIDABLE_BY_TOPICS`)."""
    config = topic_config(topic.settings, broker_config(plan.kafka, plan.cluster.settings))
    return {
        "min.insync.replicas": config.min_insync_replicas,
        "unclean.leader.election.enable": config.unclean_leader_election,
        "flush.messages": config.flush_messages,
    }


class _ControlPlane:
    """The accessible part of the cluster's control plane (`ControlPlaneAccess`)."""

    process_names: tuple[str, ...] = (link_ends.ZOOKEEPER,)

    def __init__(
        self, *, keeps_registrations: Callable[[], bool], elect: Callable[[Iterable[str]], None]
    ) -> None:
        self._keeps_registrations = keeps_registrations
        self.controllers: Mapping[int, NodeProcess] = {}
        self.elect_preferred_leaders = elect

    @property
    def keeps_registrations(self) -> bool:
        return self._keeps_registrations()


class UserCluster:
    """Brokers that harrow did not start (`harrow.live_cluster.target.real_cluster.RealCluster`).

    On exit, `UserCluster` heals the cluster and deletes harrow's topics. *survey* describes the
    cluster before the run; *permitted* are the permissions that the user has given.
    """

    follows_logs = False

    def __init__(
        self,
        context: ClusterContext,
        file: TargetFile,
        survey: Survey,
        journal: Journal,
        permitted: frozenset[str],
        say: Notify,
    ) -> None:
        plan = context.plan
        self._report_wait = context.wait
        self._file = file
        self._plan = plan
        self._nodes: Mapping[int, BrokerNode] = {node.id: node for node in survey.brokers}
        present = list(filter(file.has_broker, self._nodes))
        brokers = map_brokers(plan, present)
        if brokers is None:
            raise NotReadyError(
                f"the campaign has {counted(len(plan.cluster.brokers), 'broker')}, and may use {len(present)} of the cluster's"
            )
        run_id = secrets.token_hex(4)
        topics = [topic.name for topic in plan.cluster.topics]
        self.names = Names(brokers, {topic: f"{PREFIX}{run_id}-{topic}" for topic in topics})
        self.spec: ClusterSpec = plan.cluster
        uses_zookeeper = survey.metadata == ZOOKEEPER
        # The reasons of elections are in logs that harrow cannot read.
        self.observed_metadata = ObservedMetadata(context.report, has_znodes=uses_zookeeper)
        self._assignments = topic_assignments(self.spec)
        self.observed_metadata.assignments.set_initial(self._assignments)
        self._journal = journal
        self._permitted = permitted
        log = context.folder / "commands.log"
        commands = FaultCommands(file, self._nodes, journal, log, permitted)
        self._healing = Healing(journal, file, log, say)
        self.brokers: Mapping[int, NodeProcess] = {
            broker: UserBroker(broker, cluster_id, commands) for broker, cluster_id in brokers.items()
        }
        self.links: Links = UserLinks(commands, self.names.cluster_broker)
        self.servers: Mapping[int, tuple[str, int]] = {
            broker: commands.address(cluster_id) for broker, cluster_id in brokers.items()
        }
        self.security: Mapping[str, str] = file.security.settings
        self.control: ControlPlaneAccess = _ControlPlane(
            # Only running brokers report registrations. If none runs, harrow repeats the start of a
            # broker until it comes up.
            keeps_registrations=lambda: uses_zookeeper and any(map(self._is_alive, brokers)),
            elect=self._elect,
        )
        self._watch = MetadataWatch(
            self.observed_metadata, topics, context.activity, self.names, finds_controller=uses_zookeeper
        )
        self._open = ExitStack()
        with ExitStack() as opened:
            self.children = opened.enter_context(ChildProcesses())
            opened.callback(self._watch.close)
            self.logs: Mapping[int, ReplicaLogs] = {
                broker: FetchedLogs(
                    opened.enter_context(self._connect(broker, _ADMIN_TIMEOUT_S)),
                    context.partitions_of(broker, self.replicas_of),
                    self.names,
                )
                for broker in brokers
            }
            self._open = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._healing.heal(self._open.close)
        except HealingError as failure:
            if error is None:
                raise
            error.add_note(str(failure))
        finally:
            self._open.close()

    def start(self) -> None:
        """Create the topics, and wait until all of their replicas are in sync."""
        if TOPICS not in self._permitted:
            raise CannotBeDoneError("topics are not allowed on this cluster")
        for broker, (host, port) in self.servers.items():
            with self.connect(broker) as connection:
                if not connection.answers():
                    raise NotReadyError(
                        f"broker {self.names.cluster_broker(broker)} ({host}:{port}) does not answer"
                    )
        self._watch.start({broker: self.connect(broker) for broker in self.brokers}, self._is_alive)
        with self._connect_to_controller() as connection:
            for topic in self.spec.topics:
                name = self.names.cluster_topic(topic.name)
                self._journal.record_topic(name)
                assignment = [
                    list(map(self.names.cluster_broker, replicas))
                    for replicas in self._assignments[topic.name]
                ]
                create_topic(connection, name, assignment, settings_of_topic(self._plan, topic))

        def is_in_sync() -> bool:
            self._report_wait("all replicas to be in sync")
            return self._is_in_sync()

        if not wait_until(is_in_sync, _WAIT_MAX_S, _POLL_INTERVAL_S):
            raise NotReadyError(f"waited {_WAIT_MAX_S:.0f} s in vain for all replicas to be in sync")

    def logged_epoch(self, broker: int, partition: str) -> int:
        return -1

    def refusals(self) -> tuple[tuple[int, RefusalLine], ...]:
        return ()

    def resignations(self) -> tuple[tuple[int, int], ...]:
        return ()

    def replicas_of(self, partition: str) -> tuple[int, ...]:
        return self.observed_metadata.assignments.replicas_of(partition)

    def connect(self, broker: int) -> BrokerConnection:
        return self._connect(broker, _POLL_TIMEOUT_S)

    def _connect(self, broker: int, timeout_s: float) -> BrokerConnection:
        return BrokerConnection(self.servers[broker], timeout_s=timeout_s, security=self._file.security)

    def _connect_to_controller(self) -> BrokerConnection:
        """Return a connection for administration: to the controller, or with KRaft any broker."""
        for broker in self.brokers:
            try:
                with self.connect(broker) as connection:
                    controller = survey_cluster(connection).controller
            except ConnectionLostError:
                continue
            if controller is not None and controller in self._nodes:
                node = self._nodes[controller]
                return BrokerConnection(
                    (node.host, node.port), timeout_s=_ADMIN_TIMEOUT_S, security=self._file.security
                )
        raise NotReadyError("the cluster has no controller")

    def _elect(self, partitions: Iterable[str]) -> None:
        with self._connect_to_controller() as connection:
            elect_preferred_leaders(connection, map(self.names.cluster_partition, partitions))

    def _is_alive(self, broker: int) -> bool:
        process = self.brokers[broker]
        return process.is_running and not process.is_paused

    def _is_in_sync(self) -> bool:
        for partition in self.spec.partition_names():
            state = self.observed_metadata.partition_state(partition)
            if state is None or len(state[2]) < len(self.replicas_of(partition)):
                return False
        return True

"""What faults act on in the model."""

from harrow.campaigns.run.clients import Clients
from harrow.campaigns.run.model_observer import ClusterObserver
from harrow.campaigns.run.spared_power import can_spare
from harrow.cluster_model.sim.cluster import Cluster
from harrow.cluster_model.sim.message_rule import MessageRule
from harrow.faults.fault import process_name


class ModelEnvironment:
    """The processes, links and sessions of a simulated cluster (`harrow.faults.fault.Environment`).

    Where a run is ``survivable``, power losses leave enough copies of every committed record.
    """

    def __init__(
        self, cluster: Cluster, clients: Clients, observer: ClusterObserver, *, survivable: bool = False
    ) -> None:
        self._cluster = cluster
        self._clients = clients
        self._observer = observer
        self._survivable = survivable
        self.strike = 0
        self.client_names = clients.names
        self.crash_broker = cluster.crash_broker
        self.stop_broker = cluster.stop_broker
        self.start_broker = cluster.start_broker
        self.is_stopping = cluster.is_stopping
        self.pause_broker = cluster.pause_broker
        self.resume_broker = cluster.resume_broker
        self.controller = cluster.controller
        self.expire_session = cluster.expire_session
        self.delete_controller_znode = cluster.delete_controller_znode

    def broker_ids(self) -> tuple[int, ...]:
        return tuple(self._cluster.processes)

    def under_replicated_partitions(self) -> tuple[str, ...]:
        found = []
        for partition in self._cluster.spec.partition_names():
            state = self._cluster.partition_state(partition)
            if state is None or len(state.isr) < len(self._cluster.replicas_of(partition)):
                found.append(partition)
        return tuple(found)

    def may_lose_power(self, broker: int) -> bool:
        """Return whether enough copies of every committed record stay that can lead when a broker loses its power.

        Enough are ``min.insync.replicas``.
        """
        return not self._survivable or all(
            self._can_spare(partition, broker)
            for partition in self._cluster.spec.partition_names()
            if broker in self._cluster.replicas_of(partition)
        )

    def _can_spare(self, partition: str, broker: int) -> bool:
        cluster = self._cluster
        topic, replicas = partition.rpartition("-")[0], cluster.replicas_of(partition)
        enough = max(cluster.topic_config(topic, replica).min_insync_replicas for replica in replicas)
        return can_spare(
            self._observer,
            partition,
            broker,
            lambda replica: cluster.disks[replica].log_file(partition).log_end_offset,
            enough,
        )

    def is_running(self, broker: int) -> bool:
        return self._cluster.processes[broker].running

    def is_paused(self, broker: int) -> bool:
        return self._cluster.processes[broker].paused

    def cut_link(self, sender: int | str, receiver: int | str) -> None:
        self._cluster.network.cut(process_name(sender), process_name(receiver))

    def restore_link(self, sender: int | str, receiver: int | str) -> None:
        self._cluster.network.restore(process_name(sender), process_name(receiver))

    def add_message_rule(self, rule: MessageRule) -> None:
        rule.strike = self.strike
        self._cluster.network.add_rule(rule)

    def remove_message_rules(self) -> None:
        for rule in self._cluster.network.rules():
            if rule.strike == self.strike:
                self._cluster.network.remove_rule(rule)

    def has_message_rule(self, name: str) -> bool:
        return any(rule.name == name for rule in self._cluster.network.rules())

    def release_messages(self, name: str) -> None:
        self._cluster.network.release(name)

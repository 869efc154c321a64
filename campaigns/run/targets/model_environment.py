"""What faults act on in the model."""

from collections.abc import Iterator
from typing import Final

from harrow.campaigns.clients.clients import Clients
from harrow.campaigns.run.targets.model_observer import ClusterObserver
from harrow.campaigns.run.targets.spared_power import HELD_BACK_MAX_US, copies_of
from harrow.campaigns.run.targets.target import CommittedCopies
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.events import HighWatermarkSet
from harrow.cluster_model.sim.link_quality import LinkQuality
from harrow.cluster_model.sim.message_rule import MessageRule
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.faults.fault import process_name
from harrow.faults.links.link_ends import ZOOKEEPER

_LOOK_US: Final = 250 * US_PER_MS


class ModelEnvironment:
    """The processes, links and sessions of a simulated cluster (`harrow.faults.fault.Environment`).

    Where a run is ``survivable``, power losses leave enough copies of every committed record, and a leader comes from these: a broker
    that has lost committed records stays down until it is out of the ISR, where an election would find it with an empty log (KIP-966).
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
        self.client = clients.client
        self.crash_broker = cluster.crash_broker
        self.stop_broker = cluster.stop_broker
        self._high_watermarks: dict[tuple[str, int], int] = {}
        if survivable:
            cluster.trace.subscribe(HighWatermarkSet, self._high_watermark_set)
        self.is_stopping = cluster.is_stopping
        self.pause_broker = cluster.pause_broker
        self.resume_broker = cluster.resume_broker
        self.controller = cluster.controller
        self.expire_session = cluster.expire_session
        self.delete_controller_znode = cluster.delete_controller_znode
        self.lose_disk = cluster.lose_disk
        self.fail_log_dir = cluster.fail_log_dir
        self.repair_log_dir = cluster.repair_log_dir
        self.slow_disk = cluster.slow_disk
        self.recover_disk = cluster.recover_disk
        self.revert_checkpoint = cluster.revert_checkpoint

    def broker_ids(self) -> tuple[int, ...]:
        return self._cluster.broker_ids()

    def under_replicated_partitions(self) -> tuple[str, ...]:
        found = []
        for partition in self._cluster.partition_names():
            state = self._cluster.partition_state(partition)
            if state is None or len(state.isr) < len(self._cluster.replicas_of(partition)):
                found.append(partition)
        return tuple(found)

    def may_lose_power(self, broker: int) -> bool:
        """Return whether enough copies of every committed record stay that can lead when a broker loses its power."""
        return all(
            copies.can_spare(broker)
            for partition, copies in self.committed_copies().items()
            if broker in self._cluster.replicas_of(partition)
        )

    def committed_copies(self) -> dict[str, CommittedCopies]:
        """Return which brokers can lead each partition with all that is committed; nothing where the run need not be survivable."""
        partitions = (*self._cluster.partition_names(), *self._cluster.internal_partitions())
        return {name: self._copies_of(name) for name in partitions} if self._survivable else {}

    def _copies_of(self, partition: str) -> CommittedCopies:
        cluster, topic = self._cluster, partition.rpartition("-")[0]
        replicas = cluster.replicas_of(partition)
        return copies_of(
            self._observer,
            partition,
            end_of_log=lambda replica: cluster.disks[replica].log_file(partition).intact_end,
            high_watermark_before=lambda replica: self._high_watermarks.get((partition, replica), 0),
            enough=max(cluster.topic_config(topic, replica).min_insync_replicas for replica in replicas),
        )

    def _high_watermark_set(self, at_us: int, broker: int, partition: str, hw: int) -> None:
        self._high_watermarks[partition, broker] = hw

    def start_broker(self, broker: int) -> None:
        """Start a broker that is down; one that would be elected without what it has lost, once it is out of the ISR."""
        self._start_by((broker, self._cluster.simulator.now_us + HELD_BACK_MAX_US))

    def _start_by(self, held: tuple[int, int]) -> None:
        broker, until_us = held
        cluster = self._cluster
        if self.is_held_back(broker) and cluster.simulator.now_us < until_us:
            cluster.at(cluster.simulator.now_us + _LOOK_US, self._start_by, held)
        else:
            cluster.start_broker(broker)

    def is_held_back(self, broker: int) -> bool:
        """Return whether a broker that is down could lead some partition without a committed record that others have."""
        return not self.is_running(broker) and any(
            broker in copies.hollow and copies.whole for copies in self.committed_copies().values()
        )

    def has_logs(self, broker: int) -> bool:
        return broker in self._cluster.disks

    def may_lose_disk(self, broker: int) -> bool:
        """Return whether enough copies stay of records and, of the metadata, with a majority of the quorum."""
        plane = self._cluster.control_plane
        if not self.has_logs(broker) and not plane.has_metadata_log(broker):
            return False
        return not self._survivable or (self.may_lose_power(broker) and plane.keeps_metadata_without(broker))

    def slow_broker(self, broker: int, request_us: int) -> None:
        if self.has_logs(broker):
            self._cluster.slow_broker(broker, request_us)
        else:
            # Controllers and ZooKeeper servers have no threads that requests wait for.
            for sender in self._everybody():
                self.degrade_link(sender, broker, LinkQuality(request_us=request_us))

    def recover_broker(self, broker: int, request_us: int) -> None:
        if self.has_logs(broker):
            self._cluster.recover_broker(broker, request_us)
        else:
            for sender in self._everybody():
                self.recover_link(sender, broker, LinkQuality(request_us=request_us))

    def log_dirs(self) -> int:
        return self._cluster.spec.disk.log_dirs

    def _everybody(self) -> tuple[int | str, ...]:
        return (*self.broker_ids(), *self.client_names())

    def step_clock(self, end: int | str, by_us: int) -> None:
        if isinstance(end, int):
            self._cluster.step_clock(end, by_us)
        else:
            self.client(end).step_clock(by_us)

    def has_batch(self, broker: int, partition: str, offset: int | None) -> bool:
        return self._stored_offset(broker, partition, offset) is not None

    def damage_batch(self, broker: int, partition: str, offset: int | None) -> None:
        stored = self._stored_offset(broker, partition, offset)
        if stored is not None:
            self._cluster.damage_batch(broker, partition, stored)

    def _stored_offset(self, broker: int, partition: str, offset: int | None) -> int | None:
        if broker not in self._cluster.replicas_of(partition):
            return None
        file = self._cluster.disks[broker].log_file(partition)
        stored = file.log_end_offset - 1 if offset is None else offset
        return None if file.place_of(stored) is None else stored

    def is_running(self, broker: int) -> bool:
        return self._cluster.nodes[broker].running

    def is_paused(self, broker: int) -> bool:
        return self._cluster.nodes[broker].paused

    def cut_link(self, sender: int | str, receiver: int | str) -> None:
        for one, other in self._links(sender, receiver):
            self._cluster.network.cut(one, other)

    def restore_link(self, sender: int | str, receiver: int | str) -> None:
        for one, other in self._links(sender, receiver):
            self._cluster.network.restore(one, other)

    def _links(self, sender: int | str, receiver: int | str) -> Iterator[tuple[str, str]]:
        """Yield the links between two ends, of which the control plane may be several processes."""
        for one in self._processes_at(sender):
            for other in self._processes_at(receiver):
                if one != other:
                    yield one, other

    def _processes_at(self, end: int | str) -> tuple[str, ...]:
        return self._cluster.control_plane.process_names if end == ZOOKEEPER else (self._process_name(end),)

    def _process_name(self, end: int | str) -> str:
        # A ZooKeeper server that is alone is called by no number.
        node = self._cluster.nodes.get(end) if isinstance(end, int) else None
        return process_name(end) if node is None else node.name

    def _all_at(self, ends: frozenset[str] | None) -> frozenset[str] | None:
        if ends is None:
            return None
        every = self._cluster.control_plane.process_names
        own = {
            process_name(node): server.name for node, server in self._cluster.control_plane.servers.items()
        }
        return frozenset(
            [name for end in ends for name in (every if end == ZOOKEEPER else (own.get(end, end),))]
        )

    def is_link_cut(self, sender: int | str, receiver: int | str) -> bool:
        network, links = self._cluster.network, list(self._links(sender, receiver))
        return bool(links) and all(network.is_cut_one_way(one, other) for one, other in links)

    def degrade_link(self, sender: int | str, receiver: int | str, quality: LinkQuality) -> None:
        for one, other in self._links(sender, receiver):
            self._cluster.network.degrade(one, other, quality)

    def recover_link(self, sender: int | str, receiver: int | str, quality: LinkQuality) -> None:
        for one, other in self._links(sender, receiver):
            self._cluster.network.recover(one, other, quality)

    def reset_link(self, one: int | str, other: int | str) -> None:
        for sender, receiver in self._links(one, other):
            self._cluster.network.reset(sender, receiver)

    def add_message_rule(self, rule: MessageRule) -> None:
        rule.strike = self.strike
        rule.senders, rule.receivers = self._all_at(rule.senders), self._all_at(rule.receivers)
        self._cluster.network.add_rule(rule)

    def remove_message_rules(self) -> None:
        for rule in self._cluster.network.rules():
            if rule.strike == self.strike:
                self._cluster.network.remove_rule(rule)

    def has_message_rule(self, name: str) -> bool:
        return any(rule.name == name for rule in self._cluster.network.rules())

    def release_messages(self, name: str) -> None:
        self._cluster.network.release(name)

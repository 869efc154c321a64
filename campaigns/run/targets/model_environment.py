"""Shows faults the state of the model, and performs their effects on it."""

from collections.abc import Sequence
from typing import Final

from harrow.campaigns.clients.clients import Clients
from harrow.campaigns.run.targets.model_observer import ClusterObserver
from harrow.campaigns.run.targets.shared_environment import (
    CLIENT_EFFECTS,
    HELD_BACK_MAX_US,
    LINK_EFFECTS,
    TargetEnvironment,
    copies_of,
)
from harrow.campaigns.run.targets.target import CommittedCopies
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.events import HighWatermarkSet
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.faults import effects
from harrow.faults.effects import End
from harrow.faults.fault import process_name
from harrow.faults.handlers import Handlers
from harrow.faults.link_ends import ZOOKEEPER

_POLL_INTERVAL_US: Final = 250 * US_PER_MS


class ModelEnvironment(TargetEnvironment):
    """The processes, links and sessions of a simulated cluster.

    In a ``survivable`` run, power losses leave enough copies of every committed record, and one of
    the brokers with a copy becomes leader. To ensure that, a broker that lost committed records
    stays down until it is out of the ISR: before that, an election could choose it although its log
    is empty (KIP-966).
    """

    def __init__(
        self, cluster: Cluster, clients: Clients, observer: ClusterObserver, *, survivable: bool = False
    ) -> None:
        super().__init__(MODEL, clients, observer, cluster.network)
        self.cluster = cluster
        self._survivable = survivable
        self._high_watermarks: dict[tuple[str, int], int] = {}
        if survivable:
            cluster.trace.subscribe(HighWatermarkSet, self._remember_high_watermark)
        self.is_stopping = cluster.is_stopping

    def broker_ids(self) -> tuple[int, ...]:
        return self.cluster.broker_ids()

    def partition_names(self) -> Sequence[str]:
        return self.cluster.partition_names()

    def committed_copies(self) -> dict[str, CommittedCopies]:
        if not self._survivable:
            return {}
        partitions = (*self.cluster.partition_names(), *self.cluster.internal_partitions())
        return {name: self._copies_of(name) for name in partitions}

    def _copies_of(self, partition: str) -> CommittedCopies:
        cluster, topic = self.cluster, partition.rpartition("-")[0]
        replicas = cluster.replicas_of(partition)
        return copies_of(
            self._observer,
            partition,
            end_of_log=lambda replica: cluster.disks[replica].log_file(partition).intact_end,
            last_known_high_watermark=lambda replica: self._high_watermarks.get((partition, replica), 0),
            min_isr=max(cluster.topic_config(topic, replica).min_insync_replicas for replica in replicas),
        )

    def _remember_high_watermark(self, broker: int, partition: str, hw: int) -> None:
        self._high_watermarks[partition, broker] = hw

    def start_broker(self, broker: int) -> None:
        """Start a broker that is down.

        A broker that lost committed records and could be elected starts only when it is out of the
        ISR, or after `HELD_BACK_MAX_US`.
        """
        self._start_when_allowed((broker, self.cluster.simulator.now_us + HELD_BACK_MAX_US))

    def _start_when_allowed(self, broker_and_limit: tuple[int, int]) -> None:
        broker, until_us = broker_and_limit
        cluster = self.cluster
        if self.is_held_back(broker) and cluster.simulator.now_us < until_us:
            cluster.at(
                cluster.simulator.now_us + _POLL_INTERVAL_US, self._start_when_allowed, broker_and_limit
            )
        else:
            cluster.start_broker(broker)

    def is_held_back(self, broker: int) -> bool:
        """Return whether a dead broker that lacks committed records could be elected."""
        return not self.is_running(broker) and self.could_lead_incomplete(broker)

    def has_logs(self, broker: int) -> bool:
        return broker in self.cluster.disks

    def may_lose_disk(self, broker: int) -> bool:
        """Return whether the broker's disk can be lost.

        In a survivable run, enough copies of records and a majority of the metadata must remain.
        """
        plane = self.cluster.control_plane
        if not self.has_logs(broker) and not plane.has_metadata_log(broker):
            return False
        return not self._survivable or (self.may_lose_power(broker) and plane.keeps_metadata_without(broker))

    def log_dirs(self) -> int:
        return self.cluster.spec.disk.log_dirs

    def has_batch(self, broker: int, partition: str, offset: int | None) -> bool:
        return self.stored_offset(broker, partition, offset) is not None

    def stored_offset(self, broker: int, partition: str, offset: int | None) -> int | None:
        """Return *offset*, or without it the last offset, if a broker's disk has a record there."""
        if broker not in self.cluster.replicas_of(partition):
            return None
        file = self.cluster.disks[broker].log_file(partition)
        stored = file.log_end_offset - 1 if offset is None else offset
        return None if file.place_of(stored) is None else stored

    def is_running(self, broker: int) -> bool:
        return self.cluster.nodes[broker].running

    def is_paused(self, broker: int) -> bool:
        return self.cluster.nodes[broker].paused

    def processes_at(self, end: End) -> tuple[str, ...]:
        plane = self.cluster.control_plane
        if end == ZOOKEEPER:
            return plane.process_names
        # The names of servers may differ from `process_name`: a single ZooKeeper server has no
        # number in its name.
        if isinstance(end, int):
            return (plane.servers[end].name if end in plane.servers else process_name(end),)
        names = {process_name(node): server.name for node, server in plane.servers.items()}
        return (names.get(end, end),)


def _slow_broker(model: ModelEnvironment, effect: effects.SlowBroker) -> None:
    if model.has_logs(effect.broker):
        model.cluster.slow_broker(effect.broker, effect.request_us)
        return
    # Controllers and ZooKeeper servers have no request threads that could be slow.
    for link in model.slow_links_to(effect):
        model.perform(link)


def _recover_broker(model: ModelEnvironment, effect: effects.SlowBroker) -> None:
    if model.has_logs(effect.broker):
        model.cluster.recover_broker(effect.broker, effect.request_us)
        return
    for link in model.slow_links_to(effect):
        model.perform(effects.Undo(link))


def _step_clock(model: ModelEnvironment, effect: effects.StepClock) -> None:
    if isinstance(effect.end, int):
        model.cluster.step_clock(effect.end, effect.by_us)
    else:
        model.client(effect.end).step_clock(effect.by_us)


def _damage_batch(model: ModelEnvironment, effect: effects.DamageBatch) -> None:
    stored = model.stored_offset(effect.broker, effect.partition, effect.offset)
    if stored is not None:
        model.cluster.damage_batch(effect.broker, effect.partition, stored)


MODEL: Final[Handlers[ModelEnvironment]] = Handlers(CLIENT_EFFECTS, LINK_EFFECTS)
"""The effects that the model can perform. A fault with any other effect cannot strike a simulated
cluster."""
MODEL.register(effects.Start, lambda model, effect: model.start_broker(effect.broker))
MODEL.register(effects.Stop, lambda model, effect: model.cluster.stop_broker(effect.broker))
MODEL.register(
    effects.Kill, lambda model, effect: model.cluster.crash_broker(effect.broker, power_loss=False)
)
MODEL.register(
    effects.LosePower, lambda model, effect: model.cluster.crash_broker(effect.broker, power_loss=True)
)
MODEL.register(
    effects.TearWrite,
    lambda model, effect: model.cluster.crash_broker(
        effect.broker, power_loss=True, torn_after=effect.complete_batches
    ),
)
MODEL.register(effects.Pause, lambda model, effect: model.cluster.pause_broker(effect.broker))
MODEL.register(effects.Resume, lambda model, effect: model.cluster.resume_broker(effect.broker))
MODEL.register(effects.SlowBroker, _slow_broker, undo=_recover_broker)
MODEL.register(effects.StepClock, _step_clock)
MODEL.register(
    effects.SlowDisk,
    lambda model, effect: model.cluster.slow_disk(effect.broker, effect.write_us),
    undo=lambda model, effect: model.cluster.recover_disk(effect.broker, effect.write_us),
)
MODEL.register(
    effects.FailLogDir,
    lambda model, effect: model.cluster.fail_log_dir(effect.broker, effect.log_dir, effect.room_bytes),
    undo=lambda model, effect: model.cluster.repair_log_dir(effect.broker, effect.log_dir, effect.room_bytes),
)
MODEL.register(effects.LoseDisk, lambda model, effect: model.cluster.lose_disk(effect.broker))
MODEL.register(effects.DamageBatch, _damage_batch)
MODEL.register(
    effects.RevertCheckpoint,
    lambda model, effect: model.cluster.revert_checkpoint(effect.broker, effect.file, effect.age_us),
)
MODEL.register(
    effects.RemoveCheckpoint,
    lambda model, effect: model.cluster.revert_checkpoint(effect.broker, effect.file, None),
)
MODEL.register(effects.ExpireSession, lambda model, effect: model.cluster.expire_session(effect.broker))
MODEL.register(effects.DeleteController, lambda model, _: model.cluster.delete_controller_znode())

"""A simulated cluster: machines, processes, network, ZooKeeper, brokers, clients.

This is where actors meet the simulator. What faults may do is a method here, and none
of these methods writes protocol state.
"""

from collections.abc import Callable, Collection
from typing import Any, Final

from cluster_model import zookeeper_protocol as zk
from cluster_model.assignment import topic_assignments
from cluster_model.broker import Broker
from cluster_model.choices import Choices, between
from cluster_model.disk import Disk
from cluster_model.history import History
from cluster_model.host import SimulatedHost
from cluster_model.invariant_monitor import InvariantMonitor
from cluster_model.invariants import INVARIANTS
from cluster_model.network import Network
from cluster_model.process import Process
from cluster_model.release import Behaviours
from cluster_model.settings import BrokerConfig, TopicConfig, broker_config, topic_config
from cluster_model.simulator import Simulator
from cluster_model.topology import ClusterSpec, TopicSpec
from cluster_model.trace import Trace
from cluster_model.virtual_time import US_PER_MS, US_PER_SECOND
from cluster_model.zookeeper import ZooKeeper

BOOTSTRAP_US: Final = 5 * US_PER_SECOND
"""The cluster is started this long before virtual time 0, when it is ready."""

_START_GAP_US: Final = 10 * US_PER_MS


class Cluster:
    """The servers of a campaign, from power-on."""

    def __init__(
        self,
        spec: ClusterSpec,
        release: str,
        behaviours: Behaviours,
        choices: Choices,
        events_limit: int = 50_000_000,
        invariants: Collection[str] = tuple(INVARIANTS),
    ) -> None:
        self.spec = spec
        self.behaviours = behaviours
        self.choices = choices
        self.simulator = Simulator(-BOOTSTRAP_US, events_limit)
        self.trace = Trace()
        self.history = History()
        self.network = Network(self.simulator, choices, spec.network, self.trace)
        self.world = Process("world")
        """Whatever acts on the cluster from outside; `heal` ends what it has under way."""
        self._configs = self._broker_configs(release)
        self._topic_configs = {t.name: topic_config(t.settings, self._first_config()) for t in spec.topics}
        self.assignments = topic_assignments(spec)
        self.processes = {broker.id: Process(f"broker-{broker.id}") for broker in spec.brokers}
        self.disks = {broker.id: Disk() for broker in spec.brokers}
        self.brokers: dict[int, Broker] = {}
        self._invariants = InvariantMonitor(invariants, self.disks, self._invariant_broken)
        zookeeper_process = Process("zookeeper")
        self.zookeeper = ZooKeeper(self.host(zookeeper_process), spec.zookeeper_tick_us)
        self.network.listen(zookeeper_process, self.zookeeper)

    def _broker_configs(self, release: str) -> dict[int, BrokerConfig]:
        return {
            broker.id: broker_config(release, {**self.spec.settings, **broker.settings})
            for broker in self.spec.brokers
        }

    def _first_config(self) -> BrokerConfig:
        return self._configs[self.spec.brokers[0].id]

    def host(self, process: Process) -> SimulatedHost:
        """Return the host that a process runs on."""
        return SimulatedHost(
            process, self.simulator, self.network, self.choices, self.trace, self._invariants
        )

    def replicas_of(self, partition: str) -> tuple[int, ...]:
        """Return the brokers that a partition is assigned to."""
        topic, number = partition.rsplit("-", 1)
        return self.assignments[topic][int(number)]

    def broker_config(self, broker: int) -> BrokerConfig:
        """Return a broker's configuration."""
        return self._configs[broker]

    def topic_config(self, topic: str) -> TopicConfig:
        """Return a topic's configuration."""
        return self._topic_configs[topic]

    # Start

    def start(self) -> None:
        """Start ZooKeeper, then the brokers one after the other, and create the topics."""
        self.zookeeper.start()
        order = [broker.id for broker in self.spec.brokers]
        if self.spec.controller is not None:
            order.sort(key=lambda broker: broker != self.spec.controller)
        for position, broker in enumerate(order):
            self.at(position * _START_GAP_US - BOOTSTRAP_US, self._power_on, broker)
        self.at(US_PER_SECOND - BOOTSTRAP_US, self._create_topics)
        self.simulator.run_until(0)

    def _power_on(self, broker: int) -> None:
        process = self.processes[broker]
        life = Broker(
            broker,
            self.host(process),
            self.disks[broker],
            self._configs[broker],
            self.topic_config,
            self.behaviours,
        )
        self.brokers[broker] = life
        self.network.listen(process, life)
        life.start()
        if self.spec.disk.writeback_us is not None:
            phase_us = between(self.choices.disk, 1, self.spec.disk.writeback_us)
            self.simulator.schedule(
                self.simulator.now_us + phase_us,
                process,
                self._write_back,
                (broker, self.spec.disk.writeback_us),
            )
        flush_us = self._configs[broker].flush_interval_us
        if flush_us < BOOTSTRAP_US * 1_000_000:
            self.simulator.schedule(
                self.simulator.now_us + flush_us, process, self._write_back, (broker, flush_us)
            )

    def _write_back(self, task: tuple[int, int]) -> None:
        """The operating system, or ``log.flush.interval.ms``, flushes what is dirty."""
        broker, period_us = task
        self.brokers[broker].replicas.logs.flush_all()
        self.simulator.schedule(
            self.simulator.now_us + period_us, self.processes[broker], self._write_back, task
        )

    def _create_topics(self, _: None) -> None:
        for topic in self.spec.topics:
            self.create_topic(topic)

    def create_topic(self, topic: TopicSpec) -> None:
        """Create a topic as ``kafka-topics --zookeeper`` does: its assignment, and no more."""
        self.zookeeper.apply(zk.Create(zk.topic_path(topic.name), self.assignments[topic.name]))

    def at(self, at_us: int, callback: Callable[[Any], None], argument: Any = None) -> None:
        """Have the world outside do something at a time."""
        self.simulator.schedule(at_us, self.world, callback, argument)

    # What faults and operators can do

    def crash_broker(self, broker: int, *, power_loss: bool) -> None:
        """End a broker's process; with *power_loss* what was not flushed is gone."""
        process = self.processes[broker]
        now_us = self.simulator.now_us
        cause = "power_loss" if power_loss else "process"
        self.trace.add((now_us, "broker_stopped", broker, cause))
        process.kill(power_loss=power_loss)
        self._invariants.broker_stopped(broker)
        self.network.process_died(process, power_loss=power_loss)
        del self.brokers[broker]
        if power_loss:
            for partition, log_file in self.disks[broker].log_files.items():
                end_offset = log_file.log_end_offset
                log_file.lose_power()
                if log_file.log_end_offset < end_offset:
                    lost = (broker, partition, log_file.log_end_offset, end_offset)
                    self.trace.add((now_us, "unflushed_lost", *lost))

    def start_broker(self, broker: int) -> None:
        """Start a broker that is down; nothing happens to one that runs."""
        process = self.processes[broker]
        if not process.running:
            had_power = process.powered
            process.start()
            self._power_on(broker)
            if not had_power:
                self.network.machine_booted(process)

    def pause_broker(self, broker: int) -> None:
        """Stop a broker's process."""
        self.processes[broker].paused = True
        self.trace.add((self.simulator.now_us, "broker_paused", broker))

    def resume_broker(self, broker: int) -> None:
        """Let a paused broker go on; nothing happens to one that runs."""
        process = self.processes[broker]
        if process.paused:
            self.trace.add((self.simulator.now_us, "broker_resumed", broker))
            self.simulator.resume(process)

    def expire_session(self, broker: int) -> None:
        """Have ZooKeeper end a broker's session."""
        self.zookeeper.expire_session_of(self.processes[broker].name)

    def delete_controller_znode(self) -> None:
        """Delete ``/controller``."""
        self.zookeeper.apply(zk.Delete(zk.CONTROLLER))

    def elect_preferred_leaders(self) -> None:
        """Ask for preferred leader election, as ``kafka-preferred-replica-election`` does."""
        self.zookeeper.apply(zk.Create(zk.PREFERRED_REPLICA_ELECTION, None))

    def heal_core(self, brokers: Collection[int]) -> None:
        """Heal these brokers, and all links but those of the other ones; drop what is planned.

        The others stay as they are: down, paused, cut off, or well. What is planned for them, a restart
        or the end of a fault, does not happen any more.
        """
        self.world.incarnation += 1
        self.trace.add((self.simulator.now_us, "core_healed", tuple(brokers)))
        outside = (process.name for broker, process in self.processes.items() if broker not in brokers)
        self.network.restore_all_but(frozenset(outside))
        for broker in brokers:
            self.resume_broker(broker)
            self.start_broker(broker)

    def heal(self) -> None:
        """End every fault: links, rules, pauses; start what is down; drop what is planned."""
        self.world.incarnation += 1
        self.trace.add((self.simulator.now_us, "healed"))
        self.network.restore_all()
        for broker in self.processes:
            self.resume_broker(broker)
            self.start_broker(broker)

    # What can be seen

    def _invariant_broken(
        self, invariant: str, broker: int, partition: str, epoch: int, offset: int, details: str
    ) -> None:
        event = (
            self.simulator.now_us,
            "invariant_broken",
            invariant,
            broker,
            partition,
            epoch,
            offset,
            details,
        )
        self.trace.add(event)

    def controller(self) -> int | None:
        """Return the broker in ``/controller``."""
        found = self.zookeeper.data(zk.CONTROLLER)
        return found if isinstance(found, int) else None

    def partition_state(self, partition: str) -> zk.TopicPartitionState | None:
        """Return what a partition's state znode has."""
        found = self.zookeeper.data(zk.state_path(partition))
        return found if isinstance(found, zk.TopicPartitionState) else None

    def is_registered(self, broker: int) -> bool:
        """Return whether ``/brokers/ids`` has a broker."""
        return self.zookeeper.exists(zk.broker_path(broker))

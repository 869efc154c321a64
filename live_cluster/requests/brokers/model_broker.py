"""A broker of the model with its control plane and nothing else."""

from typing import Final

from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.log.unified_log import UnifiedLog
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.settings import Value
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND
from harrow.cluster_model.topology import ZOOKEEPER, BrokerSpec, ClusterSpec, NetworkSpec, TopicSpec
from harrow.cluster_model.zookeeper.service import protocol as zk
from harrow.cluster_model.zookeeper.service.client import ZooKeeperClient
from harrow.live_cluster.requests.answers import NO_ANSWER, Answer, ReceivedAnswers, plain_answer
from harrow.live_cluster.requests.brokers.broker_driver import (
    BROKER,
    FOLLOWER,
    PARTITIONS,
    REPLICAS,
    TOPIC,
    PartitionStates,
    SingleRequest,
    partition_name,
)

_LISTENER: Final = "client"
_ELECTION_US: Final = US_PER_SECOND
"""Longer than an election with all messages that follow from it."""
_ANSWER_US: Final = 60 * US_PER_SECOND
_SESSION_US: Final = 6 * US_PER_SECOND


class _Registration:
    """A session with ZooKeeper that registers the follower for as long as it lasts."""

    def __init__(self, cluster: Cluster, process: Process) -> None:
        self._zookeeper = ZooKeeperClient(cluster.host(process), _SESSION_US, self)
        self._zookeeper.start()

    def session_established(self) -> None:
        create = zk.Create(zk.broker_path(FOLLOWER), FOLLOWER, ephemeral=True)
        self._zookeeper.submit((create,), lambda _: None)

    def session_expired(self) -> None:
        """Do nothing: the session never expires."""

    def watch_fired(self, event: zk.WatchEvent) -> None:
        """Do nothing: it sets no watches."""

    def end(self) -> None:
        self._zookeeper.close(lambda: None)


class ModelBroker:
    """A `BrokerDriver` for a broker of the model with the given behaviours."""

    def __init__(self, release: str, behaviours: Behaviours, settings: dict[str, Value]) -> None:
        spec = ClusterSpec(
            brokers=(BrokerSpec(id=BROKER),),
            topics=(TopicSpec(name=TOPIC, assignment=(REPLICAS,) * len(PARTITIONS)),),
            network=NetworkSpec(latency_min_us=US_PER_MS, latency_max_us=US_PER_MS),
            # Also for releases with KRaft, because the driver registers the follower in ZooKeeper.
            metadata=ZOOKEEPER,
            settings=settings,
        )
        self.knows_epochs = behaviours.replication.fetch_leader_epoch_fencing
        """Whether requests have leader epochs (KIP-320)."""
        self.knows_sessions = behaviours.replication.fetch_sessions
        """Whether there are fetch sessions (KIP-227)."""
        self.knows_racks = behaviours.replication.follower_fetching
        """Whether followers answer consumers (KIP-392)."""
        self._cluster = Cluster(spec, release, behaviours, Choices.from_seed(0), invariants=())
        self._follower = Process(f"broker-{FOLLOWER}")
        self._cluster.network.stop_listening(self._follower)
        self._cluster.start()
        self._host = self._cluster.host(Process("driver"))
        self._answers = ReceivedAnswers()
        self._connection = self._host.connect(f"broker-{BROKER}", _LISTENER, self._answers)
        self._correlation_id = 0
        self._registration: _Registration | None = None

    def ask(self, request: SingleRequest) -> Answer:
        """Send a request, and advance the time until the answer arrives."""
        self._correlation_id += 1
        self._host.send_request(self._connection, self._correlation_id, request)
        simulator = self._cluster.simulator
        until_us = simulator.now_us + _ANSWER_US
        while not self._answers.received:
            if not simulator.step(until_us):
                return dict(NO_ANSWER)
        reply = self._answers.received.pop()
        assert reply.correlation_id == self._correlation_id
        return plain_answer(reply.body, with_leader_epochs=self.knows_epochs)

    def register_follower(self) -> None:
        self._registration = self._registration or _Registration(self._cluster, self._follower)
        self._settle()

    def unregister_follower(self) -> None:
        if self._registration is not None:
            self._registration.end()
            self._registration = None
        self._settle()

    def elect_follower(self) -> None:
        self._cluster.elect_preferred_leaders()
        self._settle()

    def _settle(self) -> None:
        self._cluster.simulator.run_until(self._cluster.simulator.now_us + _ELECTION_US)

    def partition_states(self, expected: PartitionStates | None) -> PartitionStates:
        """Return ZooKeeper's states after all pending writes."""
        self._settle()
        states: PartitionStates = {}
        for number in PARTITIONS:
            state = self._cluster.partition_state(partition_name(number))
            assert state is not None
            states[partition_name(number)] = [state.leader, state.leader_epoch, sorted(state.isr)]
        return states

    # The base of relative values in steps

    def leader_epoch(self, number: int) -> int:
        """Return the control plane's leader epoch of a partition, 0 if it does not exist."""
        state = self._cluster.partition_state(partition_name(number))
        return 0 if state is None else state.leader_epoch

    def log(self, number: int) -> UnifiedLog | None:
        """Return the broker's log of a partition, None if it does not exist."""
        return self._cluster.log(BROKER, partition_name(number)) if number in PARTITIONS else None

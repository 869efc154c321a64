"""A quorum in the simulator that checks the promises of Raft after every step."""

from dataclasses import dataclass, field

from harrow.cluster_model.kraft.cluster_image import ClusterImage
from harrow.cluster_model.kraft.metadata_log import MetadataLog, MetadataSnapshot
from harrow.cluster_model.kraft.protocol import server_name
from harrow.cluster_model.kraft.raft import QuorumConfig, RaftClient
from harrow.cluster_model.kraft.records import (
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
)
from harrow.cluster_model.release.profiles import behaviours_in
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.connection import Connection, Exchange, ServerEndpoint
from harrow.cluster_model.sim.host import SimulatedHost
from harrow.cluster_model.sim.message import Body
from harrow.cluster_model.sim.network import Network
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.sim.simulator import Simulator
from harrow.cluster_model.topology import NetworkSpec
from harrow.cluster_model.trace import Trace

MS = 1_000
SECOND = 1_000_000


@dataclass
class Node(ServerEndpoint):
    """A node, whose process and disk outlast its incarnations.

    ``image`` is the state after the committed records that it has applied, ``fetched`` holds
    the snapshots that replaced its log.
    """

    id: int
    process: Process
    log: MetadataLog = field(default_factory=MetadataLog)
    raft: RaftClient | None = None
    committed: int = 0
    image: ClusterImage = field(default_factory=ClusterImage)
    fetched: list[MetadataSnapshot] = field(default_factory=list)

    def receive_request(self, exchange: Exchange[Body]) -> None:
        assert self.raft is not None
        self.raft.handle(exchange)

    def connection_closed(self, connection: Connection) -> None:
        """Ignore it: a node keeps no state of connections."""

    def on_truncation(self, offset: int) -> None:
        assert offset >= self.committed

    def apply_committed(self, high_watermark: int) -> None:
        assert high_watermark >= self.committed
        self.committed = high_watermark
        self.image = self.log.replay(self.image, high_watermark)

    def on_snapshot(self, leader: int, log_end: int, snapshot: MetadataSnapshot) -> None:
        self.fetched.append(snapshot)

    def on_leader_change(self) -> None:
        """Ignore it: the quorum checks leaders itself."""


class Listener:
    """Passes the events of one incarnation to its node."""

    def __init__(self, node: Node) -> None:
        node.committed, node.image = 0, ClusterImage()
        self.on_commit = node.apply_committed
        self.on_truncation = node.on_truncation
        self.on_leader_change = node.on_leader_change
        self.on_snapshot = node.on_snapshot


class Quorum:
    """Voters 0, 1, ... and observers after them."""

    def __init__(
        self,
        voters: int = 3,
        observers: int = 0,
        seed: int = 0,
        *,
        pre_vote: bool = False,
        tells_hw: bool = False,
        check_quorum: bool = True,
        election_backoff: str | None = None,
        looks_for_leader: bool | None = None,
        begin_epoch_repeated: str | None = None,
    ) -> None:
        # Defaults of the other switches: 3.9 without pre-vote, the newest release with it.
        switches = behaviours_in("4.3" if pre_vote else "3.9").kraft
        choices = Choices.from_seed(seed)
        self.simulator = Simulator()
        self.trace = Trace(self.simulator)
        self.network = Network(self.simulator, choices, NetworkSpec(), self.trace)
        self.voters = tuple(range(voters))
        self.config = QuorumConfig(
            election_timeout_us=SECOND,
            election_backoff_max_us=SECOND,
            fetch_timeout_us=2 * SECOND,
            request_timeout_us=2 * SECOND,
            pre_vote=pre_vote,
            check_quorum=check_quorum,
            tells_high_watermark=tells_hw,
            election_backoff=election_backoff or switches.election_backoff,
            looks_for_leader=switches.voters_look_for_leader
            if looks_for_leader is None
            else looks_for_leader,
            begin_epoch_repeated=begin_epoch_repeated or switches.begin_quorum_epoch_repeated,
        )
        self._choices = choices
        self.nodes = [Node(number, Process(f"controller-{number}")) for number in range(voters + observers)]
        self._leaders: dict[int, int] = {}
        self._stopping: set[int] = set()
        self.chosen: list[tuple[int, MetadataRecord]] = []
        self._images: dict[int, tuple[MetadataRecord, ...]] = {}
        for node in self.nodes:
            self.network.add(node.process, server_name(node.id))
        for node in self.nodes:
            self._start_incarnation(node)

    def _start_incarnation(self, node: Node) -> None:
        host = SimulatedHost(node.process, self.simulator, self.network, self._choices, self.trace)
        node.raft = RaftClient(node.id, host, self.voters, node.log, self.config, Listener(node))
        self.network.listen(node.process, node, server_name(node.id))
        node.raft.start()

    # Faults

    def crash(self, node: int) -> None:
        process = self.nodes[node].process
        if process.running:
            process.kill()
            self.network.process_died(process, power_loss=False)
            self.nodes[node].raft = None

    def start(self, node: int) -> None:
        process = self.nodes[node].process
        if not process.running:
            process.start()
            self._stopping.discard(node)
            self._start_incarnation(self.nodes[node])

    def resign(self, node: int) -> None:
        raft = self.nodes[node].raft
        if raft is not None and not self.nodes[node].process.paused:
            raft.resign()

    def stop(self, node: int) -> None:
        raft = self.nodes[node].raft
        if raft is not None and not self.nodes[node].process.paused:
            self._stopping.add(node)
            raft.shutdown(lambda: self.crash(node))

    def pause(self, node: int) -> None:
        process = self.nodes[node].process
        if process.running:
            process.paused = True
            self.network.wake_idle_fetches(process)

    def resume(self, node: int) -> None:
        process = self.nodes[node].process
        if process.paused:
            self.simulator.resume(process)

    def cut(self, one: int, other: int) -> None:
        self.network.cut(self.nodes[one].process.name, self.nodes[other].process.name)

    def heal(self) -> None:
        # A node in shutdown would otherwise end after the repair.
        for stopping in sorted(self._stopping):
            self.resume(stopping)
            self.crash(stopping)
        self.network.restore_all()
        for node in self.nodes:
            self.resume(node.id)
            self.start(node.id)

    def lose_disk(self, node: int) -> None:
        """Empty the disk of an observer. A voter would lose its vote."""
        if node not in self.voters:
            self.crash(node)
            self.nodes[node].log = MetadataLog()

    # Snapshots

    def snapshot(self, node: int) -> None:
        owner = self.nodes[node]
        end_offset = owner.image.next_offset
        if owner.raft is not None and end_offset and end_offset > owner.log.start_offset:
            epoch = owner.log.epoch_at(end_offset - 1)
            assert epoch is not None
            owner.log.add_snapshot(MetadataSnapshot(end_offset, epoch, 0, owner.image.write(), 1))

    def clean(self, node: int) -> None:
        """Keep only the latest snapshot, and the log after it."""
        self.nodes[node].log.clean(0, -1, 0)

    # Running and checking

    def leader(self) -> RaftClient | None:
        """Return the leader of the latest epoch, if it runs."""
        leaders = [node.raft for node in self.nodes if node.raft is not None and node.raft.is_leader]
        return max(leaders, key=lambda raft: raft.epoch, default=None)

    def append(self, number: int) -> bool:
        leader = self.leader()
        if leader is not None and not self.nodes[leader.node].process.paused:
            partition = PartitionRecord(f"t-{number % 3}", (0, 1), number % 2, number, (0, 1), number)
            leader.append((ProducerIdsRecord(number), partition, RegisterBrokerRecord(number % 2, number)))
        return leader is not None

    def run(self, duration_us: int) -> None:
        end_us = self.simulator.now_us + duration_us
        while self.simulator.step(end_us):
            self.check()
        self.simulator.run_until(end_us)
        self.check()

    def check(self) -> None:
        """Check that each epoch has one leader, and that all nodes and later leaders agree on
        committed records."""
        for node in self.nodes:
            raft = node.raft
            if raft is None:
                continue
            if raft.is_leader:
                assert self._leaders.setdefault(raft.epoch, node.id) == node.id, "two leaders of an epoch"
                end_offset = len(self.chosen)
                assert self._has_chosen(node.log, end_offset) or raft.epoch < max(self._leaders), (
                    "a leader lacks committed records"
                )
            if node.committed:
                assert self._has_chosen(node.log, min(node.committed, len(self.chosen))), (
                    "committed records differ"
                )
                self.chosen += node.log.read(max(len(self.chosen), node.log.start_offset), node.committed)
                end_offset = node.image.next_offset
                assert node.image.write() == self._image_at(end_offset), (
                    f"the image of node {node.id} differs from the committed records below {end_offset}"
                )

    def _has_chosen(self, log: MetadataLog, end_offset: int) -> bool:
        """Return whether a log has the committed records below an offset, apart from those before
        its start."""
        return log.end_offset >= end_offset and (
            end_offset <= log.start_offset
            or [*log.read(log.start_offset, end_offset)] == self.chosen[log.start_offset : end_offset]
        )

    def _image_at(self, end_offset: int) -> tuple[MetadataRecord, ...]:
        """Return the image of a node that has replayed the whole log."""
        if end_offset not in self._images:
            image = ClusterImage()
            for _, record in self.chosen[:end_offset]:
                image.apply(record)
            self._images[end_offset] = image.write()
        return self._images[end_offset]

    def numbers(self, node: int) -> list[int]:
        """Return the numbers of the records that a node knows to be committed."""
        records = [record for _, record in self.chosen[: self.nodes[node].committed]]
        return [record.next_producer_id for record in records if isinstance(record, ProducerIdsRecord)]

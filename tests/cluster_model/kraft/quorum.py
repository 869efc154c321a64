"""A quorum in the simulator, with what Raft promises of it looked at after every step."""

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
from harrow.cluster_model.sim.connection import Connection, Exchange
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
class Node:
    """A node: its process and its disk stay, its lives come and go.

    ``image`` is what it has been told to be committed amounts to, ``fetched`` the snapshots that it has begun with.
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
        """Nothing hangs on it."""

    def truncated(self, offset: int) -> None:
        assert offset >= self.committed

    def committed_is(self, high_watermark: int) -> None:
        assert high_watermark >= self.committed
        self.committed = high_watermark
        self.image = self.log.replayed(self.image, high_watermark)

    def snapshot_fetched(self, leader: int, log_end: int, snapshot: MetadataSnapshot) -> None:
        self.fetched.append(snapshot)

    def leader_changed(self) -> None:
        """The quorum looks at that itself."""


class Listener:
    """Passes on what a life of a node is told."""

    def __init__(self, node: Node) -> None:
        node.committed, node.image = 0, ClusterImage()
        self.committed = node.committed_is
        self.truncated = node.truncated
        self.leader_changed = node.leader_changed
        self.snapshot_fetched = node.snapshot_fetched


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
        # What goes with the others: 3.9 without pre-vote, the newest release with it.
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
            self._begin(node)

    def _begin(self, node: Node) -> None:
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
            self._begin(self.nodes[node])

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

    def resume(self, node: int) -> None:
        process = self.nodes[node].process
        if process.paused:
            self.simulator.resume(process)

    def cut(self, one: int, other: int) -> None:
        self.network.cut(self.nodes[one].process.name, self.nodes[other].process.name)

    def heal(self) -> None:
        # One that is about to end would do so after it has been healed.
        for stopping in sorted(self._stopping):
            self.resume(stopping)
            self.crash(stopping)
        self.network.restore_all()
        for node in self.nodes:
            self.resume(node.id)
            self.start(node.id)

    def lose_disk(self, node: int) -> None:
        """An observer begins with nothing; a voter would forget its vote."""
        if node not in self.voters:
            self.crash(node)
            self.nodes[node].log = MetadataLog()

    # Snapshots

    def snapshot(self, node: int) -> None:
        known = self.nodes[node]
        end_offset = known.image.next_offset
        if known.raft is not None and end_offset and end_offset > known.log.start_offset:
            epoch = known.log.epoch_at(end_offset - 1)
            assert epoch is not None
            known.log.add_snapshot(MetadataSnapshot(end_offset, epoch, 0, known.image.write(), 1))

    def clean(self, node: int) -> None:
        """Keep the latest snapshot alone, and the log behind it."""
        self.nodes[node].log.clean(0, -1, 0)

    # What goes on

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
            self.look()
        self.simulator.run_until(end_us)
        self.look()

    def look(self) -> None:
        """One leader an epoch; what is committed is the same everywhere, and in the log of each later leader."""
        for node in self.nodes:
            raft = node.raft
            if raft is None:
                continue
            if raft.is_leader:
                assert self._leaders.setdefault(raft.epoch, node.id) == node.id, "two leaders of an epoch"
                known = len(self.chosen)
                assert self._has_chosen(node.log, known) or raft.epoch < max(self._leaders), (
                    "a leader lacks what is committed"
                )
            if node.committed:
                assert self._has_chosen(node.log, min(node.committed, len(self.chosen))), (
                    "what is committed differs"
                )
                self.chosen += node.log.read(max(len(self.chosen), node.log.start_offset), node.committed)
                end_offset = node.image.next_offset
                assert node.image.write() == self._image_at(end_offset), (
                    f"node {node.id} takes something else for what is committed below {end_offset}"
                )

    def _has_chosen(self, log: MetadataLog, end_offset: int) -> bool:
        """Return whether a log has what is committed, as far as it begins before it."""
        return log.end_offset >= end_offset and (
            end_offset <= log.start_offset
            or [*log.read(log.start_offset, end_offset)] == self.chosen[log.start_offset : end_offset]
        )

    def _image_at(self, end_offset: int) -> tuple[MetadataRecord, ...]:
        """Return what who has read the log from its beginning takes it to amount to."""
        if end_offset not in self._images:
            image = ClusterImage()
            for _, record in self.chosen[:end_offset]:
                image.apply(record)
            self._images[end_offset] = image.write()
        return self._images[end_offset]

    def numbers(self, node: int) -> list[int]:
        """Return what a node knows to be committed."""
        records = [record for _, record in self.chosen[: self.nodes[node].committed]]
        return [record.next_producer_id for record in records if isinstance(record, ProducerIdsRecord)]

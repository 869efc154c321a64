"""An ensemble keeps ZooKeeper's promises to clients under any faults of servers and links."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from harrow.cluster_model.events import (
    EnsembleLeaderElected,
    EnsembleServerSuspended,
    SessionExpired,
    ZnodeCreated,
    ZnodeWritten,
)
from harrow.cluster_model.sim.choices import Choices, between, pick
from harrow.cluster_model.sim.host import SimulatedHost
from harrow.cluster_model.sim.network import Network
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.sim.simulator import Simulator
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec, NetworkSpec
from harrow.cluster_model.trace import Trace, select
from harrow.cluster_model.zookeeper.quorum.ensemble import ZooKeeperEnsemble
from harrow.cluster_model.zookeeper.quorum.quorum_store import QuorumStore
from harrow.cluster_model.zookeeper.service import protocol as zk
from harrow.cluster_model.zookeeper.service.client import ZooKeeperClient
from harrow.cluster_model.zookeeper.service.data_tree import CloseSession

SECOND = 1_000_000
TIMEOUT_US = 8 * SECOND
SHARED = "/shared"


@dataclass
class Write:
    """A znode that a client creates, with the times of its request and its answer."""

    path: str
    requested_us: int
    answered_us: int | None = None


@dataclass(eq=False)
class Client:
    """A client that writes, reads and watches in turn, without waiting for answers."""

    number: int
    world: "World"
    writes: list[Write] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    zxids: list[int] = field(default_factory=list)
    children: list[int] = field(default_factory=list)
    watching: int = 0
    fired: int = 0
    expired: int = 0
    rounds: int = 0

    def __post_init__(self) -> None:
        self.process = Process(f"broker-{self.number}")
        self.host = self.world.host(self.process)
        self.client = ZooKeeperClient(self.host, TIMEOUT_US, self, self.world.ensemble.names)
        self.client.start()

    def session_established(self) -> None:
        self.watch()

    def session_expired(self) -> None:
        self.expired += 1
        self.watching = 0

    def watch_fired(self, event: zk.WatchEvent) -> None:
        assert (event.path, event.children) == (SHARED, False)
        assert self.watching > 0, "a watch fired that was not set"
        self.watching -= 1
        self.fired += 1
        self.watch()

    def watch(self) -> None:
        def answered(response: zk.ZooKeeperResponse) -> None:
            if response.error == zk.OK:
                self.watching = 1  # Setting a watch again does not add one.
                self.read(response)

        self.client.submit((zk.GetData(SHARED, watch=True),), answered)

    def read(self, response: zk.ZooKeeperResponse) -> None:
        self.zxids.append(response.zxid)
        self.versions.append(response.results[-1].version)

    def act(self, _: Any = None) -> None:
        if self.world.is_over:
            return
        action = self.world.below(4)
        if action == 0:
            self.client.submit((zk.GetData(SHARED),), self.maybe_read)
        elif action == 1:
            self.client.submit((zk.SetData(SHARED, self.number), zk.GetData(SHARED)), self.maybe_read)
        else:
            write = Write(f"/written/{self.number}-{len(self.writes)}", self.host.clock.now_us)
            self.writes.append(write)
            read = zk.GetData(write.path)
            self.client.submit((zk.Create(write.path),), lambda answer: self.written(write, answer))
            self.client.submit((read,), lambda answer: self.read_back(write, answer))
        self.host.set_timer(between(self.world.choices.workload, 1, SECOND), self.act)

    def maybe_read(self, response: zk.ZooKeeperResponse) -> None:
        if response.error == zk.OK:
            self.read(response)

    def written(self, write: Write, response: zk.ZooKeeperResponse) -> None:
        if response.error == zk.OK:
            write.answered_us = self.host.clock.now_us

    def read_back(self, write: Write, response: zk.ZooKeeperResponse) -> None:
        if response.error == zk.OK and write.answered_us is not None:
            assert response.results[0].error == zk.OK, "a client does not read its own write"


class World:
    """An ensemble, clients, and faults that kill, pause and isolate servers."""

    def __init__(self, seed: int, servers: int, clients: int = 3) -> None:
        self.choices = Choices.from_seed(seed)
        self.simulator = Simulator(0, 5_000_000)
        self.trace = Trace(self.simulator)
        self.network = Network(self.simulator, self.choices, NetworkSpec(), self.trace)
        spec = ClusterSpec(brokers=(BrokerSpec(id=0),), topics=(), zookeeper_servers=servers)
        admin = self.host(Process("admin"))
        self.ensemble = ZooKeeperEnsemble(spec, self.host, self.network, admin, lambda _: None)
        self.created: dict[str, int] = {}
        self.shared_writes = 0
        self.is_over = False
        self.trace.subscribe(ZnodeCreated, self.note_created)
        self.trace.subscribe(ZnodeWritten, self.note_written)
        self.ensemble.start()
        self.ensemble.write(zk.Create(SHARED))
        self.run(2 * SECOND)
        self.clients = [Client(number, self) for number in range(clients)]
        for client in self.clients:
            client.act()

    def host(self, process: Process) -> SimulatedHost:
        return SimulatedHost(process, self.simulator, self.network, self.choices, self.trace)

    def below(self, bound: int) -> int:
        return self.choices.workload.below(bound)

    def note_created(self, client: str, path: str, czxid: int) -> None:
        assert path not in self.created, "a znode is created twice"
        self.created[path] = self.simulator.now_us

    def note_written(self, *_: Any) -> None:
        self.shared_writes += 1

    def run(self, duration_us: int) -> None:
        self.simulator.run_until(self.simulator.now_us + duration_us)

    # Faults

    def kill(self, node: int) -> None:
        process = self.ensemble.processes[node]
        if process.running:
            power_loss = self.below(3) == 0
            process.kill(power_loss=power_loss)
            self.network.process_died(process, power_loss=power_loss)

    def start(self, node: int) -> None:
        process = self.ensemble.processes[node]
        if not process.running:
            had_power = process.powered
            process.start()
            self.ensemble.start_server(node)
            if not had_power:
                self.network.machine_booted(process)

    def resume(self, node: int) -> None:
        if self.ensemble.processes[node].paused:
            self.simulator.resume(self.ensemble.processes[node])

    def await_proposal(self, node: int) -> None:
        """Run for up to 3 s, until a server has logged a transaction that it has not applied."""
        store = next(store for store in self.stores() if store.server_id == node)
        until_us = self.simulator.now_us + 3 * SECOND
        while len(store.log) == store.applied and self.simulator.step(until_us):
            pass

    def strike(self) -> None:
        names = [*self.ensemble.names, *(client.process.name for client in self.clients)]
        leader = self.ensemble.leader()
        nodes = tuple(self.ensemble.processes)
        node = pick(
            self.choices.schedule, nodes if leader is None else (leader, pick(self.choices.schedule, nodes))
        )
        fault = self.choices.schedule.below(7)
        if fault == 0:
            self.await_proposal(node)
            self.kill(node)
        elif fault == 1:
            self.start(node)
        elif fault == 2 and self.ensemble.processes[node].running:
            self.ensemble.processes[node].paused = True
        elif fault == 3:
            self.resume(node)
        elif fault == 4:
            self.network.cut(self.ensemble.processes[node].name, pick(self.choices.schedule, names))
        elif fault == 5:
            other = pick(self.choices.schedule, names)
            self.network.reset(self.ensemble.processes[node].name, other)
        else:
            self.network.restore_all()

    def heal(self) -> None:
        self.network.restore_all()
        for node in self.ensemble.processes:
            self.resume(node)
            self.start(node)

    def disturb(self, strikes: int) -> None:
        for _ in range(strikes):
            self.strike()
            self.run(between(self.choices.schedule, 1, pick(self.choices.schedule, (SECOND, 20 * SECOND))))
            if self.choices.schedule.below(3) == 0:
                self.heal()
                self.run(between(self.choices.schedule, 1, 5 * SECOND))

    def stores(self) -> list[QuorumStore]:
        stores = [member.quorum_store for member in self.ensemble._members.values()]
        return [store for store in stores if store is not None]


def disturbed_world(seed: int, strikes: int = 25) -> World:
    world = World(seed, servers=(3, 5)[seed % 2])
    world.disturb(strikes)
    world.heal()
    world.run(120 * SECOND)
    world.is_over = True
    world.run(5 * SECOND)
    return world


@pytest.mark.soak(size=10, rounds_in_test=1, rounds_in_soak=60)
def test_an_ensemble_keeps_its_promises_under_any_faults(numbers: range) -> None:
    for seed in numbers:
        world = disturbed_world(seed)
        no_change_is_lost(world)
        writes_are_linearizable(world)
        clients_see_their_order(world)
        watches_fire_once(world)
        only_leaders_expire_sessions(world)


def no_change_is_lost(world: World) -> None:
    """Once the faults are healed, all servers have the same data, with every committed change."""
    stores = world.stores()
    assert world.ensemble.leader() is not None
    assert len({store.applied for store in stores}) == 1
    assert len({tuple(map(id, store.log[: store.applied])) for store in stores}) == 1
    assert len({store.tree.zxid for store in stores}) == 1
    for store in stores:
        assert all(store.tree.node(path) is not None for path in world.created if path.startswith("/written"))
        shared = store.tree.node(SHARED)
        assert shared is not None
        assert shared.version == world.shared_writes


def writes_are_linearizable(world: World) -> None:
    """A write takes effect once, between the request and the answer."""
    for client in world.clients:
        for write in client.writes:
            if write.answered_us is not None:
                assert write.requested_us <= world.created[write.path] <= write.answered_us


def clients_see_their_order(world: World) -> None:
    """A client's writes take effect in order, and its reads never go back in time."""
    for client in world.clients:
        times = [world.created[write.path] for write in client.writes if write.path in world.created]
        assert times == sorted(times)
        if not client.expired:
            assert client.zxids == sorted(client.zxids)
            assert client.versions == sorted(client.versions)


def watches_fire_once(world: World) -> None:
    """A watch fires once each time that it is set (`Client.watch_fired`), and no watch is lost."""
    version = world.shared_writes
    for client in world.clients:
        client.process.kill()
    watcher = world.clients[0]
    watcher.process.start()
    watcher = Client(9, world)
    world.run(5 * SECOND)
    assert watcher.versions[-1] >= version
    before = watcher.fired
    world.ensemble.write(zk.SetData(SHARED, "last"))
    world.run(5 * SECOND)
    assert watcher.fired == before + 1


def only_leaders_expire_sessions(world: World) -> None:
    """Each epoch has one leader, and only the leader of an epoch proposes expiries in it."""
    elected = list(select(world.trace.events, EnsembleLeaderElected))
    leaders = {event.epoch: event.server for event in elected}
    assert len(leaders) == len(elected)
    log = world.stores()[0].log
    for entry in log:
        if isinstance(entry.transaction, CloseSession) and entry.transaction.expired:
            assert leaders[entry.epoch] == world.ensemble.processes[entry.server].name


def test_these_faults_cause_elections_expiries_and_reconnections() -> None:
    worlds = [disturbed_world(seed) for seed in range(6)]
    for kind in (EnsembleServerSuspended, SessionExpired):
        assert any(list(select(world.trace.events, kind)) for world in worlds), kind
    assert any(client.fired > 3 for world in worlds for client in world.clients)
    assert any(len(list(select(world.trace.events, EnsembleLeaderElected))) > 3 for world in worlds)
    moved = [client for world in worlds for client in world.clients if client.client._server_index]
    assert moved


@pytest.mark.parametrize("servers", [3, 4, 5])
def test_without_a_majority_nothing_is_decided_and_no_session_expires(servers: int) -> None:
    world = World(1, servers)
    world.run(5 * SECOND)
    down = list(world.ensemble.processes)[: servers - servers // 2]
    for node in down:
        world.kill(node)
    world.run(SECOND)
    created, written = len(world.created), world.shared_writes
    world.run(200 * SECOND)
    assert (len(world.created), world.shared_writes) == (created, written)
    assert not list(select(world.trace.events, SessionExpired))
    world.start(down[0])
    world.run(70 * SECOND)
    assert world.shared_writes > written
    assert not list(select(world.trace.events, SessionExpired))
    assert not any(client.expired for client in world.clients)

"""A ZooKeeper leader, a follower and a client, each tested alone."""

from typing import Any

import pytest

from harrow.cluster_model.sim.connection import PUSHED, Connection, Reply
from harrow.cluster_model.zookeeper.quorum import protocol
from harrow.cluster_model.zookeeper.quorum.ensemble_follower import EnsembleFollower
from harrow.cluster_model.zookeeper.quorum.ensemble_leader import EnsembleLeader
from harrow.cluster_model.zookeeper.quorum.protocol import LoggedTransaction
from harrow.cluster_model.zookeeper.quorum.quorum_store import QuorumStore
from harrow.cluster_model.zookeeper.service import protocol as zk
from harrow.cluster_model.zookeeper.service.client import ZooKeeperClient
from harrow.cluster_model.zookeeper.service.data_tree import (
    CloseSession,
    CreateSession,
    DataTree,
    ErrorTransaction,
    Write,
)
from harrow.cluster_model.zookeeper.service.server import ServerStore
from tests.cluster_model.fakes import SECOND, FakeEndpoint, FakeHost
from tests.recorded_choices import recorded_choices

TICK_US = 2 * SECOND
INIT_LIMIT = 10
SYNC_LIMIT = 5
TIMEOUT_US = 6 * SECOND


def make_store(server_id: int = 1) -> QuorumStore:
    return QuorumStore(ServerStore(server_id, DataTree(zk.ROOTS)))


class LeaderHarness:
    """A leader, server 1. The test plays its followers."""

    def __init__(self, servers: int = 3, store: QuorumStore | None = None) -> None:
        self.host = FakeHost("zookeeper-1")
        self.store = store or make_store()
        self.formed: list[int] = []
        self.lost = 0
        self.expired: list[int] = []
        self.leader = EnsembleLeader(
            self.host,
            self.store,
            servers,
            TICK_US,
            INIT_LIMIT,
            SYNC_LIMIT,
            self.commit,
            self.formed.append,
            self.lose,
            self.expired.append,
        )
        self.leader.start()
        self.connections: dict[int, Connection] = {}

    def commit(self, committed: int) -> None:
        self.store.applied = max(self.store.applied, committed)

    def lose(self) -> None:
        self.lost += 1

    def receive_from(self, server: int, body: Any) -> None:
        self.leader.receive(self.connections[server], body)

    def connect(self, server: int, accepted_epoch: int = 0) -> None:
        connection = self.host.connect("zookeeper-1", "zookeeper-quorum", FakeEndpoint(self.host.clock))
        self.connections[server] = connection
        self.receive_from(server, protocol.FollowerInfo(server, accepted_epoch))

    def synchronize(self, server: int, epoch: int = 0) -> None:
        """Let a server connect, acknowledge the epoch and store the log."""
        self.connect(server, epoch)
        self.receive_from(server, protocol.AckEpoch(server, epoch, (0, 0), 0))
        if self.messages(server, protocol.NewLeader):
            self.acknowledge_log(server)

    def acknowledge_log(self, server: int) -> None:
        self.receive_from(server, protocol.QuorumAck(server, len(self.store.log)))

    def messages(self, server: int, kind: type[Any]) -> list[Any]:
        connection = self.connections[server]
        return [
            m.body for m in self.host.responses if m.connection is connection and isinstance(m.body, kind)
        ]


def test_a_leader_serves_when_a_majority_has_its_log() -> None:
    harness = LeaderHarness(servers=5)
    harness.synchronize(2)
    assert (harness.messages(2, protocol.LeaderInfo), harness.formed) == ([], [])
    harness.connect(3)
    for server in (2, 3):
        assert harness.messages(server, protocol.LeaderInfo) == [protocol.LeaderInfo(1)]
        harness.receive_from(server, protocol.AckEpoch(server, 0, (0, 0), 0))
    harness.acknowledge_log(2)
    assert harness.formed == []
    harness.acknowledge_log(3)
    assert harness.formed == [1]
    assert (
        harness.messages(2, protocol.UpToDate)
        == harness.messages(3, protocol.UpToDate)
        == [protocol.UpToDate(0)]
    )


def test_the_epoch_of_a_leader_is_later_than_any_in_its_majority() -> None:
    harness = LeaderHarness()
    harness.synchronize(2, epoch=6)
    assert harness.messages(2, protocol.LeaderInfo) == [protocol.LeaderInfo(7)]
    assert (harness.store.accepted_epoch, harness.store.current_epoch) == (7, 0)


@pytest.mark.parametrize(
    ("epoch", "position", "is_better"),
    [(2, (2, 1), False), (2, (2, 2), True), (3, (0, 0), True), (1, (9, 9), False)],
)
def test_a_leader_resigns_if_a_follower_has_a_longer_log(
    epoch: int, position: tuple[int, int], is_better: bool
) -> None:
    store = make_store()
    store.current_epoch = store.accepted_epoch = 2
    store.log.append(LoggedTransaction(2, ErrorTransaction(""), 1, 1))
    harness = LeaderHarness(store=store)
    harness.connect(2, 2)
    harness.receive_from(2, protocol.AckEpoch(2, epoch, position, 0))
    assert harness.lost == is_better
    assert bool(harness.messages(2, protocol.NewLeader)) != is_better


@pytest.mark.parametrize(("servers", "needed"), [(3, 1), (4, 2), (5, 2)])
def test_a_transaction_is_committed_when_a_majority_has_logged_it(servers: int, needed: int) -> None:
    harness = LeaderHarness(servers)
    for server in range(2, servers + 1):
        harness.synchronize(server)
    for server in range(2, servers + 1):
        harness.receive_from(server, protocol.AckEpoch(server, 0, (0, 0), 0)) if not harness.formed else None
        harness.acknowledge_log(server)
    before = harness.store.applied
    harness.leader.submit(Write(0, (zk.Create("/a"),)), 1)
    for acks, server in enumerate(range(2, servers + 1), 1):
        assert harness.store.applied == before + (acks > needed)
        harness.acknowledge_log(server)
        assert bool(harness.messages(2, protocol.Commit)) == (acks >= needed)


def test_an_acknowledgement_commits_no_later_transaction() -> None:
    harness = LeaderHarness()
    harness.synchronize(2)
    for tag in (1, 2):
        harness.leader.submit(Write(0, (zk.Create(f"/{tag}"),)), tag)
    harness.receive_from(2, protocol.QuorumAck(2, 1))
    assert (harness.store.applied, len(harness.store.log)) == (1, 2)


def test_a_leader_without_a_majority_resigns_and_expires_no_session() -> None:
    harness = LeaderHarness()
    harness.synchronize(2)
    harness.leader.submit(CreateSession(7, "broker-1", 3 * TIMEOUT_US), 1)
    harness.acknowledge_log(2)
    harness.host.advance((SYNC_LIMIT + 1) * TICK_US)
    assert harness.lost == 1
    harness.host.advance(10 * TIMEOUT_US)
    assert harness.expired == []


def test_a_leader_without_followers_resigns() -> None:
    harness = LeaderHarness()
    harness.host.advance(INIT_LIMIT * TICK_US - 1)
    assert harness.lost == 0
    harness.host.advance(1)
    assert harness.lost == 1


def test_a_new_leader_restarts_session_timeouts_and_pings_of_followers_extend_them() -> None:
    store = make_store()
    store.tree.apply(CreateSession(7, "broker-1", TIMEOUT_US), _IgnoringListener())
    store.tree.apply(CreateSession(8, "broker-2", TIMEOUT_US), _IgnoringListener())
    harness = LeaderHarness(store=store)
    harness.host.advance(5 * SECOND)
    harness.synchronize(2)
    for _ in range(4):
        harness.host.advance(SECOND)
        harness.receive_from(2, protocol.FollowerPing((7,)))
    harness.host.advance(2 * SECOND)
    assert harness.expired == []
    harness.receive_from(2, protocol.FollowerPing((7,)))
    harness.host.advance(SECOND)
    assert harness.expired == [8]


def test_a_request_via_a_server_that_the_client_has_left_is_refused() -> None:
    harness = LeaderHarness()
    harness.synchronize(2)
    harness.synchronize(3)
    harness.receive_from(2, protocol.ForwardedRequest(CreateSession(7, "broker-1", TIMEOUT_US), 1))
    harness.receive_from(3, protocol.Revalidate(7))
    assert harness.messages(3, protocol.Revalidated) == [protocol.Revalidated(7, True)]
    write = Write(7, (zk.Create("/a"),))
    harness.receive_from(2, protocol.ForwardedRequest(write, 2))
    harness.receive_from(3, protocol.ForwardedRequest(write, 1))
    assert [entry.transaction for entry in harness.store.log[1:]] == [
        ErrorTransaction(zk.SESSION_EXPIRED),
        write,
    ]


def test_a_closing_session_cannot_be_revalidated_before_the_commit() -> None:
    harness = LeaderHarness()
    harness.synchronize(2)
    for transaction in (CreateSession(7, "broker-1", TIMEOUT_US), CloseSession(7, expired=False)):
        harness.receive_from(2, protocol.ForwardedRequest(transaction, 1))
    harness.receive_from(2, protocol.Revalidate(7))
    assert harness.messages(2, protocol.Revalidated) == [protocol.Revalidated(7, False)]


class _IgnoringListener:
    """Ignores the changes that transactions make."""

    def on_created(self, *_: Any) -> None:
        pass

    on_written = on_deleted = on_created

    def on_session_end(self, *_: Any, expired: bool) -> None:
        pass


class FollowerHarness:
    """A follower, server 2. The test plays its leader."""

    def __init__(self) -> None:
        self.host = FakeHost("zookeeper-2")
        self.store = make_store(2)
        self.synced = 0
        self.lost = 0
        self.follower = EnsembleFollower(
            self.host,
            self.store,
            "zookeeper-1 quorum",
            INIT_LIMIT * TICK_US,
            SYNC_LIMIT * TICK_US,
            self.commit,
            self.sync,
            self.lose,
        )
        self.follower.start()

    def commit(self, committed: int) -> None:
        self.store.applied = committed

    def sync(self) -> None:
        self.synced += 1

    def lose(self) -> None:
        self.lost += 1

    def receive(self, body: Any) -> list[Any]:
        """Deliver a message of the leader and return the follower's answers."""
        self.host.sent.clear()
        connection = self.host.connections[-1]
        connection.client_endpoint.receive_response(Reply(connection, PUSHED, body))
        return [sent.body for sent in self.host.sent]


def test_a_follower_replaces_its_unapplied_transactions_with_those_of_the_leader() -> None:
    harness = FollowerHarness()
    own_log = [LoggedTransaction(1, ErrorTransaction(str(number)), 2, number) for number in range(3)]
    harness.store.log.extend(own_log)
    harness.store.applied = 1
    harness.store.current_epoch = 1
    assert harness.receive(protocol.LeaderInfo(2)) == [protocol.AckEpoch(2, 1, (1, 3), 1)]
    leaders_entry = LoggedTransaction(2, ErrorTransaction("new"), 1, 1)
    assert harness.receive(protocol.NewLeader(2, 1, (leaders_entry,))) == [protocol.QuorumAck(2, 2)]
    assert harness.store.log == [own_log[0], leaders_entry]
    assert (harness.store.accepted_epoch, harness.store.current_epoch) == (2, 2)
    harness.receive(protocol.UpToDate(2))
    assert (harness.synced, harness.store.applied) == (1, 2)


def test_a_follower_rejects_an_older_epoch_and_acknowledges_each_epoch_only_once() -> None:
    harness = FollowerHarness()
    harness.store.accepted_epoch = 5
    assert harness.receive(protocol.LeaderInfo(5)) == [protocol.AckEpoch(2, -1, (0, 0), 0)]
    harness.receive(protocol.LeaderInfo(4))
    assert harness.lost == 1


@pytest.mark.parametrize(("is_synced", "limit"), [(False, INIT_LIMIT), (True, SYNC_LIMIT)])
def test_a_follower_gives_up_on_a_silent_leader(is_synced: bool, limit: int) -> None:
    harness = FollowerHarness()
    harness.receive(protocol.LeaderInfo(1))
    harness.receive(protocol.NewLeader(1, 0, ()))
    if is_synced:
        harness.receive(protocol.UpToDate(0))
    harness.host.advance(limit * TICK_US - 1)
    assert harness.lost == 0
    harness.host.advance(1)
    assert harness.lost == 1


def test_a_follower_tries_five_times_a_second_apart_to_reach_its_leader() -> None:
    harness = FollowerHarness()
    for second in range(5):
        (sent,) = harness.host.sent
        assert sent.at_us == second * SECOND
        harness.host.sent.clear()
        assert harness.lost == 0
        sent.lose()
        harness.host.advance(SECOND)
    assert harness.lost == 1


# Clients


class Listener:
    def __init__(self) -> None:
        self.fired: list[str] = []

    def session_established(self) -> None:
        pass

    session_expired = session_established

    def watch_fired(self, event: zk.WatchEvent) -> None:
        self.fired.append(event.path)


SERVERS = ("zookeeper-1", "zookeeper-2", "zookeeper-3")


def make_client(**choices: tuple[int, ...]) -> tuple[FakeHost, ZooKeeperClient]:
    host = FakeHost("broker-1", recorded_choices(dict(choices)))
    client = ZooKeeperClient(host, TIMEOUT_US, Listener(), SERVERS)
    client.start()
    return host, client


@pytest.mark.parametrize(("choices", "first"), [((0, 0), "zookeeper-1"), ((2, 0), "zookeeper-3")])
def test_a_client_connects_first_to_a_random_server(choices: tuple[int, ...], first: str) -> None:
    host, _ = make_client(network=choices)
    assert host.take().server == first


def test_a_client_tries_the_servers_in_turn_and_waits_a_second_after_each_round() -> None:
    host, _ = make_client()
    tried = []
    for _ in range(7):
        while not host.sent:
            host.advance(SECOND // 10)
        sent = host.take()
        tried.append((sent.server[-1], sent.at_us // SECOND))
        sent.lose()
        host.advance(0)
    assert tried == [("1", 0), ("2", 0), ("3", 0), ("1", 1), ("2", 1), ("3", 1), ("1", 2)]


def test_an_idle_client_notices_a_lost_connection() -> None:
    host, _ = make_client()
    sent = host.take()
    sent.answer(zk.ConnectResponse(zk.OK, 7))
    sent.lose()
    host.advance(0)
    reconnect = host.take()
    assert isinstance(reconnect.body, zk.ConnectRequest)
    assert (reconnect.server, reconnect.body.session_id) == ("zookeeper-2", 7)


def test_a_reconnecting_client_sends_its_last_zxid_and_its_watches() -> None:
    host, client = make_client()
    host.take().answer(zk.ConnectResponse(zk.OK, 7))
    reads = (
        zk.GetData("/there", watch=True),
        zk.GetData("/missing", watch=True),
        zk.GetChildren("/there", watch=True),
        zk.GetData("/fired", watch=True),
        zk.GetData("/unwatched"),
    )
    client.submit(reads, lambda _: None)
    errors = (zk.OK, zk.NO_NODE, zk.OK, zk.OK, zk.OK)
    sent = host.take()
    sent.answer(zk.ZooKeeperResponse(zk.OK, tuple(map(zk.ZooKeeperResult, errors)), sent.body, zxid=41))
    connection = sent.connection
    connection.client_endpoint.receive_response(
        Reply(connection, PUSHED, zk.WatchEvent("/fired", children=False))
    )
    sent.lose()
    host.advance(SECOND)
    reconnect = host.take()
    assert reconnect.server == "zookeeper-2"
    assert reconnect.body == zk.ConnectRequest(7, TIMEOUT_US, 41, ("/there",), ("/missing",), ("/there",))

"""The servers of a ZooKeeper ensemble one at a time: a leader, a follower, a client."""

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


class Leader:
    """Server 1 as leader; the test plays its followers."""

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

    def says(self, server: int, body: Any) -> None:
        self.leader.receive(self.connections[server], body)

    def connect(self, server: int, accepted_epoch: int = 0) -> None:
        connection = self.host.connect("zookeeper-1", "zookeeper-quorum", FakeEndpoint(self.host.clock))
        self.connections[server] = connection
        self.says(server, protocol.FollowerInfo(server, accepted_epoch))

    def synchronize(self, server: int, epoch: int = 0) -> None:
        """Let a server connect, acknowledge the epoch and store the log."""
        self.connect(server, epoch)
        self.says(server, protocol.AckEpoch(server, epoch, (0, 0), 0))
        if self.messages(server, protocol.NewLeader):
            self.has(server)

    def has(self, server: int) -> None:
        self.says(server, protocol.QuorumAck(server, len(self.store.log)))

    def messages(self, server: int, kind: type[Any]) -> list[Any]:
        connection = self.connections[server]
        return [
            m.body for m in self.host.responses if m.connection is connection and isinstance(m.body, kind)
        ]


def test_a_leader_serves_when_a_majority_has_its_log() -> None:
    lead = Leader(servers=5)
    lead.synchronize(2)
    assert (lead.messages(2, protocol.LeaderInfo), lead.formed) == ([], [])
    lead.connect(3)
    for server in (2, 3):
        assert lead.messages(server, protocol.LeaderInfo) == [protocol.LeaderInfo(1)]
        lead.says(server, protocol.AckEpoch(server, 0, (0, 0), 0))
    lead.has(2)
    assert lead.formed == []
    lead.has(3)
    assert lead.formed == [1]
    assert (
        lead.messages(2, protocol.UpToDate) == lead.messages(3, protocol.UpToDate) == [protocol.UpToDate(0)]
    )


def test_a_leaders_epoch_is_later_than_any_in_its_majority() -> None:
    lead = Leader()
    lead.synchronize(2, epoch=6)
    assert lead.messages(2, protocol.LeaderInfo) == [protocol.LeaderInfo(7)]
    assert (lead.store.accepted_epoch, lead.store.current_epoch) == (7, 0)


@pytest.mark.parametrize(
    ("epoch", "position", "is_better"),
    [(2, (2, 1), False), (2, (2, 2), True), (3, (0, 0), True), (1, (9, 9), False)],
)
def test_a_leader_gives_up_if_a_follower_has_a_longer_log(
    epoch: int, position: tuple[int, int], is_better: bool
) -> None:
    store = make_store()
    store.current_epoch = store.accepted_epoch = 2
    store.log.append(LoggedTransaction(2, ErrorTransaction(""), 1, 1))
    lead = Leader(store=store)
    lead.connect(2, 2)
    lead.says(2, protocol.AckEpoch(2, epoch, position, 0))
    assert lead.lost == is_better
    assert bool(lead.messages(2, protocol.NewLeader)) != is_better


@pytest.mark.parametrize(("servers", "needed"), [(3, 1), (4, 2), (5, 2)])
def test_a_transaction_is_committed_when_a_majority_has_logged_it(servers: int, needed: int) -> None:
    lead = Leader(servers)
    for server in range(2, servers + 1):
        lead.synchronize(server)
    for server in range(2, servers + 1):
        lead.says(server, protocol.AckEpoch(server, 0, (0, 0), 0)) if not lead.formed else None
        lead.has(server)
    before = lead.store.applied
    lead.leader.submit(Write(0, (zk.Create("/a"),)), 1)
    for acks, server in enumerate(range(2, servers + 1), 1):
        assert lead.store.applied == before + (acks > needed)
        lead.has(server)
        assert bool(lead.messages(2, protocol.Commit)) == (acks >= needed)


def test_an_acknowledgement_commits_no_later_transaction() -> None:
    lead = Leader()
    lead.synchronize(2)
    for tag in (1, 2):
        lead.leader.submit(Write(0, (zk.Create(f"/{tag}"),)), tag)
    lead.says(2, protocol.QuorumAck(2, 1))
    assert (lead.store.applied, len(lead.store.log)) == (1, 2)


def test_a_leader_without_a_majority_gives_up_and_expires_no_session() -> None:
    lead = Leader()
    lead.synchronize(2)
    lead.leader.submit(CreateSession(7, "broker-1", 3 * TIMEOUT_US), 1)
    lead.has(2)
    lead.host.advance((SYNC_LIMIT + 1) * TICK_US)
    assert lead.lost == 1
    lead.host.advance(10 * TIMEOUT_US)
    assert lead.expired == []


def test_a_leader_without_followers_gives_up() -> None:
    lead = Leader()
    lead.host.advance(INIT_LIMIT * TICK_US - 1)
    assert lead.lost == 0
    lead.host.advance(1)
    assert lead.lost == 1


def test_a_new_leader_restarts_session_timeouts_and_pings_of_followers_extend_them() -> None:
    store = make_store()
    store.tree.apply(CreateSession(7, "broker-1", TIMEOUT_US), _IgnoringListener())
    store.tree.apply(CreateSession(8, "broker-2", TIMEOUT_US), _IgnoringListener())
    lead = Leader(store=store)
    lead.host.advance(5 * SECOND)
    lead.synchronize(2)
    for _ in range(4):
        lead.host.advance(SECOND)
        lead.says(2, protocol.FollowerPing((7,)))
    lead.host.advance(2 * SECOND)
    assert lead.expired == []
    lead.says(2, protocol.FollowerPing((7,)))
    lead.host.advance(SECOND)
    assert lead.expired == [8]


def test_a_request_over_a_server_that_the_client_has_left_is_refused() -> None:
    lead = Leader()
    lead.synchronize(2)
    lead.synchronize(3)
    lead.says(2, protocol.ForwardedRequest(CreateSession(7, "broker-1", TIMEOUT_US), 1))
    lead.says(3, protocol.Revalidate(7))
    assert lead.messages(3, protocol.Revalidated) == [protocol.Revalidated(7, True)]
    write = Write(7, (zk.Create("/a"),))
    lead.says(2, protocol.ForwardedRequest(write, 2))
    lead.says(3, protocol.ForwardedRequest(write, 1))
    assert [entry.transaction for entry in lead.store.log[1:]] == [
        ErrorTransaction(zk.SESSION_EXPIRED),
        write,
    ]


def test_a_closing_session_cannot_be_revalidated_before_the_commit() -> None:
    lead = Leader()
    lead.synchronize(2)
    for transaction in (CreateSession(7, "broker-1", TIMEOUT_US), CloseSession(7, expired=False)):
        lead.says(2, protocol.ForwardedRequest(transaction, 1))
    lead.says(2, protocol.Revalidate(7))
    assert lead.messages(2, protocol.Revalidated) == [protocol.Revalidated(7, False)]


class _IgnoringListener:
    """Ignores the changes of transactions."""

    def created(self, *_: Any) -> None:
        pass

    written = deleted = created

    def session_ended(self, *_: Any, expired: bool) -> None:
        pass


class Following:
    """Server 2 as follower; the test plays its leader."""

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

    def says(self, body: Any) -> list[Any]:
        """Return the follower's answers to a message of the leader."""
        self.host.sent.clear()
        connection = self.host.connections[-1]
        connection.client_endpoint.receive_response(Reply(connection, PUSHED, body))
        return [sent.body for sent in self.host.sent]


def test_a_follower_replaces_unapplied_transactions_by_the_leaders() -> None:
    following = Following()
    own = [LoggedTransaction(1, ErrorTransaction(str(number)), 2, number) for number in range(3)]
    following.store.log.extend(own)
    following.store.applied = 1
    following.store.current_epoch = 1
    assert following.says(protocol.LeaderInfo(2)) == [protocol.AckEpoch(2, 1, (1, 3), 1)]
    theirs = LoggedTransaction(2, ErrorTransaction("new"), 1, 1)
    assert following.says(protocol.NewLeader(2, 1, (theirs,))) == [protocol.QuorumAck(2, 2)]
    assert following.store.log == [own[0], theirs]
    assert (following.store.accepted_epoch, following.store.current_epoch) == (2, 2)
    following.says(protocol.UpToDate(2))
    assert (following.synced, following.store.applied) == (1, 2)


def test_a_follower_rejects_an_older_epoch_and_acknowledges_one_once() -> None:
    following = Following()
    following.store.accepted_epoch = 5
    assert following.says(protocol.LeaderInfo(5)) == [protocol.AckEpoch(2, -1, (0, 0), 0)]
    following.says(protocol.LeaderInfo(4))
    assert following.lost == 1


@pytest.mark.parametrize(("is_synced", "limit"), [(False, INIT_LIMIT), (True, SYNC_LIMIT)])
def test_a_follower_gives_up_a_silent_leader(is_synced: bool, limit: int) -> None:
    following = Following()
    following.says(protocol.LeaderInfo(1))
    following.says(protocol.NewLeader(1, 0, ()))
    if is_synced:
        following.says(protocol.UpToDate(0))
    following.host.advance(limit * TICK_US - 1)
    assert following.lost == 0
    following.host.advance(1)
    assert following.lost == 1


def test_a_follower_tries_five_times_a_second_apart_to_reach_its_leader() -> None:
    following = Following()
    for second in range(5):
        (sent,) = following.host.sent
        assert sent.at_us == second * SECOND
        following.host.sent.clear()
        assert following.lost == 0
        sent.lose()
        following.host.advance(SECOND)
    assert following.lost == 1


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
def test_a_client_starts_with_a_random_server(choices: tuple[int, ...], first: str) -> None:
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
    again = host.take()
    assert isinstance(again.body, zk.ConnectRequest)
    assert (again.server, again.body.session_id) == ("zookeeper-2", 7)


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

"""ZooKeeper: znodes and their versions, sessions and ephemerals, one-shot watches, transactions."""

from typing import Any

import pytest

from harrow.cluster_model.sim.connection import PUSHED, Connection, Exchange
from harrow.cluster_model.zookeeper.service import protocol as zk
from harrow.cluster_model.zookeeper.service.client import ZooKeeperClient
from harrow.cluster_model.zookeeper.service.data_tree import DataTree
from harrow.cluster_model.zookeeper.service.server import ServerStore
from harrow.cluster_model.zookeeper.service.standalone_server import StandaloneServer
from tests.cluster_model.fakes import SECOND, FakeEndpoint, FakeHost

TICK_US = 2 * SECOND
TIMEOUT_US = 6 * SECOND


class Server:
    """A ZooKeeper and brokers with sessions."""

    def __init__(self, *brokers: int, start_us: int = 0) -> None:
        self.host = FakeHost("zookeeper")
        self.host.clock.now_us = start_us
        self.tree = DataTree(zk.ROOTS)
        self.zookeeper = StandaloneServer(self.host, TICK_US, ServerStore(0, self.tree))
        self.zookeeper.start()
        self.connections: dict[int, Connection] = {}
        self.sessions: dict[int, int] = {}
        for broker in brokers:
            self.connect(broker)

    def connect(self, broker: int, session: int = 0, **seen: Any) -> str:
        connection = self.host.connect("zookeeper", "zookeeper", FakeEndpoint(self.host.clock))
        connection.client.name = f"broker-{broker}"
        answer = self._ask(connection, zk.ConnectRequest(session, TIMEOUT_US, **seen))
        self.connections[broker] = connection
        self.sessions[broker] = answer.session_id
        return str(answer.error)

    def _ask(self, connection: Connection, body: Any) -> Any:
        before = len(self.host.responses)
        self.zookeeper.clients.receive_request(Exchange(connection, 1, body))
        answers = [m for m in self.host.responses[before:] if m.correlation_id == 1]
        # A watch event comes before the answer to the write that fired it.
        assert self.host.responses[-1] is answers[0]
        assert answers[0].connection is connection
        return answers[0].body

    def ask(
        self,
        broker: int,
        *operations: zk.ZooKeeperOperation,
        atomic: bool = False,
        guard: zk.Check | None = None,
    ) -> zk.ZooKeeperResponse:
        request = zk.ZooKeeperRequest(self.sessions[broker], operations, atomic, guard)
        answer = self._ask(self.connections[broker], request)
        assert isinstance(answer, zk.ZooKeeperResponse)
        return answer

    def do(self, broker: int, operation: zk.ZooKeeperOperation) -> zk.ZooKeeperResult:
        response = self.ask(broker, operation)
        assert response.error == zk.OK
        return response.results[0]

    def events(self, broker: int) -> list[tuple[str, bool]]:
        """Return a broker's watch events as (path, children)."""
        connection = self.connections[broker]
        return [
            (m.body.path, m.body.children)
            for m in self.host.responses
            if m.connection is connection and m.correlation_id == PUSHED
        ]

    def children(self, path: str) -> tuple[str, ...]:
        return self.tree.read(zk.GetChildren(path)).children

    def expire(self, broker: int) -> None:
        self.zookeeper.expire_session(self.sessions[broker])

    def exists(self, path: str) -> bool:
        return self.tree.node(path) is not None


# Znodes


def test_each_write_raises_the_version_and_keeps_the_czxid() -> None:
    server = Server(1)
    created = server.do(1, zk.Create("/a", "x"))
    assert (created.error, created.version, created.path) == (zk.OK, 0, "/a")
    assert server.do(1, zk.Create("/a", "y")).error == zk.NODE_EXISTS
    assert [server.do(1, zk.SetData("/a", n)).version for n in range(3)] == [1, 2, 3]
    read = server.do(1, zk.GetData("/a"))
    assert (read.data, read.version, read.czxid) == (2, 3, created.czxid)
    assert server.do(1, zk.Delete("/a")).error == zk.OK
    later = server.do(1, zk.Create("/a"))
    assert later.version == 0
    assert later.czxid > created.czxid


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        (zk.SetData("/a", "new", 1), zk.OK),
        (zk.SetData("/a", "new", 0), zk.BAD_VERSION),
        (zk.SetData("/a", "new", 2), zk.BAD_VERSION),
        (zk.SetData("/a", "new"), zk.OK),
        (zk.SetData("/b", "new"), zk.NO_NODE),
        (zk.Delete("/a", 1), zk.OK),
        (zk.Delete("/a", 0), zk.BAD_VERSION),
        (zk.Delete("/a"), zk.OK),
        (zk.Delete("/b"), zk.NO_NODE),
        (zk.GetData("/b"), zk.NO_NODE),
        (zk.GetChildren("/b"), zk.NO_NODE),
    ],
)
def test_conditional_writes_check_the_version(operation: zk.ZooKeeperOperation, error: str) -> None:
    server = Server(1)
    server.do(1, zk.Create("/a", "old"))
    server.do(1, zk.SetData("/a", "set once"))
    assert server.do(1, operation).error == error
    if error != zk.OK:
        assert server.tree.data("/a") == "set once"
    else:
        assert server.tree.data("/a") == (None if isinstance(operation, zk.Delete) else "new")


def test_create_makes_parents_and_numbers_sequential_nodes() -> None:
    server = Server(1, 2)
    server.do(1, zk.Create(zk.state_path("my-topic-3"), "state"))
    assert zk.state_path("my-topic-3") == "/brokers/topics/my-topic/partitions/3/state"
    assert server.children(zk.BROKER_TOPICS) == ("my-topic",)
    paths = [
        server.do(broker, zk.Create(f"{zk.ISR_CHANGE_NOTIFICATION}/isr_change_", n, sequential=True)).path
        for n, broker in enumerate((1, 2, 1))
    ]
    assert [path.rsplit("_", 1)[1] for path in paths] == ["0000000000", "0000000001", "0000000002"]
    server.do(1, zk.Delete(paths[2]))
    last = server.do(1, zk.Create(f"{zk.ISR_CHANGE_NOTIFICATION}/isr_change_", sequential=True)).path
    assert last.endswith("_0000000003")  # a number is never used twice
    assert len(server.children(zk.ISR_CHANGE_NOTIFICATION)) == 3


# Transactions and guards


@pytest.mark.parametrize(
    ("second", "error"),
    [
        (zk.SetData("/a", "new", 0), zk.OK),
        (zk.SetData("/a", "new", 5), zk.BAD_VERSION),
        (zk.SetData("/c", "new"), zk.NO_NODE),
        (zk.Create("/a"), zk.NODE_EXISTS),
        (zk.Delete("/a", 5), zk.BAD_VERSION),
        (zk.Check("/a", 0), zk.OK),
        (zk.Check("/a", 5), zk.BAD_VERSION),
        (zk.Check("/c", 0), zk.NO_NODE),
    ],
)
def test_a_transaction_is_atomic(second: zk.ZooKeeperOperation, error: str) -> None:
    server = Server(1)
    server.do(1, zk.Create("/a", "old"))
    response = server.ask(1, zk.Create("/b", ephemeral=True), second, atomic=True)
    assert response.error == error
    assert len(response.results) == (2 if error == zk.OK else error == zk.NODE_EXISTS)
    # A client has to learn the owner of an existing znode.
    assert all(result.error == error for result in response.results)
    assert server.exists("/b") == (error == zk.OK)
    if isinstance(second, zk.SetData) and error == zk.OK:
        assert server.tree.data("/a") == "new"


def test_without_a_transaction_operations_are_independent() -> None:
    server = Server(1)
    response = server.ask(1, zk.SetData("/none", 1), zk.Create("/b"))
    assert response.error == zk.OK
    assert [result.error for result in response.results] == [zk.NO_NODE, zk.OK]


@pytest.mark.parametrize(("version", "error"), [(1, zk.OK), (0, zk.BAD_VERSION), (2, zk.BAD_VERSION)])
def test_a_guard_stops_a_deposed_controller(version: int, error: str) -> None:
    server = Server(1)
    server.do(1, zk.SetData(zk.CONTROLLER_EPOCH, 1, 0))
    guard = zk.Check(zk.CONTROLLER_EPOCH, version)
    response = server.ask(1, zk.Create("/a"), zk.GetData(zk.CONTROLLER_EPOCH), guard=guard)
    assert response.error == error
    assert server.exists("/a") == (error == zk.OK)


def test_the_first_to_create_the_controller_znode_wins() -> None:
    server = Server(1, 2)
    answers = []
    for broker in (2, 1):
        create = zk.Create(zk.CONTROLLER, broker, ephemeral=True)
        epoch = zk.SetData(zk.CONTROLLER_EPOCH, 1, 0)
        answers.append(server.ask(broker, create, epoch, atomic=True).error)
    assert answers == [zk.OK, zk.NODE_EXISTS]
    assert (server.tree.data(zk.CONTROLLER), server.tree.data(zk.CONTROLLER_EPOCH)) == (2, 1)


# Watches


@pytest.mark.parametrize(
    ("watch", "change", "fired"),
    [
        (zk.GetData("/a", watch=True), zk.SetData("/a", 1), [("/a", False)]),
        (zk.GetData("/a", watch=True), zk.Delete("/a"), [("/a", False)]),
        (zk.GetData("/new", watch=True), zk.Create("/new"), [("/new", False)]),
        (zk.GetData("/a", watch=True), zk.SetData("/a", 1, 9), []),  # a refused write
        (zk.GetData("/a", watch=True), zk.Create("/a/child"), []),
        (zk.GetChildren("/a", watch=True), zk.Create("/a/child"), [("/a", True)]),
        (zk.GetChildren("/a", watch=True), zk.Delete("/a/first"), [("/a", True)]),
        (zk.GetChildren("/a", watch=True), zk.SetData("/a", 1), []),
        (zk.GetChildren("/a", watch=True), zk.SetData("/a/first", 1), []),
        (zk.GetData("/a"), zk.SetData("/a", 1), []),
        (zk.GetChildren("/a"), zk.Create("/a/child"), []),
    ],
)
def test_a_watch_fires_for_changes_of_its_kind_only(
    watch: zk.ZooKeeperOperation, change: zk.ZooKeeperOperation, fired: list[tuple[str, bool]]
) -> None:
    server = Server(1, 2)
    for path in ("/a", "/a/first"):
        server.do(1, zk.Create(path))
    server.do(1, watch)
    server.do(2, change)
    assert server.events(1) == fired
    assert server.events(2) == []


def test_a_watch_fires_once_even_if_set_twice() -> None:
    server = Server(1, 2)
    server.do(1, zk.Create("/a"))
    for _ in range(2):
        server.do(1, zk.GetData("/a", watch=True))
    server.do(2, zk.SetData("/a", 1))
    server.do(2, zk.SetData("/a", 2))
    assert server.events(1) == [("/a", False)]
    server.do(1, zk.GetData("/a", watch=True))
    server.do(2, zk.SetData("/a", 3))
    assert server.events(1) == [("/a", False)] * 2


def test_a_watch_ends_with_its_session_and_moves_with_it() -> None:
    server = Server(1, 2, 3)
    server.do(1, zk.Create("/a"))
    for broker in (1, 2):
        server.do(broker, zk.GetData("/a", watch=True))
    server.expire(1)
    zxid = server.ask(2).zxid
    assert server.connect(2, server.sessions[2], last_zxid=zxid, data_watches=("/a",)) == zk.OK
    server.do(3, zk.SetData("/a", 1))
    assert server.events(1) == []
    assert server.events(2) == [("/a", False)]  # over the new connection


@pytest.mark.parametrize(
    ("watches", "change"),
    [
        ({"data_watches": ("/a",)}, zk.SetData("/a", 1)),
        ({"data_watches": ("/a",)}, zk.Delete("/a")),
        ({"exist_watches": ("/b",)}, zk.Create("/b")),
        ({"child_watches": ("/",)}, zk.Create("/b")),
        ({"child_watches": ("/",)}, zk.Delete("/a")),
    ],
)
def test_a_watch_that_missed_a_change_fires_on_the_new_connection_and_only_then(
    watches: dict[str, tuple[str, ...]], change: zk.ZooKeeperOperation
) -> None:
    server = Server(1, 2)
    server.do(1, zk.Create("/a"))
    zxid = server.ask(1).zxid
    assert server.connect(1, server.sessions[1], last_zxid=zxid, **watches) == zk.OK
    assert server.events(1) == []  # no watch has fired yet
    server.zookeeper.clients.connection_closed(server.connections[1])
    server.do(2, change)
    assert server.connect(1, server.sessions[1], last_zxid=zxid, **watches) == zk.OK
    (event,) = server.events(1)
    assert (event,) == tuple((path, kind == "child_watches") for kind, (path,) in watches.items())
    assert server.connect(1, server.sessions[1], last_zxid=server.ask(1).zxid) == zk.OK
    server.do(2, zk.Create("/c"))
    assert server.events(1) == []  # the watch fired once, and is not set again


def test_a_server_rejects_a_client_with_a_later_zxid() -> None:
    server = Server(1)
    connection = server.host.connect("zookeeper", "zookeeper", FakeEndpoint(server.host.clock))
    ahead = zk.ConnectRequest(server.sessions[1], TIMEOUT_US, last_zxid=server.tree.zxid + 1)
    server.zookeeper.clients.receive_request(Exchange(connection, 1, ahead))
    assert server.host.closed_by_server == [connection]


# Sessions


def test_ephemeral_nodes_end_with_their_session_and_fire_watches() -> None:
    server = Server(1, 2)
    for broker in (1, 2):
        server.do(broker, zk.Create(zk.broker_path(broker), broker, ephemeral=True))
    server.do(1, zk.Create(zk.CONTROLLER, 1, ephemeral=True))
    server.do(1, zk.Create("/kept"))
    server.do(2, zk.GetChildren(zk.BROKER_IDS, watch=True))
    server.do(2, zk.GetData(zk.CONTROLLER, watch=True))
    server.expire(1)
    server.expire(1)  # It has already expired.
    assert server.children(zk.BROKER_IDS) == ("2",)
    assert not server.exists(zk.CONTROLLER)
    assert server.exists("/kept")
    assert sorted(server.events(2)) == [(zk.BROKER_IDS, True), (zk.CONTROLLER, False)]
    assert server.host.events_named("session_expired") == [(1, ("/brokers/ids/1", "/controller"))]


def test_an_ephemeral_node_that_an_administrator_deleted_is_not_deleted_twice() -> None:
    server = Server(1, 2)
    server.do(1, zk.Create(zk.CONTROLLER, 1, ephemeral=True))
    server.zookeeper.clients.write(zk.Delete(zk.CONTROLLER))
    server.do(2, zk.Create(zk.CONTROLLER, 2, ephemeral=True))
    server.expire(1)
    assert server.tree.data(zk.CONTROLLER) == 2


@pytest.mark.parametrize(
    ("start_us", "request_at_us", "expires_at_us"),
    [
        # timeout 6 s, ticks of 2 s: the first tick after the deadline
        (0, 1, 8 * SECOND),
        (0, SECOND, 8 * SECOND),
        (0, 2 * SECOND - 1, 8 * SECOND),
        (0, 3 * SECOND, 10 * SECOND),
        (0, 0, 8 * SECOND),
        (0, 2 * SECOND, 10 * SECOND),
        (-5 * SECOND, SECOND // 2, 8 * SECOND),
    ],
)
def test_sessions_expire_at_ticks(start_us: int, request_at_us: int, expires_at_us: int) -> None:
    server = Server(1, start_us=start_us)
    server.do(1, zk.Create(zk.broker_path(1), ephemeral=True))
    for at_us in range(start_us, request_at_us, SECOND):
        server.host.advance(at_us - server.host.clock.now_us)
        server.ask(1)  # a ping
    server.host.advance(request_at_us - server.host.clock.now_us)
    server.ask(1)
    server.host.advance(expires_at_us - request_at_us - 1)
    assert server.exists(zk.broker_path(1))
    server.host.advance(1)
    assert not server.exists(zk.broker_path(1))


def test_sessions_of_one_tick_expire_together_in_the_order_of_their_start() -> None:
    server = Server(3, 1, 2)
    for broker in (1, 2, 3):
        server.host.advance(300_000)
        server.ask(broker)
    server.host.advance(7 * SECOND)
    assert server.host.events == []
    server.host.advance(SECOND)
    assert [event[:3] for event in server.host.events] == [
        (8 * SECOND, "session_expired", broker) for broker in (3, 1, 2)
    ]


def test_an_expired_session_is_refused_by_every_request() -> None:
    server = Server(1)
    server.expire(1)
    assert server.ask(1, zk.GetData("/")).error == zk.SESSION_EXPIRED
    old = server.sessions[1]
    assert server.connect(1, old) == zk.SESSION_EXPIRED
    assert server.connect(1) == zk.OK
    assert server.sessions[1] != old


def test_a_session_that_has_moved_is_refused_over_its_old_connection() -> None:
    server = Server(1)
    old = server.connections[1]
    server.connect(1, server.sessions[1])
    request = zk.ZooKeeperRequest(server.sessions[1], (zk.Create("/a"),))
    server.zookeeper.clients.receive_request(Exchange(old, 1, request))
    assert server.host.responses[-1].body.error == zk.SESSION_EXPIRED
    assert not server.exists("/a")
    assert server.do(1, zk.Create("/a")).error == zk.OK


def test_moving_a_session_keeps_it_alive() -> None:
    server = Server(1)
    server.do(1, zk.Create(zk.broker_path(1), ephemeral=True))
    server.host.advance(5 * SECOND)
    server.connect(1, server.sessions[1])
    server.host.advance(6 * SECOND)
    assert server.exists(zk.broker_path(1))
    server.host.advance(SECOND)
    assert not server.exists(zk.broker_path(1))


# The client's side


class Listener:
    def __init__(self) -> None:
        self.events_received: list[Any] = []

    def session_established(self) -> None:
        self.events_received.append("established")

    def session_expired(self) -> None:
        self.events_received.append("expired")

    def watch_fired(self, event: zk.WatchEvent) -> None:
        self.events_received.append(event.path)


class Client:
    """A broker's ZooKeeper client on a fake host; the test plays ZooKeeper."""

    def __init__(self) -> None:
        self.host = FakeHost("broker-1")
        self.listener = Listener()
        self.client = ZooKeeperClient(self.host, TIMEOUT_US, self.listener)
        self.answers: list[tuple[str, str]] = []
        self.client.start()

    def established(self, session: int = 7, error: str = zk.OK) -> None:
        sent = self.host.take()
        assert isinstance(sent.body, zk.ConnectRequest)
        sent.answer(zk.ConnectResponse(error, session))

    def submit(self, path: str) -> None:
        self.client.submit((zk.GetData(path),), lambda answer: self.answers.append((path, answer.error)))

    def paths(self) -> list[str]:
        """Return the paths of pending requests, with pings as empty strings."""
        requests = [sent.body for sent in self.host.sent if isinstance(sent.body, zk.ZooKeeperRequest)]
        return [request.operations[0].path if request.operations else "" for request in requests]


def test_requests_wait_for_the_session() -> None:
    client = Client()
    client.submit("/a")
    client.submit("/b")
    assert client.paths() == []
    client.established()
    assert client.listener.events_received == ["established"]
    assert client.paths() == ["/a", "/b"]
    assert {sent.body.session_id for sent in client.host.sent} == {7}


def test_requests_in_flight_on_a_broken_connection_are_sent_again_in_order() -> None:
    client = Client()
    client.established()
    client.submit("/a")
    client.submit("/b")
    client.host.sent[0].lose()
    client.host.sent.clear()
    client.submit("/c")
    client.host.advance(SECOND)
    client.established(session=7)
    assert client.paths() == ["/a", "/b", "/c"]
    assert client.answers == []
    assert client.listener.events_received == ["established"]  # it is the same session


@pytest.mark.parametrize("learns_by", ["request", "connect"])
def test_an_expired_session_is_replaced_and_its_requests_in_flight_fail(learns_by: str) -> None:
    client = Client()
    client.established()
    client.submit("/a")
    client.submit("/b")
    if learns_by == "request":
        client.host.take().answer(zk.ZooKeeperResponse(zk.SESSION_EXPIRED, ()))
    else:
        client.host.sent[0].lose()
        client.host.sent.clear()
        client.submit("/c")
        client.host.advance(SECOND)
        client.established(0, zk.SESSION_EXPIRED)
    client.host.sent = [sent for sent in client.host.sent if isinstance(sent.body, zk.ConnectRequest)]
    assert client.host.sent[-1].body.session_id == 0
    waited = [("/c", zk.SESSION_EXPIRED)] if learns_by == "connect" else []
    assert client.answers == [("/a", zk.SESSION_EXPIRED), ("/b", zk.SESSION_EXPIRED), *waited]
    client.established(session=8)
    assert client.listener.events_received == ["established", "expired", "established"]
    assert client.paths() == []  # no request of the old session moves to the new one


def test_an_idle_client_pings_and_gives_up_on_a_silent_server() -> None:
    client = Client()
    client.established()
    client.host.advance(2 * SECOND)  # half of the read timeout, which is two thirds of the session's
    assert client.paths() == [""]
    client.host.advance(4 * SECOND)
    assert len(client.host.closed) == 1
    client.host.sent.clear()
    client.host.advance(SECOND)
    assert client.host.take().body.session_id == 7


# Closing


def test_closing_a_session_deletes_its_ephemeral_nodes_at_once() -> None:
    server = Server(1, 2)
    server.do(1, zk.Create(zk.broker_path(1), 1, ephemeral=True))
    server.do(2, zk.GetChildren(zk.BROKER_IDS, watch=True))
    assert server._ask(server.connections[1], zk.CloseRequest(server.sessions[1])).error == zk.OK
    assert server.children(zk.BROKER_IDS) == ()
    assert server.events(2) == [(zk.BROKER_IDS, True)]
    assert server.host.events_named("session_closed") == [(1, (zk.broker_path(1),))]
    server.host.advance(20 * SECOND)
    assert [broker for broker, _ in server.host.events_named("session_expired")] == [2]


def test_closing_an_expired_session_does_nothing() -> None:
    server = Server(1)
    server.expire(1)
    assert server._ask(server.connections[1], zk.CloseRequest(server.sessions[1])).error == zk.OK
    assert server.host.events_named("session_closed") == []


def test_a_client_closes_after_its_requests_in_flight_and_sends_nothing_more() -> None:
    client, closed = Client(), []
    client.established()
    client.submit("/a")
    client.client.close(lambda: closed.append("closed"))
    client.submit("/b")
    assert client.paths() == ["/a"]
    client.host.take().answer(zk.ZooKeeperResponse(zk.OK, (zk.ZooKeeperResult(zk.OK),)))
    assert (client.answers, closed) == ([("/a", zk.OK)], [])
    sent = client.host.take()
    assert sent.body == zk.CloseRequest(7)
    sent.answer(zk.ZooKeeperResponse(zk.OK, ()))
    assert closed == ["closed"]
    client.host.advance(60 * SECOND)
    assert client.host.requests() == []


@pytest.mark.parametrize("how", ["breaks", "is silent"])
def test_a_client_whose_connection_fails_while_it_closes_does_not_connect_again(how: str) -> None:
    client, closed = Client(), []
    client.established()
    client.submit("/a")
    client.client.close(lambda: closed.append(client.host.clock.now_us))
    if how == "breaks":
        client.host.take().lose()
    client.host.advance(60 * SECOND)
    assert closed == [0 if how == "breaks" else TIMEOUT_US * 2 // 3]
    assert len(client.host.connections) == 1


def test_a_client_without_a_connection_does_not_wait_for_one_to_close() -> None:
    client, closed = Client(), []
    client.client.close(lambda: closed.append("closed"))
    assert closed == ["closed"]

"""Requests that wait for data, for the high watermark or for an ISR write, and their deadlines."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.broker.delayed_requests import (
    DelayedFetch,
    DelayedProduce,
    OperationTimer,
    PendingAck,
)
from harrow.cluster_model.broker.fetch_session import FetchSession, HostedPartition, HostedPartitions
from harrow.cluster_model.broker.metadata_cache import MetadataCache
from harrow.cluster_model.broker.purgatory import DelayedOperation, Watchers
from harrow.cluster_model.broker.replica import UNKNOWN_OFFSET
from harrow.cluster_model.broker.replica_manager import ReplicaManager
from harrow.cluster_model.log.disk import Disk
from harrow.cluster_model.protocol import (
    FetchRequest,
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    PartitionData,
    ProduceRequest,
)
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import Value, broker_config, topic_config
from harrow.cluster_model.sim.connection import Connection, Exchange
from harrow.cluster_model.zookeeper.alter_partition_manager import ZkAlterPartitionManager
from harrow.cluster_model.zookeeper.service import protocol as zk
from harrow.cluster_model.zookeeper.service.client import ZooKeeperClient
from tests.cluster_model.fakes import MS, SECOND, FakeEndpoint, FakeHost, batch

P, Q = "t-0", "t-1"
WAIT_US = 500 * MS
TIMEOUT_US = 30 * SECOND


class FakeOperation(DelayedOperation):
    """An operation that completes on demand, with an action of its own."""

    def __init__(
        self, name: str, completed: list[str], on_complete: Callable[[], None] = lambda: None
    ) -> None:
        self.name = name
        self.completed = False
        self.ready = False
        self.tries = 0
        self.deadline_us = 0
        self._done = completed
        self._on_complete = on_complete

    def try_complete(self) -> bool:
        self.tries += 1
        if self.ready:
            self._complete()
        return self.ready

    def expire(self) -> None:
        self._complete()

    def _complete(self) -> None:
        self.completed = True
        self._done.append(self.name)
        self._on_complete()


def test_the_oldest_operation_is_tried_first_and_each_until_it_completes() -> None:
    completed: list[str] = []
    watchers, others = Watchers(), Watchers()
    one, both, other = (
        FakeOperation("one", completed),
        FakeOperation("both", completed),
        FakeOperation("other", completed),
    )
    watchers.watch(one)
    watchers.watch(both)
    others.watch(both)
    others.watch(other)
    both.ready = one.ready = True
    others.check()
    assert completed == ["both"]
    watchers.check()
    assert completed == ["both", "one"]
    assert (one.tries, both.tries, other.tries) == (1, 1, 1)
    watchers.check()
    assert one.tries == 1


def test_a_check_tries_only_the_operations_of_its_partition() -> None:
    completed: list[str] = []
    partitions = HostedPartitions()
    produce, deletion = FakeOperation("produce", completed), FakeOperation("deletion", completed)
    produce.ready = deletion.ready = True
    partitions.hosted_partition(P).watch_produce(produce)
    partitions.hosted_partition(P).watch_deletion(deletion)
    partitions.hosted_partition(Q).check()  # no operation waits for this partition
    assert (produce.tries, deletion.tries) == (0, 0)
    partitions.hosted_partition(P).check()
    assert completed == ["produce", "deletion"]


def test_a_completed_operation_is_dropped() -> None:
    completed: list[str] = []
    watchers = Watchers()
    waiting = FakeOperation("expired", completed)
    watchers.watch(waiting)
    waiting.expire()
    watchers.check()
    assert (completed, waiting.tries) == (["expired"], 0)


def test_operations_added_during_a_check_come_after_older_ones() -> None:
    completed: list[str] = []
    watchers = Watchers()
    late = FakeOperation("late", completed)
    first = FakeOperation("first", completed, lambda: watchers.watch(late))
    slow = FakeOperation("slow", completed)
    for waiting in (first, slow):
        watchers.watch(waiting)
    first.ready = True
    watchers.check()
    assert late.tries == 0
    late.ready = slow.ready = True
    watchers.check()
    assert completed == ["first", "slow", "late"]


# Deadlines


def timer_with(host: FakeHost, *deadlines_us: int) -> tuple[OperationTimer, list[Any], list[str]]:
    completed: list[str] = []
    timer = OperationTimer(host)
    operations: list[Any] = []
    for number, deadline_us in enumerate(deadlines_us):
        operations.append(FakeOperation(str(number), completed))
        operations[-1].deadline_us = deadline_us
    return timer, operations, completed


def test_an_operation_expires_at_its_deadline() -> None:
    host = FakeHost()
    timer, (waiting,), completed = timer_with(host, 100)
    timer.watch(waiting)
    host.advance(99)
    assert completed == []
    host.advance(1)
    assert completed == ["0"]


def test_a_completed_operation_does_not_expire_and_the_next_one_has_its_own_deadline() -> None:
    host = FakeHost()
    timer, (first, second), completed = timer_with(host, 100, 170)
    timer.watch(first)
    first.ready = True
    first.try_complete()
    host.advance(70)
    timer.watch(second)
    host.advance(99)  # 169: the timer has fired at 100 and was set again
    assert completed == ["0"]
    host.advance(1)
    assert completed == ["0", "1"]
    host.advance(1000)
    assert completed == ["0", "1"]


# A broker's replicas


class FakeZooKeeper(ZooKeeperClient):
    """Records submitted ISR writes. A test answers them."""

    def __init__(self) -> None:
        self.submitted: list[
            tuple[tuple[zk.ZooKeeperOperation, ...], Callable[[zk.ZooKeeperResponse], None]]
        ] = []

    def submit(
        self,
        operations: tuple[zk.ZooKeeperOperation, ...],
        on_response: Callable[[zk.ZooKeeperResponse], None],
        **_: Any,
    ) -> None:
        self.submitted.append((operations, on_response))

    def answer_isr_write(self, *, version: int | None) -> None:
        """Accept the oldest write (with the znode's new version) or refuse it."""
        (write, _read), on_response = self.submitted.pop(0)
        assert isinstance(write, zk.SetData)
        result = zk.ZooKeeperResult(zk.BAD_VERSION if version is None else zk.OK, write.data, version or 0)
        read = zk.ZooKeeperResult(zk.OK, "what another has written", 9)
        on_response(zk.ZooKeeperResponse(zk.OK, (result, read)))


class Replicas:
    """Broker 0, leader of its partitions with followers 1 and 2."""

    def __init__(
        self,
        isr: tuple[int, ...] = (0, 1),
        *,
        min_isr: int = 1,
        partitions: Iterable[str] = (P,),
        release: str = "2.4",
        settings: Mapping[str, Value] = MappingProxyType({}),
        **switches: Any,
    ) -> None:
        self.host = FakeHost("broker-0")
        self.zookeeper = FakeZooKeeper()
        self.responses: list[tuple[int, Any]] = []
        config = broker_config(release, {"min.insync.replicas": min_isr, **settings})
        behaviours = RELEASES[release].behaviours.with_switches(**switches)
        metadata = MetadataCache()
        metadata.live_brokers = (0, 1, 2, 3)
        self.manager = ReplicaManager(
            0,
            self.host,
            Disk(),
            config,
            lambda _: topic_config({}, config),
            behaviours,
            ZkAlterPartitionManager(self.host, self.zookeeper, behaviours.zookeeper),
            lambda exchange, body: self.responses.append((exchange.correlation_id, body)),
            metadata,
        )
        self.connections: dict[str, Connection] = {}
        self.correlation_id = 0
        for name in partitions:
            self.lead(name, 0, isr, epoch=1)
        self.responses.clear()

    def hosted(self, name: str) -> HostedPartition:
        return self.manager._hosted.hosted.hosted_partition(name)

    def exchange(self, request: Any, client: str) -> Exchange[Any]:
        connection = self.connections.get(client)
        if connection is None:
            connection = self.host.connect("broker-0", "listener", FakeEndpoint(self.host.clock))
            connection.client.name = client
            self.connections[client] = connection
        self.correlation_id += 1
        return Exchange(connection, self.correlation_id, request)

    def lead(self, name: str, leader: int, isr: tuple[int, ...], epoch: int) -> None:
        state = LeaderAndIsrPartitionState(1, LeaderAndIsr(leader, epoch, isr, 0), (0, 1, 2))
        request = LeaderAndIsrRequest(3, 1, 0, {name: state})
        self.manager.handle_leader_and_isr(self.exchange(request, "broker-3"))

    def produce(
        self, *values: str, acks: int = -1, partitions: Iterable[str] = (P,), client: str = "p"
    ) -> int:
        request = ProduceRequest(acks, TIMEOUT_US, {name: batch(*values) for name in partitions})
        self.manager.handle_produce(self.exchange(request, client))
        return self.correlation_id

    def fetch(self, replica: int, max_wait_us: int = WAIT_US, **offsets: int) -> int:
        partitions = {name.replace("_", "-"): PartitionData(offset, -1) for name, offset in offsets.items()}
        request = FetchRequest(replica, max_wait_us, 1_000_000, partitions)
        self.manager.fetching.handle_fetch(self.exchange(request, f"client-{replica}"))
        return self.correlation_id

    def fetch_behind(self, offset: int, last_epoch: int, max_wait_us: int = 0) -> int:
        """Fetch as broker 1 with the epoch of its last record (KIP-595)."""
        request = FetchRequest(1, max_wait_us, 1_000_000, {P: PartitionData(offset, -1, last_epoch)})
        self.manager.fetching.handle_fetch(self.exchange(request, "client-1"))
        return self.correlation_id

    def answered(self) -> list[int]:
        return [correlation_id for correlation_id, _ in self.responses]

    def fetched(self, correlation_id: int, name: str = P) -> tuple[str, list[str], int]:
        """Return (error, values, HW) of the answer to a fetch."""
        body = dict(self.responses)[correlation_id]
        partition = body.partitions[name]
        return (
            partition.error,
            [value for stored in partition.batches for value in stored.values],
            partition.hw,
        )

    def acked(self, correlation_id: int, name: str = P) -> tuple[str, int]:
        result: tuple[str, int] = dict(self.responses)[correlation_id].partitions[name]
        return result


def test_a_fetch_with_nothing_to_read_waits_and_is_completed_by_an_append() -> None:
    replicas = Replicas()
    waiting = replicas.fetch(1, t_0=0)
    replicas.host.advance(WAIT_US - 1)
    assert replicas.responses == []
    replicas.produce("m0", acks=1)
    assert replicas.fetched(waiting) == (errors.NONE, ["m0"], 0)
    replicas.host.advance(2 * WAIT_US)
    assert replicas.answered().count(waiting) == 1
    assert replicas.host.events_named("fetch_waits") == [(0, 1)]
    assert replicas.host.events_named("fetch_expired") == []


def test_a_fetch_waits_until_its_deadline() -> None:
    replicas = Replicas()
    waiting = replicas.fetch(1, t_0=0)
    replicas.host.advance(WAIT_US)
    assert replicas.fetched(waiting) == (errors.NONE, [], 0)
    assert replicas.host.events_named("fetch_expired") == [(0, 1)]


@pytest.mark.parametrize("replica", [1, -1])
def test_a_fetch_without_a_wait_time_is_answered_at_once(replica: int) -> None:
    replicas = Replicas()
    assert replicas.fetched(replicas.fetch(replica, max_wait_us=0, t_0=0)) == (errors.NONE, [], 0)


def test_a_fetch_of_several_partitions_is_completed_by_one_of_them() -> None:
    replicas = Replicas(partitions=(P, Q))
    waiting = replicas.fetch(1, t_0=0, t_1=0)
    replicas.produce("m0", acks=1, partitions=(Q,))
    assert replicas.fetched(waiting, P) == (errors.NONE, [], 0)
    assert replicas.fetched(waiting, Q) == (errors.NONE, ["m0"], 0)
    replicas.produce("m1", acks=1, partitions=(P,))
    assert replicas.answered().count(waiting) == 1


def test_a_fetch_returns_the_high_watermark_from_before_it_counted() -> None:
    """The leader reads before it counts a fetch. A waiting fetch reads when it completes."""
    replicas = Replicas()
    replicas.produce("m0", acks=1)
    replicas.fetch(1, t_0=0)
    replicas.produce("m1", acks=1)
    with_data = replicas.fetch(1, t_0=1)
    assert replicas.fetched(with_data) == (errors.NONE, ["m1"], 0)
    assert replicas.manager.partitions[P].log.high_watermark == 1
    waiting = replicas.fetch(1, t_0=2)
    assert replicas.manager.partitions[P].log.high_watermark == 2
    replicas.produce("m2", acks=1)
    assert replicas.fetched(waiting) == (errors.NONE, ["m2"], 2)


def test_a_consumer_is_woken_by_the_high_watermark_not_by_the_append() -> None:
    replicas = Replicas()
    waiting = replicas.fetch(-1, t_0=0)
    replicas.produce("m0", acks=1)
    replicas.fetch(1, t_0=0)
    assert waiting not in replicas.answered()
    replicas.fetch(1, t_0=1)
    assert replicas.fetched(waiting) == (errors.NONE, ["m0"], 1)


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_a_produce_is_answered_according_to_its_acks(acks: int) -> None:
    replicas = Replicas()
    produced = replicas.produce("m0", "m1", acks=acks)
    if acks == 0:
        assert replicas.responses == [(produced, None)]  # no answer, but the connection stays open
        return
    if acks == -1:
        assert replicas.responses == []
        replicas.fetch(1, t_0=0)
        assert produced not in replicas.answered()
        replicas.fetch(1, t_0=2)
    assert replicas.acked(produced) == (errors.NONE, 0)
    assert replicas.host.events_named("acknowledged") == [(0, P, 0, acks, ("m0", "m1"))]


def test_a_leader_alone_in_the_isr_answers_acks_all_at_once() -> None:
    replicas = Replicas((0,))
    assert replicas.acked(replicas.produce("m0")) == (errors.NONE, 0)


def test_a_waiting_follower_is_woken_after_the_produce_enters_the_purgatory() -> None:
    replicas = Replicas()
    waiting = replicas.fetch(1, t_0=0)
    produced = replicas.produce("m0")
    assert replicas.answered() == [waiting]
    replicas.fetch(1, t_0=1)
    assert replicas.answered()[:2] == [waiting, produced]


def test_acks_all_times_out_and_the_record_stays() -> None:
    replicas = Replicas(partitions=(P, Q))
    produced = replicas.produce("m0", partitions=(P, Q))
    replicas.fetch(1, t_1=0)
    replicas.fetch(1, t_1=1)
    replicas.host.advance(TIMEOUT_US)
    assert replicas.acked(produced, P) == (errors.REQUEST_TIMED_OUT, 0)
    assert replicas.acked(produced, Q) == (errors.NONE, 0)
    assert replicas.manager.partitions[P].log.log_end_offset == 1
    assert (0, "Produce", P, "p", errors.REQUEST_TIMED_OUT) in replicas.host.events_named("rejected")
    assert replicas.host.events_named("acknowledged") == [(0, Q, 0, -1, ("m0",))]


def test_a_produce_to_several_partitions_is_answered_when_each_has_an_outcome() -> None:
    replicas = Replicas(partitions=(P, Q))
    produced = replicas.produce("m0", partitions=(P, Q, "unknown-0"))
    replicas.fetch(1, t_0=0, t_1=0)
    replicas.fetch(1, t_0=1, t_1=0)
    assert produced not in replicas.answered()
    replicas.fetch(1, t_0=1, t_1=1)
    assert replicas.acked(produced, "unknown-0") == (errors.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert replicas.acked(produced, P) == replicas.acked(produced, Q) == (errors.NONE, 0)


def test_a_deposed_leader_answers_waiting_produces() -> None:
    replicas = Replicas()
    produced = replicas.produce("m0")
    fetched = replicas.fetch(1, t_0=1)
    consumed = replicas.fetch(-1, t_0=1)
    assert replicas.acked(produced) == (errors.NONE, 0)
    produced = replicas.produce("m1")
    assert replicas.fetched(fetched) == (errors.NONE, ["m1"], 1)
    replicas.lead(P, 1, (1,), epoch=2)
    assert replicas.acked(produced) == (errors.NOT_LEADER_FOR_PARTITION, 1)
    assert replicas.fetched(consumed) == (errors.NOT_LEADER_FOR_PARTITION, [], -1)


def test_acks_0_to_a_broker_that_does_not_lead_closes_the_connection() -> None:
    replicas = Replicas()
    replicas.lead(P, 1, (1,), epoch=2)
    replicas.responses.clear()
    replicas.produce("m0", acks=0)
    assert replicas.responses == []
    assert replicas.host.closed_by_server == [replicas.connections["p"]]


# ISR writes


def test_requests_wait_in_order_during_an_isr_write() -> None:
    replicas = Replicas((0,), partitions=(P, Q))
    replicas.fetch(1, max_wait_us=0, t_0=0)  # broker 1 joins the ISR
    assert replicas.manager.partitions[P].isr_write_in_flight
    replicas.responses.clear()
    first = replicas.produce("m0", acks=1)
    second = replicas.produce("m1", acks=1, client="q")
    fetched = replicas.fetch(2, max_wait_us=0, t_0=0)
    elsewhere = replicas.produce("m2", acks=1, partitions=(Q,), client="r")
    assert replicas.answered() == [elsewhere]
    replicas.zookeeper.answer_isr_write(version=5)
    assert replicas.manager.partitions[P].isr == (0, 1)
    assert replicas.answered() == [elsewhere, first, second, fetched]
    assert replicas.acked(first) == (errors.NONE, 0)
    assert replicas.acked(second) == (errors.NONE, 1)
    assert replicas.fetched(fetched) == (errors.NONE, ["m0", "m1"], 0)


def test_since_kip_497_requests_do_not_wait_for_an_isr_write() -> None:
    replicas = Replicas((0,), release="2.8")
    replicas.fetch(1, max_wait_us=0, t_0=0)
    assert replicas.manager.partitions[P].isr_write_in_flight
    replicas.responses.clear()
    produced = replicas.produce("m0", acks=1)
    fetched = replicas.fetch(2, max_wait_us=0, t_0=0)
    assert replicas.answered() == [produced, fetched]


def test_a_refused_isr_write_releases_waiting_requests() -> None:
    replicas = Replicas((0,))
    replicas.fetch(1, max_wait_us=0, t_0=0)
    waiting = replicas.produce("m0", acks=1)
    replicas.zookeeper.answer_isr_write(version=None)
    assert replicas.manager.partitions[P].isr == (0,)
    assert replicas.acked(waiting) == (errors.NONE, 0)


def test_a_successful_isr_write_may_lose_its_answer() -> None:
    """A repeated write is refused for its version, although the znode already has its ISR."""
    replicas = Replicas((0,))
    replicas.fetch(1, max_wait_us=0, t_0=0)
    (write, _), on_response = replicas.zookeeper.submitted.pop()
    assert isinstance(write, zk.SetData)
    refused, read = zk.ZooKeeperResult(zk.BAD_VERSION), zk.ZooKeeperResult(zk.OK, write.data, 6)
    on_response(zk.ZooKeeperResponse(zk.OK, (refused, read)))
    partition = replicas.manager.partitions[P]
    assert (partition.isr, partition.partition_epoch) == ((0, 1), 6)


def test_a_shrunk_isr_completes_produces_that_waited_for_removed_followers() -> None:
    replicas = Replicas((0, 1))
    produced = replicas.produce("m0")
    replicas.host.advance(SECOND)
    replicas.manager.start()
    # The check runs every half replica.lag.time.max.ms (10 s).
    replicas.host.advance(14 * SECOND)
    assert len(replicas.zookeeper.submitted) == 1
    replicas.zookeeper.answer_isr_write(version=1)
    assert replicas.acked(produced) == (errors.NONE, 0)
    assert replicas.manager.partitions[P].isr == (0,)


def test_an_older_controller_epoch_is_rejected_and_an_older_leader_epoch_ignored() -> None:
    replicas = Replicas()
    partition = replicas.manager.partitions[P]
    replicas.lead(P, 1, (1,), epoch=1)
    assert partition.is_leader()
    state = LeaderAndIsrPartitionState(0, LeaderAndIsr(1, 9, (1,), 0), (0, 1, 2))
    exchange = replicas.exchange(LeaderAndIsrRequest(4, 0, 0, {P: state}), "broker-4")
    replicas.manager.handle_leader_and_isr(exchange)
    assert partition.is_leader()
    assert replicas.responses[-1][1].error == errors.STALE_CONTROLLER_EPOCH


# The operations themselves


def test_a_delayed_produce_settles_each_partition_once() -> None:
    replicas = Replicas(partitions=(P, Q))
    replicas.produce("m0", acks=1, partitions=(P, Q))
    completed: list[dict[str, PendingAck]] = []
    acks = {
        P: PendingAck(replicas.hosted(P), errors.NONE, 0, 1),
        Q: PendingAck(replicas.hosted(Q), errors.NOT_ENOUGH_REPLICAS, -1, -1),
    }
    delayed = DelayedProduce(None, 100, acks, lambda _, a: completed.append(a))
    assert [acks[P].pending, acks[Q].pending] == [True, False]
    assert not delayed.try_complete()
    delayed.expire()
    assert completed == [acks]
    assert (acks[P].error, acks[Q].error) == (errors.REQUEST_TIMED_OUT, errors.NOT_ENOUGH_REPLICAS)


def test_an_answered_produce_keeps_nothing_of_its_request() -> None:
    answered: list[tuple[object, dict[str, PendingAck]]] = []
    acks = {P: PendingAck(Replicas().hosted(P), errors.NOT_LEADER_FOR_PARTITION, -1, -1)}
    delayed = DelayedProduce("request", 100, acks, lambda context, a: answered.append((context, a)))
    assert delayed.try_complete()
    assert answered == [("request", acks)]
    assert delayed.context is None
    assert not delayed.acks


@pytest.mark.parametrize(("epoch", "completes"), [(-1, False), (1, False), (0, True), (2, True)])
def test_a_delayed_fetch_of_another_leader_epoch_is_completed(epoch: int, completes: bool) -> None:
    replicas = Replicas()
    request = FetchRequest(1, WAIT_US, 1_000, {P: PartitionData(0, epoch)})
    session = FetchSession(1, 1, 0, is_cached=True)
    session.update(request, replicas.manager._hosted.hosted)
    completed: list[bool] = []
    delayed = DelayedFetch(
        replicas.exchange(request, "f"),
        100,
        session,
        lambda _, expired: completed.append(expired),
        lambda _: None,
    )
    assert delayed.try_complete(session.partitions[P]) == completes
    assert completed == ([False] if completes else [])


# Diverging logs


def test_a_diverging_fetch_returns_where_the_logs_diverge_and_does_not_count() -> None:
    replicas = Replicas(release="2.8")
    replicas.produce("m0", acks=1)
    replicas.lead(P, 0, (0, 1), epoch=2)
    replicas.produce("m1", acks=1)
    partition = replicas.manager.partitions[P]
    fetched = replicas.fetch_behind(2, last_epoch=1)
    answer = dict(replicas.responses)[fetched].partitions[P]
    assert (answer.error, answer.batches, answer.diverging) == (errors.NONE, (), (1, 1))
    assert partition.remote_replicas[1].log_end_offset == UNKNOWN_OFFSET
    assert replicas.host.events_named("epoch_asked") == [(0, P, 1, 1, 1, 1)]
    assert replicas.host.events_named("fetch") == []
    replicas.fetch_behind(2, last_epoch=2)
    assert partition.remote_replicas[1].log_end_offset == 2


def test_a_diverging_fetch_is_answered_without_data_to_read() -> None:
    replicas = Replicas(release="2.8")
    replicas.fetch_behind(2, last_epoch=1, max_wait_us=WAIT_US)
    assert len(replicas.responses) == 1
    replicas.fetch_behind(0, last_epoch=1, max_wait_us=WAIT_US)
    assert len(replicas.responses) == 1

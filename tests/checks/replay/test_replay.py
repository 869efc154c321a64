"""The replay folds events into the state of the cluster."""

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harrow.campaigns.story.faults_in_force import FaultsInForce
from harrow.campaigns.story.run_state import RunState
from harrow.checks.replay.cluster_state import CLUSTER_HANDLERS
from harrow.checks.replay.partition_state import FREQUENT_HANDLERS, PARTITION_HANDLERS, POWER_LOSS, TRUNCATED
from harrow.cluster_model.events import event_fields
from harrow.cluster_model.trace import TraceEvent
from tests.cluster_model.coordinators.transactions_cluster import TransactionsCluster

PARTITION = "t-0"
ROOT = Path(__file__).parents[3]


def replay(*events: TraceEvent) -> RunState:
    state = RunState({PARTITION: (0, 1)}, (0, 1))
    for event in events:
        state.advance(event)
    return state


def append_event(
    at_us: int, broker: int, offset: int, *values: str, epoch: int = 0, name: str = "append"
) -> TraceEvent:
    return (at_us, name, broker, PARTITION, offset, epoch, 7, offset, values)


def test_a_follower_replays_the_leaders_records_as_copies() -> None:
    state = replay(append_event(1, 0, 0, "a", "b"), append_event(2, 1, 0, "a", "b", name="replicate"))
    leader, follower = state.partitions[PARTITION].replicas.values()
    assert leader.log == follower.log
    assert [(e.offset, e.value, e.sequence, e.is_copy) for e in follower.log] == [
        (0, "a", 0, True),
        (1, "b", 1, True),
    ]
    assert (leader.log[1].at_us, leader.log[1].number, follower.log[1].number) == (1, 1, 2)


def test_a_truncation_keeps_the_removed_record_with_its_reason() -> None:
    state = replay(
        (0, "recover", 0, PARTITION, 0, 0),
        append_event(1, 0, 0, "a", "b"),
        (2, "hw", 0, PARTITION, 1),
        (2, "flush", 0, PARTITION, 2),
        (3, "follower", 0, PARTITION, 1, 1),
        (3, "truncate", 0, PARTITION, 2, 1, "leader epoch"),
    )
    replica = state.partitions[PARTITION].replicas[0]
    (removal,) = replica.removed
    assert (replica.leo, replica.high_watermark, replica.lso, replica.flushed) == (1, 1, 1, 1)
    assert (removal.entry.value, removal.cause, removal.reason, removal.leader) == (
        "b",
        TRUNCATED,
        "leader epoch",
        1,
    )
    assert (removal.leo, removal.to_offset, removal.high_watermark, removal.committed, removal.number) == (
        2,
        1,
        1,
        False,
        6,
    )


def test_power_loss_takes_unflushed_records() -> None:
    state = replay(
        (0, "broker_started", 0),
        (0, "recover", 0, PARTITION, 0, 0),
        append_event(1, 0, 0, "a", "b"),
        (1, "hw", 0, PARTITION, 2),
        (2, "broker_stopped", 0, "power_loss"),
        (2, "unflushed_lost", 0, PARTITION, 0, 2),
    )
    replica = state.partitions[PARTITION].replicas[0]
    assert (replica.leo, replica.is_open, replica.role) == (0, False, "")
    assert [(g.entry.value, g.cause, g.committed) for g in replica.removed] == [
        ("a", POWER_LOSS, True),
        ("b", POWER_LOSS, True),
    ]
    assert state.brokers[0].stopped_by == "power_loss"


def test_the_isr_in_the_state_znode_is_separate_from_the_isr_of_the_leader() -> None:
    state = replay(
        (1, "election", 1, PARTITION, 0, 3, (0, 1), False, "topic creation"),
        (2, "leader", 0, PARTITION, 3, 0, (0, 1)),
        (3, "isr_written", 0, PARTITION, 3, (0,)),
    )
    partition = state.partitions[PARTITION]
    assert (partition.leader, partition.leader_epoch, partition.isr) == (0, 3, (0,))
    assert (partition.replicas[0].isr, partition.replicas[0].role) == ((0, 1), "leader")
    state.advance((4, "isr", 0, PARTITION, 3, (0,), "shrink"))
    state.advance((5, "isr_reduced", 1, PARTITION, -1, 4, (0,)))
    assert partition.replicas[0].isr == (0,)
    assert (partition.leader, partition.leader_epoch) == (-1, 4)


def test_sends_acks_and_reads_of_clients_are_replayed() -> None:
    state = replay(
        (1, "client_sent", "p", PARTITION, "a"),
        (2, "acknowledged", 0, PARTITION, 0, -1, ("a",)),
        (3, "client_ended", "p", PARTITION, "a", "acked", 0, None),
        (4, "client_sent", "p", PARTITION, "b"),
        (5, "client_ended", "p", PARTITION, "b", "failed", None, "TIMEOUT"),
        (6, "client_polled", "c", PARTITION, ((0, "a"),)),
        (7, "client_polled", "c", PARTITION, ((0, "a"),)),
    )
    partition = state.partitions[PARTITION]
    assert [(ack.offset, ack.broker, ack.acks) for ack in partition.acks["a"]] == [(0, 0, -1)]
    (sent,), (failed,) = partition.sends["a"], partition.sends["b"]
    assert (sent.status, sent.ended_us, sent.offset) == ("acked", 3, 0)
    assert (failed.status, failed.error) == ("failed", "TIMEOUT")
    assert (partition.reads[0, "a"]["c"].at_us, partition.reads[0, "a"]["c"].times) == (6, 2)


CRASH = ("broker_crash", (("broker", 0),))
PAUSE = ("broker_pause", (("broker", 0), ("duration", "1s")))
CUT = ("partition", (("between", (0,)), ("and", (1,))))
HOLD = ("message", (("action", "hold"), ("id", "x")))


@pytest.mark.parametrize(
    ("fault", "details", "end"),
    [
        (*CRASH, (2, "broker_started", 0)),
        (*PAUSE, (2, "broker_resumed", 0)),
        (*PAUSE, (2, "broker_stopped", 0, "process")),
        (*CUT, (2, "fault_ended", *CUT, 1)),
        (*CUT, (2, "healed")),
        (*CUT, (2, "core_healed", (0, 1))),
        (*HOLD, (2, "fault", "release", "inject", (("id", "x"),), 2)),
    ],
)
def test_a_fault_is_in_force_until_something_ends_it(
    fault: str, details: tuple[object, ...], end: TraceEvent
) -> None:
    state = replay((1, "fault", fault, "inject", details, 1))
    assert [(active.fault, active.at_us, active.number) for active in state.faults] == [(fault, 1, 1)]
    state.advance(end)
    assert state.faults == []


@pytest.mark.parametrize(
    "end", [(2, "core_healed", (1,)), (2, "broker_started", 1), (2, "fault_ended", *PAUSE, 2)]
)
def test_a_fault_continues_when_another_broker_recovers(end: TraceEvent) -> None:
    state = replay((1, "fault", CRASH[0], "inject", CRASH[1], 1), end)
    assert [active.fault for active in state.faults] == ["broker_crash"]


def test_a_fault_without_duration_ends_at_once() -> None:
    assert replay((1, "fault", "session_expiry", "inject", (("broker", 0),), 1)).faults == []


def fault_event(at_us: int, fault: tuple[str, tuple[object, ...]], strike: int) -> TraceEvent:
    return (at_us, "fault", fault[0], "inject", fault[1], strike)


def test_the_end_of_a_fault_identifies_one_of_several_equal_faults() -> None:
    state = replay(*(fault_event(at_us, CUT, at_us) for at_us in (1, 2, 3)), (4, "fault_ended", *CUT, 2))
    assert [(fault.strike, fault.at_us) for fault in state.faults] == [(1, 1), (3, 3)]


def test_the_elected_controller_is_separate_from_the_brokers_that_consider_themselves_controller() -> None:
    state = replay((1, "broker_started", 0), (2, "controller_changed", 0, 4))

    def controllers() -> tuple[int, int, list[int]]:
        active = [broker.broker for broker in state.brokers.values() if broker.is_active_controller]
        return state.controller, state.controller_epoch, active

    assert controllers() == (0, 4, [])
    state.advance((2, "controller_elected", 0, 4))
    assert controllers() == (0, 4, [0])
    state.advance((3, "controller_znode_deleted", 0))
    state.advance((3, "controller_changed", -1, 4))
    assert controllers() == (-1, 4, [0])
    state.advance((4, "controller_changed", 1, 5))
    state.advance((5, "controller_elected", 1, 5))
    assert controllers() == (1, 5, [0, 1])
    state.advance((5, "controller_resigned", 0, 4))
    assert controllers() == (1, 5, [1])
    state.advance((6, "broker_stopped", 1, "process"))
    assert controllers() == (1, 5, [])


@pytest.mark.parametrize(
    ("ephemerals", "is_registered"), [((), True), (("/controller",), True), (("/brokers/ids/0",), False)]
)
def test_an_expired_session_unregisters_the_broker_only_if_it_held_the_registration(
    ephemerals: tuple[str, ...], is_registered: bool
) -> None:
    state = replay(
        (1, "broker_started", 0), (2, "broker_registered", 0, 9), (4, "session_expired", 0, ephemerals)
    )
    assert state.brokers[0].is_registered == is_registered


def test_a_paused_broker_stays_live_without_its_session() -> None:
    state = replay(
        (1, "broker_started", 0),
        (2, "broker_registered", 0, 9),
        (4, "broker_paused", 0),
        (5, "session_expired", 0, ("/controller", "/brokers/ids/0")),
    )
    broker = state.brokers[0]
    assert (broker.is_live, broker.is_paused, broker.is_registered) == (True, True, False)
    assert (state.at_us, state.number) == (5, 4)
    state.advance((7, "checkpoint", 0, "replication-offset-checkpoint", ((PARTITION, 5),)))
    state.advance((8, "checkpoint", 0, "recovery-point-offset-checkpoint", ((PARTITION, 6),)))
    assert state.partitions[PARTITION].replicas[0].checkpointed_high_watermark == 5


@pytest.mark.parametrize(
    ("handlers", "file"),
    [
        (CLUSTER_HANDLERS, "checks/replay/cluster_state.py"),
        (PARTITION_HANDLERS, "checks/replay/partition_state.py"),
        (FaultsInForce.HANDLERS, "campaigns/story/faults_in_force.py"),
    ],
)
def test_a_handler_is_registered_for_the_type_of_its_parameter(
    handlers: Mapping[Any, Any], file: str
) -> None:
    """The types come from the source, because compiled functions have no annotations."""
    methods = {
        node.name: node.args.args[-1].annotation
        for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.args.args
    }
    for kind, handler in handlers.items():
        annotation = methods[handler.__name__]
        assert annotation is not None
        assert kind.__name__ in re.findall(r"\w+", ast.unparse(annotation)), kind.__name__


@pytest.mark.parametrize("kind", FREQUENT_HANDLERS, ids=lambda kind: kind.name)
def test_a_handler_of_rows_takes_each_field_from_its_place(kind: Any) -> None:
    source = ast.parse((ROOT / "checks/replay/partition_state.py").read_text(encoding="utf-8"))
    method = FREQUENT_HANDLERS[kind].__name__
    (taken,) = (
        [name.id for name in ast.walk(statement.targets[0]) if isinstance(name, ast.Name)]
        for function in ast.walk(source)
        if isinstance(function, ast.FunctionDef) and function.name == method
        for statement in function.body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.value) == "row"
    )
    fields = ["at_us", "kind", *event_fields(kind.name)]
    assert len(taken) == len(fields)
    assert all(field == name for field, name in zip(fields, taken, strict=True) if name in fields)


def test_a_transaction_is_open_unless_its_marker_is_committed_and_in_the_log() -> None:
    transaction_events: list[TraceEvent] = [
        append_event(1, 0, 0, "a"),
        (1, "transaction_begun", 0, PARTITION, 7, 0, 0),
        (2, "append", 0, PARTITION, 1, 0, 7, -1, ()),
        (2, "transaction_marker", 0, PARTITION, 7, 0, 0, 1, True, 3),
    ]
    replica = replay(*transaction_events, (3, "hw", 0, PARTITION, 1)).partitions[PARTITION].replicas[0]
    assert (replica.leo, replica.high_watermark, replica.lso) == (2, 1, 0)
    replica = replay(*transaction_events, (3, "hw", 0, PARTITION, 2)).partitions[PARTITION].replicas[0]
    assert (replica.high_watermark, replica.lso) == (2, 2)
    (transaction,) = replica.transactions
    assert (transaction.marker_offset, transaction.is_committed) == (1, True)
    cut: TraceEvent = (4, "truncate", 0, PARTITION, 2, 1, "leader epoch")
    replica = replay(*transaction_events, (3, "hw", 0, PARTITION, 2), cut).partitions[PARTITION].replicas[0]
    assert (replica.high_watermark, replica.lso, replica.transactions[0].marker_offset) == (1, 0, None)
    cut = (4, "truncate", 0, PARTITION, 2, 0, "leader epoch")
    replica = replay(*transaction_events, (3, "hw", 0, PARTITION, 2), cut).partitions[PARTITION].replicas[0]
    assert (replica.lso, replica.transactions) == (0, [])


def test_a_lower_high_watermark_uncommits_a_marker_only_in_a_new_process() -> None:
    """A follower adopts its leader's high watermark, which may be lower
    (``UnifiedLog.updateHighWatermark``).
    """
    lowered: list[TraceEvent] = [
        append_event(1, 0, 0, "a"),
        (1, "transaction_begun", 0, PARTITION, 7, 0, 0),
        (2, "append", 0, PARTITION, 1, 0, 7, -1, ()),
        (2, "transaction_marker", 0, PARTITION, 7, 0, 0, 1, True, 3),
        (3, "hw", 0, PARTITION, 2),
        (4, "hw", 0, PARTITION, 1),
    ]
    replica = replay(*lowered).partitions[PARTITION].replicas[0]
    assert (replica.high_watermark, replica.lso) == (1, 1)
    replica = replay(*lowered, (5, "recover", 0, PARTITION, 2, 1)).partitions[PARTITION].replicas[0]
    assert (replica.high_watermark, replica.lso) == (1, 0)


def test_replayed_last_stable_offsets_equal_those_of_the_logs() -> None:
    cluster = TransactionsCluster()
    state = RunState({"t-0": (0, 1, 2)}, (0, 1, 2))
    position = 0

    def assert_as_in_the_logs() -> None:
        nonlocal position
        for event in list(cluster.model.trace.events)[position:]:
            state.advance(event)
            position += 1
        for broker, replica in state.partitions["t-0"].replicas.items():
            log = cluster.model.brokers[broker].replicas.partitions["t-0"].log
            assert (replica.high_watermark, replica.lso) == (log.high_watermark, log.last_stable_offset)

    for number, committed in enumerate((True, False, True)):
        producer = cluster.start_producer()
        cluster.add(producer, "t-0")
        cluster.write(producer, "t-0", str(number), 0)
        assert_as_in_the_logs()
        cluster.end(producer, committed=committed)
        assert_as_in_the_logs()

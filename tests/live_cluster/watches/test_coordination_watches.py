"""What is told of groups and transactions out of their coordinators' logs."""

import struct
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from harrow.cluster_model.events import (
    GroupStateChanged,
    OffsetsCommitted,
    ProducerInitialized,
    TransactionStateChanged,
    event_fields,
)
from harrow.live_cluster.watches import group_watch, transaction_watch
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.group_watch import GroupWatch
from harrow.live_cluster.watches.transaction_watch import TransactionWatch
from harrow.live_cluster.wire.coordinator_messages import GroupRecord, TransactionRecord

P0 = "__consumer_offsets-0"


class Batch:
    """A batch of kafka-python, of which records are made up."""

    def __init__(self, *records: Any, producer: int = -1, control: str | None = None) -> None:
        self.records = records
        self.producer_id = producer
        self.is_transactional = producer >= 0
        self.is_control_batch = control is not None
        self._control = control

    def __iter__(self) -> Iterator[Any]:
        return iter([SimpleNamespace(commit=self._control == "commit", value=struct.pack(">hi", 0, 0))])


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Any, ...]]]:
    """Return what is told; it has the fields that its events have."""
    monkeypatch.setattr(group_watch, "group_records", lambda batch: iter(batch.records))
    monkeypatch.setattr(transaction_watch, "transaction_records", lambda batch: iter(batch.records))
    events: list[tuple[Any, ...]] = []
    yield events
    for kind, *values in events:
        assert len(values) == len(event_fields(kind.name)), kind


def watch(told: list[tuple[Any, ...]]) -> GroupWatch:
    return GroupWatch(["g"], {}, lambda *event: told.append(event), Activity())


def states(told: list[tuple[Any, ...]]) -> list[tuple[str, int]]:
    return [(event[3], event[4]) for event in told if event[0] is GroupStateChanged]


def test_generation_is_reported_with_its_earlier_steps(told: list[tuple[Any, ...]]) -> None:
    groups = watch(told)
    groups.take(2, P0, Batch(GroupRecord("g", 1, ("a",)), GroupRecord("other", 4, ("b",))))
    assert states(told) == [("PreparingRebalance", 0), ("CompletingRebalance", 1), ("Stable", 1)]
    # A static member comes back: it is the same generation, and written once more.
    groups.take(2, P0, Batch(GroupRecord("g", 1, ("c",))))
    assert len(told) == 3
    groups.take(2, P0, Batch(GroupRecord("g", 2)))
    assert states(told)[3:] == [("PreparingRebalance", 1), ("Empty", 2)]


def test_rebalance_is_reported_once(told: list[tuple[Any, ...]]) -> None:
    groups = watch(told)
    groups.take(2, P0, Batch(GroupRecord("g", 1, ("a",))))
    told.clear()
    groups._change(2, "g", "PreparingRebalance", 1, ())
    groups._change(2, "g", "PreparingRebalance", 1, ())
    groups._change(2, "g", "CompletingRebalance", 2, ())
    groups._change(2, "g", "CompletingRebalance", 2, ())
    groups.take(2, P0, Batch(GroupRecord("g", 2, ("a", "b"))))
    assert states(told) == [("PreparingRebalance", 1), ("CompletingRebalance", 2), ("Stable", 2)]


def test_commits_are_of_the_generation_before_them(told: list[tuple[Any, ...]]) -> None:
    groups = watch(told)
    groups.take(1, P0, Batch(GroupRecord("g", 3, ("a",))))
    told.clear()
    groups.take(
        1, P0, Batch(GroupRecord("g", partition="t-0", offset=5), GroupRecord("g", partition="t-1", offset=6))
    )
    assert told == [(OffsetsCommitted, 1, "g", "", 3, 3, (("t-0", 5), ("t-1", 6)))]


@pytest.mark.parametrize(("control", "count"), [("commit", 1), ("abort", 0)])
def test_transactional_offsets_are_reported_with_the_marker(
    told: list[tuple[Any, ...]], control: str, count: int
) -> None:
    groups = watch(told)
    groups.take(2, P0, Batch(GroupRecord("g", 1, ("a",))))
    told.clear()
    groups.take(1, P0, Batch(GroupRecord("g", partition="t-0", offset=5), producer=7))
    groups.take(1, P0, Batch(producer=8, control="commit"))
    assert told == []
    groups.take(1, P0, Batch(producer=7, control=control))
    assert told == [(OffsetsCommitted, 1, "g", "", -1, 1, (("t-0", 5),))] * count


def test_a_client_is_initialised_as_the_log_says(told: list[tuple[Any, ...]]) -> None:
    transactions = TransactionWatch({}, lambda *event: told.append(event), Activity())
    transactions.take(2, "__transaction_state-0", Batch(TransactionRecord("x", "Empty", 7, 1, ())))
    transactions.initialized("app", "x")
    transactions._look()
    transactions._look()
    assert told == [
        (TransactionStateChanged, 2, "x", 7, 1, "Empty", ()),
        (ProducerInitialized, "app", 7, 1),
    ]

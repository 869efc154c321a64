"""Events of groups and transactions follow from their coordinators' logs."""

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
    """A batch of kafka-python with arbitrary records."""

    def __init__(self, *records: Any, producer: int = -1, control: str | None = None) -> None:
        self.records = records
        self.producer_id = producer
        self.is_transactional = producer >= 0
        self.is_control_batch = control is not None
        self._control = control

    def __iter__(self) -> Iterator[Any]:
        return iter([SimpleNamespace(commit=self._control == "commit", value=struct.pack(">hi", 0, 0))])


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Any, ...]]]:
    """Return the reported events and check the number of their fields."""
    monkeypatch.setattr(group_watch, "group_records", lambda batch: iter(batch.records))
    monkeypatch.setattr(transaction_watch, "transaction_records", lambda batch: iter(batch.records))
    reported: list[tuple[Any, ...]] = []
    yield reported
    for kind, *values in reported:
        assert len(values) == len(event_fields(kind.name)), kind


def watch(events: list[tuple[Any, ...]]) -> GroupWatch:
    return GroupWatch(["g"], {}, lambda *event: events.append(event), Activity())


def states(events: list[tuple[Any, ...]]) -> list[tuple[str, int]]:
    return [(event[3], event[4]) for event in events if event[0] is GroupStateChanged]


def test_a_generation_is_reported_with_its_earlier_states(events: list[tuple[Any, ...]]) -> None:
    groups = watch(events)
    groups.handle_batch(2, P0, Batch(GroupRecord("g", 1, ("a",)), GroupRecord("other", 4, ("b",))))
    assert states(events) == [("PreparingRebalance", 0), ("CompletingRebalance", 1), ("Stable", 1)]
    # The return of a static member writes the same generation again.
    groups.handle_batch(2, P0, Batch(GroupRecord("g", 1, ("c",))))
    assert len(events) == 3
    groups.handle_batch(2, P0, Batch(GroupRecord("g", 2)))
    assert states(events)[3:] == [("PreparingRebalance", 1), ("Empty", 2)]


def test_a_rebalance_is_reported_once(events: list[tuple[Any, ...]]) -> None:
    groups = watch(events)
    groups.handle_batch(2, P0, Batch(GroupRecord("g", 1, ("a",))))
    events.clear()
    groups._change(2, "g", "PreparingRebalance", 1, ())
    groups._change(2, "g", "PreparingRebalance", 1, ())
    groups._change(2, "g", "CompletingRebalance", 2, ())
    groups._change(2, "g", "CompletingRebalance", 2, ())
    groups.handle_batch(2, P0, Batch(GroupRecord("g", 2, ("a", "b"))))
    assert states(events) == [("PreparingRebalance", 1), ("CompletingRebalance", 2), ("Stable", 2)]


def test_a_commit_belongs_to_the_generation_before_it(events: list[tuple[Any, ...]]) -> None:
    groups = watch(events)
    groups.handle_batch(1, P0, Batch(GroupRecord("g", 3, ("a",))))
    events.clear()
    groups.handle_batch(
        1, P0, Batch(GroupRecord("g", partition="t-0", offset=5), GroupRecord("g", partition="t-1", offset=6))
    )
    assert events == [(OffsetsCommitted, 1, "g", "", 3, 3, (("t-0", 5), ("t-1", 6)))]


@pytest.mark.parametrize(("control", "count"), [("commit", 1), ("abort", 0)])
def test_transactional_offsets_are_reported_with_the_marker(
    events: list[tuple[Any, ...]], control: str, count: int
) -> None:
    groups = watch(events)
    groups.handle_batch(2, P0, Batch(GroupRecord("g", 1, ("a",))))
    events.clear()
    groups.handle_batch(1, P0, Batch(GroupRecord("g", partition="t-0", offset=5), producer=7))
    groups.handle_batch(1, P0, Batch(producer=8, control="commit"))
    assert events == []
    groups.handle_batch(1, P0, Batch(producer=7, control=control))
    assert events == [(OffsetsCommitted, 1, "g", "", -1, 1, (("t-0", 5),))] * count


def test_a_producer_is_initialised_with_the_id_and_epoch_of_the_log(events: list[tuple[Any, ...]]) -> None:
    transactions = TransactionWatch({}, lambda *event: events.append(event), Activity())
    transactions.handle_batch(2, "__transaction_state-0", Batch(TransactionRecord("x", "Empty", 7, 1, ())))
    transactions.initialized("app", "x")
    transactions._poll()
    transactions._poll()
    assert events == [
        (TransactionStateChanged, 2, "x", 7, 1, "Empty", ()),
        (ProducerInitialized, "app", 7, 1),
    ]

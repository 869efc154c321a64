"""The active controller follows from the reports of the voters."""

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harrow.live_cluster.processes.node_process import NodeProcess
from harrow.live_cluster.watches import quorum_watch
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.observed_metadata import ObservedMetadata
from harrow.live_cluster.watches.quorum_watch import QuorumWatch
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.quorum import QuorumLeader


class Voter:
    """A controller with one state for each *look*, which signals the end of its looks."""

    def __init__(self, *looks: str) -> None:
        self.looks = list(looks)
        self.state = ""
        self.is_over = threading.Event()

    @property
    def is_running(self) -> bool:
        if self.looks:
            self.state = self.looks.pop(0)
        else:
            # The watch has processed the previous report by now.
            self.is_over.set()
        return self.state != "down"

    @property
    def is_paused(self) -> bool:
        return self.state == "paused"


def events_of(
    monkeypatch: pytest.MonkeyPatch, *looks: str, **others: tuple[str, ...]
) -> list[tuple[Any, ...]]:
    """Return the events about voter 3000 and *others*, which have equally many looks, taken in
    turn.
    """
    voters = [Voter(*looks), *(Voter(*those) for those in others.values())]
    events = list[tuple[Any, ...]]()

    def quorum_leader(connection: BrokerConnection) -> QuorumLeader | None:
        voter = voters[cast("Any", connection).number]
        assert voter.state != "paused"
        if voter.state == "busy":
            raise ConnectionLostError("it does not answer")
        return None if voter.state == "resigned" else QuorumLeader(*map(int, voter.state.split()[:2]))

    monkeypatch.setattr(quorum_watch, "quorum_leader", quorum_leader)
    metadata = ObservedMetadata(
        lambda kind, *fields: events.append((kind.name, *fields)),
        is_active=lambda controller, _: not voters[controller - 3000].state.endswith("loading"),
    )
    connections = [
        cast("BrokerConnection", SimpleNamespace(number=number, close=lambda: None))
        for number in range(len(voters))
    ]
    ids = range(3000, 3000 + len(voters))
    watch = QuorumWatch(
        metadata,
        dict(zip(ids, cast("list[NodeProcess]", voters), strict=True)),
        dict(zip(ids, connections, strict=True)),
        Activity(),
    )
    watch.start()
    assert all(voter.is_over.wait(60) for voter in voters)
    watch.close()
    return events


FIRST = [("controller_changed", 3000, 1), ("controller_elected", 3000, 1)]


def test_a_controller_that_dies_and_returns_is_elected_in_a_later_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert events_of(monkeypatch, "3000 1", "down", "3000 2") == [
        *FIRST,
        ("controller_changed", -1, 1),
        ("controller_changed", 3000, 2),
        ("controller_elected", 3000, 2),
    ]


@pytest.mark.parametrize("state", ["paused", "busy"])
def test_a_controller_that_does_not_answer_stays_controller(
    monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    assert events_of(monkeypatch, "3000 1", state, "3000 1") == FIRST


def test_a_leader_of_the_quorum_is_the_controller_once_it_is_active(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = ("3000 1 loading", "3000 1", "down", "3000 2 loading", "resigned", "3000 4")
    assert events_of(monkeypatch, *looks) == [
        *FIRST,
        ("controller_changed", -1, 1),
        ("controller_changed", 3000, 4),
        ("controller_elected", 3000, 4),
    ]


def test_a_resigned_controller_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert events_of(monkeypatch, "3000 1", "resigned", "3000 3")[2:] == [
        ("controller_changed", -1, 1),
        ("controller_changed", 3000, 3),
        ("controller_elected", 3000, 3),
    ]


def test_the_leader_of_the_latest_epoch_is_the_controller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    second = ("resigned", "3001 2", "3001 2", "down")
    assert events_of(monkeypatch, "3000 1", "3000 1", "resigned", "3000 1", second=second) == [
        *FIRST,
        ("controller_changed", 3001, 2),
        ("controller_elected", 3001, 2),
        ("controller_changed", -1, 2),
    ]


@pytest.mark.parametrize("state", ["paused", "busy"])
def test_a_follower_does_not_depose_a_leader_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    assert events_of(monkeypatch, "3000 1", state, second=("resigned", "resigned")) == FIRST


def test_there_is_no_controller_between_a_death_and_the_next_election(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    second = ("resigned", "resigned", "3001 2")
    assert events_of(monkeypatch, "3000 1", "down", "down", second=second)[2:] == [
        ("controller_changed", -1, 1),
        ("controller_changed", 3001, 2),
        ("controller_elected", 3001, 2),
    ]

"""Who is the active controller is what its only voter tells, and nobody once that is gone."""

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harrow.live_cluster import quorum_watch
from harrow.live_cluster.control_plane import NodeProcess
from harrow.live_cluster.metadata_seen import MetadataSeen
from harrow.live_cluster.quorum_watch import QuorumWatch
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.quorum import QuorumLeader


class Voter:
    """A controller whose process is looked at before each question, and says so when all of its *looks* are over."""

    def __init__(self, *looks: str) -> None:
        self.looks = list(looks)
        self.state = ""
        self.is_over = threading.Event()

    @property
    def is_running(self) -> bool:
        if self.looks:
            self.state = self.looks.pop(0)
        else:
            # What was told before has been taken by now.
            self.is_over.set()
        return self.state != "down"

    @property
    def is_paused(self) -> bool:
        return self.state == "paused"


def events_of(monkeypatch: pytest.MonkeyPatch, *looks: str) -> list[tuple[Any, ...]]:
    voter, told = Voter(*looks), list[tuple[Any, ...]]()

    def quorum_leader(_: BrokerConnection) -> QuorumLeader | None:
        assert voter.state != "paused"
        if voter.state == "busy":
            raise ConnectionLostError("it does not answer")
        return None if voter.state == "resigned" else QuorumLeader(*map(int, voter.state.split()))

    monkeypatch.setattr(quorum_watch, "quorum_leader", quorum_leader)
    seen = MetadataSeen(lambda kind, *fields: told.append((kind.name, *fields)))
    watch = QuorumWatch(seen, cast("NodeProcess", voter), cast("Any", SimpleNamespace(close=lambda: None)))
    watch.start()
    assert voter.is_over.wait(60)
    watch.close()
    return told


FIRST = [("controller_changed", 3000, 1), ("controller_elected", 3000, 1)]


def test_a_controller_that_dies_is_controller_no_more_and_one_that_is_back_in_a_later_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert events_of(monkeypatch, "3000 1", "down", "3000 2") == [
        *FIRST,
        ("controller_changed", -1, 1),
        ("controller_changed", 3000, 2),
        ("controller_elected", 3000, 2),
    ]


@pytest.mark.parametrize("state", ["paused", "busy"])
def test_one_that_does_not_answer_is_controller_until_it_tells_otherwise(
    monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    assert events_of(monkeypatch, "3000 1", state, "3000 1") == FIRST


def test_one_that_has_resigned_says_so_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    assert events_of(monkeypatch, "3000 1", "resigned", "3000 3")[2:] == [
        ("controller_changed", -1, 1),
        ("controller_changed", 3000, 3),
        ("controller_elected", 3000, 3),
    ]

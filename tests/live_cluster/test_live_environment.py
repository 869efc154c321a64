"""Brokers that stop by themselves, as the environment of real brokers deals with them: their processes are made up."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from harrow.cluster_model.events import KILLED, SHUT_DOWN
from harrow.cluster_model.trace import Clock, Trace
from harrow.live_cluster.broker_logs.log_lines import RefusalLine
from harrow.live_cluster.live_environment import LiveEnvironment


class FakeBroker:
    """A broker's process."""

    def __init__(self) -> None:
        self.is_running = True
        self.is_paused = False
        self.starts = 0

    def start(self) -> None:
        self.is_running = True
        self.starts += 1

    def kill(self) -> None:
        self.is_running = False


class Cluster:
    """Broker 0 alone, without any registration that outlives it."""

    def __init__(self, *, hangs: bool) -> None:
        clock = Clock()
        clock.now_us = 0
        self.trace = Trace(clock)
        self.broker = FakeBroker()
        self.stopping: set[int] = set()
        disk = SimpleNamespace(look=lambda *_: None, open=lambda: None)
        observer: Any = SimpleNamespace(
            controller=lambda: None,
            led_by=lambda _: frozenset(),
            partition_state=lambda _: (4, 1, (4,)),
        )
        cluster: Any = SimpleNamespace(
            brokers={0: self.broker},
            control=SimpleNamespace(keeps_registrations=False),
            seen=SimpleNamespace(stopping=self.stopping),
            links=SimpleNamespace(restore_all=lambda: None, forget=lambda _: None),
            logs={0: disk},
        )
        self.environment = LiveEnvironment(
            cluster,
            cast("Any", SimpleNamespace(names=())),
            observer,
            self.trace,
            {0: cast("Any", SimpleNamespace(forget=lambda: None))},
            lambda: 0,
            lambda: None,
            {},
            survivable=False,
            hangs=hangs,
        )
        self.environment.started()

    def events(self, name: str) -> list[tuple[Any, ...]]:
        return [event[2:] for event in self.trace.events if event[1] == name]


@pytest.mark.parametrize(("leader", "shown"), [(1, 1), (None, 4)])
def test_a_broker_that_refuses_to_truncate_is_stopping(leader: int | None, shown: int) -> None:
    cluster = Cluster(hangs=False)
    cluster.environment.truncation_refused(0, RefusalLine("t-0", leader, 1, 2))
    assert cluster.events("truncation_refused") == [(0, "t-0", shown, 1, 2)]
    assert cluster.events("broker_stopping") == [(0,)]
    assert cluster.environment.is_stopping(0)
    cluster.broker.is_running = False
    cluster.environment.look()
    assert cluster.events("broker_stopped") == [(0, SHUT_DOWN)]


def test_one_that_hangs_is_killed_and_started_again_when_all_is_healed() -> None:
    cluster = Cluster(hangs=True)
    cluster.environment.truncation_refused(0, RefusalLine("t-0", 1, 1, 2))
    cluster.environment.look()
    assert (cluster.environment.is_stopping(0), cluster.broker.starts) == (True, 0)
    cluster.environment.heal()
    assert cluster.events("broker_stopped") == [(0, KILLED)]
    assert (cluster.environment.is_stopping(0), cluster.broker.starts) == (False, 1)


def test_it_refuses_more_than_one_truncation_and_stops_once() -> None:
    cluster = Cluster(hangs=False)
    for partition in ("t-0", "t-1"):
        cluster.environment.truncation_refused(0, RefusalLine(partition, 1, 1, 2))
    assert len(cluster.events("truncation_refused")) == 2
    assert cluster.events("broker_stopping") == [(0,)]


def test_one_that_is_killed_while_it_stops_closes_no_session() -> None:
    cluster = Cluster(hangs=True)
    cluster.environment.truncation_refused(0, RefusalLine("t-0", 1, 1, 2))
    assert cluster.stopping == {0}
    cluster.environment.crash_broker(0, power_loss=False)
    assert cluster.stopping == set()


def test_one_that_shuts_down_is_waited_for_when_all_is_healed() -> None:
    cluster = Cluster(hangs=False)
    cluster.environment.truncation_refused(0, RefusalLine("t-0", 1, 1, 2))
    cluster.environment.heal()
    assert (cluster.events("broker_stopped"), cluster.broker.starts) == ([], 0)
    cluster.broker.is_running = False
    cluster.environment.look()
    assert (cluster.events("broker_stopped"), cluster.broker.starts) == ([(0, SHUT_DOWN)], 1)

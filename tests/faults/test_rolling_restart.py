"""A rolling restart waits for each broker; the brokers are scripted."""

from collections.abc import Iterator
from typing import Any

import pytest

from harrow.faults.brokers import POLL_US, RollingRestart
from harrow.faults.effects import FaultEffect, Kill, Start, Stop
from tests.faults.test_faults import FakeEnvironment

SECOND = 1_000_000


class Brokers(FakeEnvironment):
    """Three running brokers, whose processes end at the command of a test."""

    def __init__(self) -> None:
        super().__init__()
        self.running = {0, 1, 2}
        self.paused = set()
        self.led_by: int | None = 0

    def controller(self) -> int | None:
        return self.led_by

    def perform(self, effect: FaultEffect) -> None:
        super().perform(effect)
        if isinstance(effect, Start):
            self.running.add(effect.broker)

    def end_process(self, broker: int) -> None:
        """End the process and perform its requested restart."""
        self.stopping.remove(broker)


def steps(brokers: Brokers, **fields: Any) -> Iterator[int]:
    """Yield the waits of a restart and perform its steps between them."""
    for step in RollingRestart(**fields).steps(brokers):
        if isinstance(step, FaultEffect):
            brokers.perform(step)
        else:
            yield step


def stopped(brokers: Brokers) -> list[int]:
    return [effect.broker for effect in brokers.did if isinstance(effect, Stop)]


def test_a_rolling_restart_starts_a_broker_before_it_stops_the_next() -> None:
    brokers = Brokers()
    restart = steps(brokers)
    for broker in (0, 1, 2):
        assert next(restart) == POLL_US
        assert brokers.did[-2:] == [Stop(broker), Start(broker)]
        brokers.end_process(broker)
    assert next(restart, None) is None
    assert brokers.did == [what(broker) for broker in (0, 1, 2) for what in (Stop, Start)]


def test_the_next_broker_waits_for_the_isr() -> None:
    brokers = Brokers()
    restart = steps(brokers)
    next(restart)
    brokers.under_replicated = ("t-0",)
    brokers.end_process(0)
    assert [next(restart) for _ in range(3)] == [POLL_US] * 3
    assert brokers.did == [Stop(0), Start(0)]
    brokers.under_replicated = ()
    next(restart)
    assert brokers.did[2:] == [Stop(1), Start(1)]


def test_a_rolling_restart_need_not_wait_for_the_isr() -> None:
    brokers = Brokers()
    brokers.under_replicated = ("t-0",)
    restart = steps(brokers, wait_for_isr=False)
    next(restart)
    assert Stop(1) not in brokers.did
    brokers.end_process(0)
    next(restart)
    assert Stop(1) in brokers.did


def test_a_rolling_restart_does_not_pause_after_the_last_broker() -> None:
    brokers = Brokers()
    restart = steps(brokers, pause=(5 * SECOND, 5 * SECOND))
    waits = []
    for broker in (0, 1, 2):
        waits.append(next(restart))
        brokers.end_process(broker)
        waits += [next(restart)] if broker < 2 else list(restart)
    assert waits == [POLL_US, 5 * SECOND, POLL_US, 5 * SECOND, POLL_US]


def test_a_broker_stays_down_for_a_while_before_it_is_started() -> None:
    brokers = Brokers()
    restart = steps(brokers, down_for=(9 * SECOND, 9 * SECOND))
    assert next(restart) == POLL_US
    brokers.end_process(0)
    brokers.running.remove(0)
    assert next(restart) == 9 * SECOND
    assert brokers.did == [Stop(0)]
    next(restart)
    assert brokers.did == [Stop(0), Start(0), Stop(1)]


@pytest.mark.parametrize(("moves_to", "order"), [(None, [1, 2, 0]), (2, [1, 0, 2])])
def test_the_current_controller_restarts_last(moves_to: int | None, order: list[int]) -> None:
    brokers = Brokers()
    restart = steps(brokers, order="controller_last")
    for _ in order:
        next(restart)
        brokers.led_by = brokers.led_by if moves_to is None else moves_to
        brokers.end_process(stopped(brokers)[-1])
    assert next(restart, None) is None
    assert stopped(brokers) == order


def test_a_rolling_restart_starts_a_broker_that_is_down() -> None:
    brokers = Brokers()
    brokers.running.remove(0)
    next(steps(brokers))
    assert brokers.did == [Start(0), Stop(1), Start(1)]


def test_a_rolling_restart_starts_a_broker_that_crashes_while_it_stops() -> None:
    brokers = Brokers()
    restart = steps(brokers)
    next(restart)
    brokers.perform(Kill(0))
    brokers.stopping.remove(0)
    next(restart)
    assert brokers.did[2:] == [Kill(0), Start(0), Stop(1), Start(1)]


def test_a_rolling_restart_does_not_apply_while_all_brokers_are_down_or_stopping() -> None:
    brokers = Brokers()
    assert RollingRestart().applies(brokers)
    brokers.running = {0}
    brokers.stopping = {0}
    assert not RollingRestart().applies(brokers)

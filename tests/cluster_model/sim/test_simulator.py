"""The event loop runs events in the order of their times, and none of a dead process."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.sim.simulator import Simulator, StepLimitExceeded

EventRecord = list[tuple[int, Any]]


class Loop:
    """A simulator with two processes that records events with their times."""

    def __init__(self, **options: int) -> None:
        self.simulator = Simulator(**options)
        self.one = Process("one")
        self.other = Process("other")
        self.happened: EventRecord = []

    def at(self, at_us: int, event: Any, process: Process | None = None) -> None:
        self.simulator.schedule(at_us, process or self.one, self._note, event)

    def _note(self, event: Any) -> None:
        self.happened.append((self.simulator.now_us, event))

    def names(self) -> list[Any]:
        return [event for _, event in self.happened]


@pytest.fixture(params=["run_until", "step"])
def run(request: pytest.FixtureRequest) -> Any:
    """Run with each of two methods, which must have the same effect."""

    def run_until(loop: Loop, end_us: int) -> None:
        loop.simulator.run_until(end_us)

    def step(loop: Loop, end_us: int) -> None:
        while loop.simulator.step(end_us):
            pass

    return run_until if request.param == "run_until" else step


def test_events_happen_in_the_order_of_their_times(run: Any) -> None:
    loop = Loop()
    for at_us in (30, 10, 20, 0):
        loop.at(at_us, at_us)
    run(loop, 25)
    assert loop.happened == [(0, 0), (10, 10), (20, 20)]
    run(loop, 30)
    assert loop.happened[-1] == (30, 30)
    assert loop.simulator.events_handled == 4


def test_events_of_one_time_happen_in_the_order_of_scheduling(run: Any) -> None:
    loop = Loop()
    # Names, processes and arguments that cannot be compared must not matter.
    for number, process in enumerate([loop.other, loop.one, loop.other, loop.one]):
        loop.at(5, {"number": number}, process)

    def schedule_now(_: None) -> None:
        loop.at(5, "last")

    loop.simulator.schedule(5, loop.one, schedule_now, None)
    loop.at(5, "before last")
    run(loop, 5)
    assert loop.names() == [*({"number": n} for n in range(4)), "before last", "last"]


def test_run_until_sets_the_clock_and_step_leaves_it_at_the_event() -> None:
    loop = Loop(start_us=-100)
    loop.at(-50, "a")
    loop.at(40, "b")
    assert loop.simulator.now_us == -100
    assert loop.simulator.step(0)
    assert loop.simulator.now_us == -50
    assert not loop.simulator.step(0)
    assert loop.simulator.now_us == -50
    loop.simulator.run_until(10)
    assert loop.simulator.now_us == 10
    loop.simulator.run_until(5)
    assert loop.simulator.now_us == 10
    assert loop.names() == ["a"]


def test_events_of_an_earlier_incarnation_never_happen(run: Any) -> None:
    loop = Loop()
    loop.at(10, "old life")
    loop.at(10, "other", loop.other)
    loop.one.kill()
    loop.one.start()
    loop.at(20, "new life")
    run(loop, 30)
    assert loop.names() == ["other", "new life"]
    assert loop.simulator.events_handled == 2


def test_a_process_that_dies_gets_no_later_event_of_the_same_instant(run: Any) -> None:
    loop = Loop()
    loop.simulator.schedule(10, loop.other, lambda _: loop.one.kill(), None)
    loop.at(10, "same instant, later")
    run(loop, 10)
    assert loop.names() == []


def test_a_paused_process_gets_its_backlog_in_order_when_it_is_resumed(run: Any) -> None:
    loop = Loop()
    for at_us in (10, 20, 30, 70):
        loop.at(at_us, at_us)
    loop.at(25, "other", loop.other)
    loop.one.paused = True
    run(loop, 60)
    assert loop.happened == [(25, "other")]
    loop.simulator.run_until(60)
    loop.at(60, "at the moment of resuming")  # scheduled earlier, so before the backlog
    loop.simulator.resume(loop.one)
    loop.at(60, "afterwards")
    run(loop, 80)
    assert loop.happened[1:] == [
        (60, "at the moment of resuming"),
        (60, 10),
        (60, 20),
        (60, 30),
        (60, "afterwards"),
        (70, 70),
    ]


def test_the_backlog_of_a_paused_process_dies_with_it(run: Any) -> None:
    loop = Loop()
    loop.at(10, "kept back")
    loop.one.paused = True
    run(loop, 20)
    loop.one.kill(power_loss=True)
    assert (loop.one.running, loop.one.paused, loop.one.powered) == (False, False, False)
    loop.one.start()
    assert (loop.one.running, loop.one.powered) == (True, True)
    loop.simulator.resume(loop.one)
    run(loop, 30)
    assert loop.names() == []


def test_a_process_paused_by_its_own_backlog_keeps_the_rest(run: Any) -> None:
    loop = Loop()

    def pause(_: None) -> None:
        loop.one.paused = True

    loop.one.paused = True
    loop.at(1, "first")
    loop.simulator.schedule(2, loop.one, pause, None)
    loop.at(3, "third")
    run(loop, 5)
    loop.simulator.resume(loop.one)
    run(loop, 5)
    assert loop.names() == ["first"]
    loop.simulator.resume(loop.one)
    run(loop, 6)
    assert loop.names() == ["first", "third"]


def test_the_step_limit_stops_a_run(run: Any) -> None:
    loop = Loop(events_limit=3)
    for at_us in range(5):
        loop.at(at_us, at_us)
    run(loop, 2)
    assert loop.names() == [0, 1, 2]
    with pytest.raises(StepLimitExceeded, match="more than 3 events"):
        run(loop, 10)
    assert len(loop.names()) == 4


def test_events_of_dead_and_paused_processes_are_not_counted(run: Any) -> None:
    loop = Loop(events_limit=1)
    for _ in range(3):
        loop.at(0, "old")
    loop.one.kill()
    loop.other.paused = True
    loop.at(1, "kept", loop.other)
    loop.at(2, "new")
    run(loop, 5)
    assert loop.names() == ["new"]
    assert loop.simulator.events_handled == 1


def test_a_timer_that_is_later_than_any_run_never_fires(run: Any) -> None:
    """Kafka's longest times, such as ``log.flush.interval.ms``, do not fit into 64 bits."""
    loop = Loop()
    loop.at(1_000 * (2**63 - 1), "never")
    loop.at(10, "soon")
    run(loop, 1_000_000_000)
    assert loop.happened == [(10, "soon")]


def test_an_event_is_inserted_in_order_into_a_long_queue(run: Any) -> None:
    loop = Loop()
    times = [number * 7919 % 101 for number in range(300)]
    for number, at_us in enumerate(times):
        loop.at(at_us, (at_us, number))
    run(loop, 101)
    assert loop.names() == sorted((at_us, number) for number, at_us in enumerate(times))


PLANS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.booleans()), min_size=1, max_size=60)
"""When an event is scheduled, how much later it happens, and whether before others of its time."""


@given(PLANS)
def test_the_next_event_is_always_the_first_by_time_precedence_and_order_of_scheduling(
    plans: list[tuple[int, int, bool]],
) -> None:
    simulator, process = Simulator(), Process("one")
    pending: list[tuple[int, bool, int]] = []
    happened: list[int] = []

    def add(planned: tuple[int, int, bool]) -> None:
        _, delay_us, is_first = planned
        event = (simulator.now_us + delay_us, not is_first, len(pending) + len(happened))
        pending.append(event)
        schedule = simulator.schedule_first if is_first else simulator.schedule
        schedule(event[0], process, happen, event)

    def happen(event: tuple[int, bool, int]) -> None:
        assert event == min(pending)
        assert event[0] == simulator.now_us
        pending.remove(event)
        happened.append(event[2])

    for planned in plans:
        simulator.schedule(planned[0], process, add, planned)
    simulator.run_until(60)
    assert len(happened) == len(plans)

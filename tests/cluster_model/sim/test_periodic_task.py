"""A periodic task runs at a fixed rate while there is work."""

from harrow.cluster_model.sim.periodic_task import PeriodicTask
from tests.cluster_model.fakes import FakeHost


class Work:
    """A task that records when it ran, and has work for a number of runs."""

    def __init__(self) -> None:
        self.host = FakeHost()
        self.ran_us: list[int] = []
        self.left = 0
        self.task = PeriodicTask(self.host, 10, self.run)

    def run(self) -> bool:
        self.ran_us.append(self.host.clock.now_us)
        self.left -= 1
        return self.left > 0


def test_a_periodic_task_runs_only_at_its_times_and_while_there_is_work() -> None:
    work = Work()
    work.host.advance(3)
    work.task.start()
    work.host.advance(25)
    assert work.ran_us == []
    work.left = 3
    work.task.request()
    work.task.request()
    work.host.advance(100)
    assert work.ran_us == [33, 43, 53]
    work.host.advance(5)  # 133 is one of its times
    work.task.request()
    work.host.advance(20)
    assert work.ran_us == [33, 43, 53, 143]


def test_a_request_before_the_start_waits_for_the_start() -> None:
    work = Work()
    work.task.request()
    work.host.advance(100)
    assert work.ran_us == []
    work.task.start()
    work.host.advance(100)
    assert work.ran_us == [110]

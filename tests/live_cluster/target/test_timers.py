"""Functions that are due are called in order, even if a step of the run was late."""

from harrow.live_cluster.target.timers import Timers


def test_late_functions_are_called_in_the_order_of_their_times() -> None:
    called: list[str] = []
    timers = Timers()

    def call_and_add(name: str) -> None:
        called.append(name)
        timers.add(6, called.append, "added")

    for at_us, name in ((9, "c"), (5, "b"), (5, "b2")):
        timers.add(at_us, called.append, name)
    timers.add(3, call_and_add, "a")
    assert timers.next_us() == 3
    timers.call_due(8)
    assert (called, timers.next_us()) == (["a", "b", "b2", "added"], 9)
    timers.clear()
    timers.call_due(10)
    assert (called, timers.next_us()) == (["a", "b", "b2", "added"], None)

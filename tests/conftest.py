"""What holds for all tests: interrupts, and how much is tried of what gains by numbers alone.

A test with the marker ``soak`` is made up of rounds: `make test` tries a few, `make soak` many, or
as many as there is time for. ``HARROW_SOAK_SECONDS`` says how much time (``inf`` for all rounds),
and that this is `make soak`. A round that is not begun by then is not tried, and the last lines say
how far each test came. A round that has begun is finished, so nothing fails for being slow. A round
tries the same seeds and examples wherever it is run.
"""

import gc
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from typing import Any, Final, TypeVar, cast

import pytest
from hypothesis import is_hypothesis_test, seed, settings

# A shell that starts something in the background, and nohup, have it ignore signals, and processes
# that tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

AnyText = TypeVar("AnyText", str, bytes)

SOAK_S: Final = float(os.environ.get("HARROW_SOAK_SECONDS") or 0)
BEGUN_S: Final = time.monotonic()
NUMBERS: Final = "numbers"
NOT_TRIED: Final = "not tried"

# No example has to be quick; and what is tried depends on the code and on the number of the round
# alone.
settings.register_profile("tests", settings(), deadline=None, derandomize=True, database=None)
settings.load_profile("tests")


@pytest.fixture
def processes() -> Iterator[ExitStack]:
    """End the processes that a test puts here, and close their pipes, however the test ends."""
    with ExitStack() as started:
        yield started


def put(processes: ExitStack, process: subprocess.Popen[AnyText]) -> subprocess.Popen[AnyText]:
    """Have a process ended with the test."""
    processes.enter_context(process)
    processes.callback(process.kill)
    return process


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Start three workers on two cores: many tests wait for processes that they start. Rounds of `make soak` do not."""
    return None if SOAK_S else cores() * 3 // 2


def cores() -> int:
    """Return how many cores this process may use, as ``nproc`` does."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from what stays to the end: modules and tests, half a million objects.

    Looking through them takes a third of a second, and the runs of tests make it do so hundreds of
    times.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each round of a test its ``numbers``: the seeds that it tries, or as many examples."""
    marker = metafunc.definition.get_closest_marker("soak")
    if marker is None:
        return
    size = marker.kwargs["size"]
    numbers = [range(number * size, (number + 1) * size) for number in range(_rounds(marker) or 1)]
    metafunc.fixturenames.append(NUMBERS)
    metafunc.parametrize(NUMBERS, numbers, ids=lambda tried: f"{tried.start}..{tried.stop}")


def _rounds(marker: pytest.Mark) -> int:
    rounds: int = marker.kwargs["soak" if SOAK_S else "test"]
    return rounds


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose and order the tests; xdist reads the names of their groups afterwards."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None and shares_a_fixture(item):
            item.add_marker(pytest.mark.xdist_group(item.location[0]))
    items[:] = in_turn(items) if SOAK_S else beside_their_group(items)
    left_out = [item for item in items if (marker := item.get_closest_marker("soak")) and not _rounds(marker)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def shares_a_fixture(item: pytest.Item) -> bool:
    """Return whether a test has a fixture that its file makes once: one process then makes it for all of them."""
    fixtures = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
    return any(
        fixture.scope in ("module", "session")
        and "::" not in fixture.baseid
        and fixture.baseid.endswith(".py")
        for of_name in fixtures.values()
        for fixture in of_name
    )


def beside_their_group(items: list[pytest.Item]) -> list[pytest.Item]:
    """Put tests of one group where its first stands, as xdist does, so that one process shares what they share."""
    groups = [
        marker.args[0] if (marker := item.get_closest_marker("xdist_group")) else item for item in items
    ]
    first: dict[object, int] = {}
    for place, group in enumerate(groups):
        first.setdefault(group, place)
    return [items[place] for place in sorted(range(len(items)), key=lambda place: first[groups[place]])]


def numbers_of(item: pytest.Item) -> range | None:
    callspec = getattr(item, "callspec", None)
    return None if callspec is None else cast("range | None", callspec.params.get(NUMBERS))


def in_turn(items: list[pytest.Item]) -> list[pytest.Item]:
    """Take a round of each test function in turn, so that each gets its share of the time.

    What `make test` tries as well comes last.
    """
    rounds_before: Counter[str] = Counter()
    turns: list[int] = []
    ordered = sorted(items, key=round_of)
    for item in ordered:
        test = item.nodeid.partition("[")[0]
        turns.append(rounds_before[test])
        rounds_before[test] += 1
    return [ordered[place] for place in sorted(range(len(ordered)), key=turns.__getitem__)]


def round_of(item: pytest.Item) -> float:
    numbers, marker = numbers_of(item), item.get_closest_marker("soak")
    if numbers is None or marker is None:
        return 0
    number = numbers.start // len(numbers)
    return number if number >= marker.kwargs["test"] else float("inf")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give each round examples of its own, and begin none when the time is over."""
    numbers = numbers_of(item)
    if numbers is None:
        return
    if isinstance(item, pytest.Function) and is_hypothesis_test(item.obj):
        seed(numbers.start)(item.obj)
    if not SOAK_S:
        return
    item.user_properties.append((NUMBERS, len(numbers)))
    if time.monotonic() - BEGUN_S > SOAK_S:
        pytest.skip(f"{NOT_TRIED}: the time is over")


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Print no letter for each of thousands of rounds that were not begun."""
    return (NOT_TRIED, "", "") if report.skipped and NOT_TRIED in str(report.longrepr) else None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how far each test came."""
    tried: Counter[str] = Counter()
    planned: Counter[str] = Counter()
    for category in ("passed", "failed", NOT_TRIED):
        for report in terminalreporter.stats.get(category, ()):
            numbers = dict(report.user_properties).get(NUMBERS, 0)
            test = report.nodeid.partition("[")[0]
            planned[test] += numbers
            tried[test] += 0 if category == NOT_TRIED else numbers
    if SOAK_S:
        terminalreporter.section("seeds and examples that were tried")
    for test in sorted(+planned):
        terminalreporter.line(f"{tried[test]:>9,} of {planned[test]:>9,}  {test}")

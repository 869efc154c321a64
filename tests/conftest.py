"""Setup for all tests: signals, and rounds of tests that find more only in more runs.

A test with the marker ``soak`` consists of rounds. `make test` runs a few of them, `make soak` as
many as the time permits. That time is ``HARROW_SOAK_SECONDS`` (``inf`` for all rounds), which
`make soak` sets. Rounds that have not started by then are skipped, and the last lines show the
progress of each test. A started round runs to its end, so slowness causes no failures. A round uses
the same seeds and examples on every machine.
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

# Under nohup, or in the background of a shell, pytest ignores signals, and the processes of tests
# would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

AnyText = TypeVar("AnyText", str, bytes)

SOAK_S: Final = float(os.environ.get("HARROW_SOAK_SECONDS") or 0)
START_S: Final = time.monotonic()
NUMBERS: Final = "numbers"
NOT_TRIED: Final = "not tried"

# Examples have no deadline, and depend only on the code and the number of the round.
settings.register_profile("tests", settings(), deadline=None, derandomize=True, database=None)
settings.load_profile("tests")


@pytest.fixture
def processes() -> Iterator[ExitStack]:
    """End the processes that a test registers here, and close their pipes."""
    with ExitStack() as started:
        yield started


def kill_after_test(processes: ExitStack, process: subprocess.Popen[AnyText]) -> subprocess.Popen[AnyText]:
    """Kill a process when the test ends, and return it."""
    processes.enter_context(process)
    processes.callback(process.kill)
    return process


def pytest_configure(config: pytest.Config) -> None:
    """Sort the files on the command line.

    If a file of a parent folder comes between two files of a folder, pytest 9.1 forgets the
    fixtures of the folder's conftest.py (its issue 14635). The plugin has a fixture of the same
    name as tests/cli, so tests would get the wrong one.
    """
    config.args.sort()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Start three workers on two cores, because many tests wait for processes.

    The tests of `make soak` do not wait, so it keeps the default of xdist.
    """
    return None if SOAK_S else cores() * 3 // 2


def cores() -> int:
    """Return the number of cores for this process, like ``nproc``."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Hide modules and tests from the garbage collector.

    They are half a million permanent objects. Traversing them takes a third of a second, hundreds
    of times during the tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each round its ``numbers``: a range of seeds, or of as many numbers as examples."""
    marker = metafunc.definition.get_closest_marker("soak")
    if marker is None:
        return
    size = marker.kwargs["size"]
    numbers = [range(number * size, (number + 1) * size) for number in range(_rounds(marker) or 1)]
    metafunc.fixturenames.append(NUMBERS)
    metafunc.parametrize(NUMBERS, numbers, ids=lambda seeds: f"{seeds.start}..{seeds.stop}")


def _rounds(marker: pytest.Mark) -> int:
    rounds: int = marker.kwargs["rounds_in_soak" if SOAK_S else "rounds_in_test"]
    return rounds


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select and order tests before xdist reads the names of their groups."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None and shares_a_fixture(item):
            item.add_marker(pytest.mark.xdist_group(item.location[0]))
    items[:] = alternating_rounds(items) if SOAK_S else with_groups_together(items)
    deselected = [
        item for item in items if (marker := item.get_closest_marker("soak")) and not _rounds(marker)
    ]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if item not in deselected]


def shares_a_fixture(item: pytest.Item) -> bool:
    """Return whether a test uses a fixture that the tests of its file share.

    Such tests should run in one process, so that the fixture is created once.
    """
    fixtures = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
    return any(
        fixture.scope in ("module", "session")
        and "::" not in fixture.baseid
        and fixture.baseid.endswith(".py")
        for fixtures_of_name in fixtures.values()
        for fixture in fixtures_of_name
    )


def with_groups_together(items: list[pytest.Item]) -> list[pytest.Item]:
    """Put all tests of a group after its first test, as xdist does.

    So one process can share their data.
    """
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


def alternating_rounds(items: list[pytest.Item]) -> list[pytest.Item]:
    """Take a round of each test in turn, so that each gets its share of the time.

    Rounds that `make test` also runs come last.
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
    return number if number >= marker.kwargs["rounds_in_test"] else float("inf")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give each round its own examples, and start none after the time limit."""
    numbers = numbers_of(item)
    if numbers is None:
        return
    if isinstance(item, pytest.Function) and is_hypothesis_test(item.obj):
        seed(numbers.start)(item.obj)
    if not SOAK_S:
        return
    item.user_properties.append((NUMBERS, len(numbers)))
    if time.monotonic() - START_S > SOAK_S:
        pytest.skip(f"{NOT_TRIED}: the time is up")


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Print no letters for thousands of skipped rounds."""
    return (NOT_TRIED, "", "") if report.skipped and NOT_TRIED in str(report.longrepr) else None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the progress of each test."""
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

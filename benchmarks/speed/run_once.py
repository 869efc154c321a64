"""Runs a campaign with the code of some commit and prints what that cost, as JSON.

`benchmarks.speed.measurement` starts it as a file, not as a module: the commit's code has to be
first on PYTHONPATH, before an installed harrow, and may be older than this file. So the script
imports nothing of harrow by name: in early commits, ``campaigns`` and ``cluster_model`` were
top-level packages, and not parts of ``harrow``.
"""

import gc
import heapq
import importlib
import json
import re
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NoReturn

_LOADERS: Final = ("harrow.campaigns.language.loader", "campaigns.loader")
_RUNNERS: Final = ("harrow.campaigns.run.runner", "campaigns.runner")

_COLLECTOR: Final = "harrow.campaigns.run.collector"

_BARE_EVENTS: Final = 100_000
_BARE_QUEUE: Final = 100


class OverLimit(BaseException):
    """The run has used up its time. It is no Exception, so that no code of the run handles it."""


def bare_events_per_s() -> float:
    """Return the events per second that a minimal loop of heap, tuple and callback handles here."""
    handled = 0

    def callback(argument: int) -> None:
        nonlocal handled
        handled += argument

    queue = [(number, number, callback, 1) for number in range(_BARE_QUEUE)]
    start_s = time.process_time()
    for number in range(_BARE_QUEUE, _BARE_QUEUE + _BARE_EVENTS):
        at, _, called, argument = heapq.heappop(queue)
        called(argument)
        heapq.heappush(queue, (at + _BARE_QUEUE + number % 7, number, callback, 1))
    assert handled == _BARE_EVENTS
    return _BARE_EVENTS / (time.process_time() - start_s)


def _first(names: tuple[str, ...], root: Path) -> ModuleType:
    """Return the first of these modules that the commit has, and assert that it is the commit's."""
    below_harrow = (root / "src" / "harrow").is_dir()
    for name in names:
        if name.startswith("harrow.") == below_harrow:
            # An old commit has no `harrow`, but an installed one may be found.
            with suppress(ModuleNotFoundError):
                module = importlib.import_module(name)
                file = Path(module.__file__ or "").resolve()
                assert file.is_relative_to(root), f"{file} is not below {root}"
                return module
    raise ModuleNotFoundError(f"none of {', '.join(names)} is in {root}")


def with_names_of(root: Path, campaign: str, former_names: Mapping[str, str]) -> str:
    """Return a campaign with the names of switches that the commit in *root* knows.

    *former_names* are the present names of switches by their former names.
    """
    model = root / "cluster_model"
    files = (*model.glob("release.py"), *(model / "release").glob("*.py"))
    declared = "".join(file.read_text(encoding="utf-8") for file in files)
    for former_name, name in former_names.items():
        if not re.search(rf"\b{name}\b", declared):
            campaign = re.sub(rf"\b{name}\b", former_name, campaign)
    return campaign


def _lift_partition_limit() -> None:
    """Lift the loader's limit of partitions, which guards against mistakes in campaign files."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("harrow.campaigns.", "campaigns.")) and hasattr(module, "PARTITIONS_MAX"):
            vars(module)["PARTITIONS_MAX"] = sys.maxsize


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _stop(_signal: int, _frame: object) -> NoReturn:
    raise OverLimit


def _stop_after(limit_s: int) -> None:
    """Let the kernel interrupt this process after this many more seconds of CPU time."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    signal.signal(signal.SIGXCPU, _stop)
    resource.setrlimit(resource.RLIMIT_CPU, (int(_cpu_s()) + 1 + limit_s, hard))


def main() -> None:
    """Read what to run from stdin, and print what it cost."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the parent process says that it was interrupted
    request = json.load(sys.stdin)
    root = Path(request["root"]).resolve()
    load_text: Callable[..., Any] = _first(_LOADERS, root).load_text
    runner = _first(_RUNNERS, root)
    warm_up, campaign = (
        with_names_of(root, request[key], request["former_names"]) for key in ("warm_up", "campaign")
    )
    _lift_partition_limit()
    judge_s = 0.0
    judge: Callable[..., Any] = runner.__dict__["judge"]

    def timed_judge(*arguments: Any, **options: Any) -> Any:
        nonlocal judge_s
        start_s = _cpu_s()
        try:
            return judge(*arguments, **options)
        finally:
            judge_s += _cpu_s() - start_s

    runner.__dict__["judge"] = timed_judge
    runner.run_plan(load_text(warm_up, "warm-up.yaml").plans[0], 0)  # imports and caches
    plan = load_text(campaign, "benchmark.yaml").plans[0]
    for seed in request["warm_up_seeds"]:
        runner.run_plan(plan, seed)
    gc.collect()
    gc.freeze()  # As `harrow run` does: what was imported is not garbage.
    with suppress(ModuleNotFoundError):  # Early commits have no such module.
        _first((_COLLECTOR,), root).collect_rarely()
    bare = [bare_events_per_s() for _ in range(3)]
    judge_s = 0.0
    events = simulated_us = 0
    verdicts = set()
    over = False
    start_s = _cpu_s()
    try:
        _stop_after(request["limit_s"])
        for seed in range(request["seeds"]):
            result = runner.run_plan(plan, seed)
            events += result.events
            simulated_us += result.simulated_us
            verdicts.add(result.verdict.status)
    except OverLimit:
        over = True
    cpu_s = _cpu_s() - start_s
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    if not over:
        bare += [bare_events_per_s() for _ in range(3)]
    cost = {
        "over": over,
        "cpu_s": cpu_s,
        "judge_s": judge_s,
        "events": events,
        "simulated_s": simulated_us / 1e6,
        "verdicts": sorted(verdicts),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "bare_events_per_s": max(bare),
        "runner": runner.__file__,
    }
    print(json.dumps(cost))


if __name__ == "__main__":
    main()

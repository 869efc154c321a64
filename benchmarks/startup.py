"""How fast commands answer: CPU and wall time, beside the time that Python itself takes.

Run ``python -m benchmarks.startup [ROUNDS]``. The commands take turns, so that a machine that is
busy for a while slows all of them; the table has the minimum of each. Instructions do not depend on
other work on the machine: perf counts those of each command once, or valgrind if the kernel forbids
perf.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]

PYTHON = "python -c pass"
COMMANDS = {
    PYTHON: ("-c", "pass"),
    "harrow --version": ("-m", "harrow", "--version"),
    "harrow --help": ("-m", "harrow", "--help"),
    "completion of campaigns": ("-m", "harrow", "run "),
    "completion of variants": ("-m", "harrow", "run acks-0 --variant "),
    "completion of names": ("-m", "harrow", "explain "),
    "harrow list faults": ("-m", "harrow", "list", "faults"),
    "harrow explain lost-write": ("-m", "harrow", "explain", "lost-write"),
    "harrow run ack-lost": ("-m", "harrow", "run", "ack-lost"),
}

COUNTERS = (
    ("perf", "stat", "-x,", "-e", "instructions:u"),
    ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"),
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=7)
    rounds = parser.parse_args().rounds
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for name in COMMANDS:
                measured[name].append(_measure(name, folder))
        counter = _counter(folder)
        counted = {name: _instructions(counter, name, folder) for name in COMMANDS}
    cpu = {name: min(times)[0] for name, times in measured.items()}
    wall = {name: min(wall for _, wall in times) for name, times in measured.items()}
    print(
        "| command | CPU s | wall s | beyond Python's start, CPU s | times Python's start | M instructions |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for name in COMMANDS:
        ratio = cpu[name] / max(cpu[PYTHON], 0.001)
        beyond = cpu[name] - cpu[PYTHON]
        print(
            f"| {name} | {cpu[name]:.3f} | {wall[name]:.3f} | {beyond:.3f} | {ratio:.0f} | {counted[name]} |"
        )


def _measure(name: str, folder: str) -> tuple[float, float]:
    """Return the CPU and the wall seconds that a command takes."""
    start_cpu_s, start_wall_s = _children_s(), time.perf_counter()
    _run((), name, folder)
    return _children_s() - start_cpu_s, time.perf_counter() - start_wall_s


def _counter(folder: str) -> tuple[str, ...] | None:
    """Return a command that counts the instructions of another command, None if there is none."""
    for counter in COUNTERS:
        with suppress(OSError, subprocess.CalledProcessError):
            if _count(_run(counter, PYTHON, folder)) is not None:
                return counter
    return None


def _instructions(counter: tuple[str, ...] | None, name: str, folder: str) -> str:
    count = None if counter is None else _count(_run(counter, name, folder))
    return "not counted" if count is None else f"{count / 1_000_000:.0f}"


def _count(report: str) -> int | None:
    found = re.search(r"I +refs: +([0-9,]+)|^([0-9]+),[^,]*,instructions", report, re.MULTILINE)
    return int((found[1] or found[2]).replace(",", "")) if found else None


def _run(counter: tuple[str, ...], name: str, folder: str) -> str:
    """Run a command, under a counter if one is given, and return the standard error."""
    arguments = COMMANDS[name]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONHASHSEED": "0"}
    # Let Python use its bytecode files. Otherwise it would spend most of the time compiling.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if name.startswith("completion"):
        *arguments_before, line = arguments
        words = f"harrow {line}"
        environment |= {
            "_HARROW_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split())),
        }
        arguments = tuple(arguments_before)
    return subprocess.run(  # noqa: S603  # the commands of this file
        [*counter, sys.executable, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    ).stderr


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()

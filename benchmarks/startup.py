"""How soon commands answer: CPU and wall time, beside Python's own start on the same machine at the same time.

Run ``python -m benchmarks.startup [ROUNDS]``. The commands take turns, so that a machine that is busy
for a while is so for all of them; the least of each is shown.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=7)
    rounds = parser.parse_args().rounds
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for name, arguments in COMMANDS.items():
                measured[name].append(_measure(arguments, folder, completes=name.startswith("completion")))
    cpu = {name: min(times)[0] for name, times in measured.items()}
    wall = {name: min(wall for _, wall in times) for name, times in measured.items()}
    print("| command | CPU s | wall s | beyond Python's start, CPU s | times Python's start |")
    print("| --- | --- | --- | --- | --- |")
    for name in COMMANDS:
        ratio = cpu[name] / max(cpu[PYTHON], 0.001)
        beyond = cpu[name] - cpu[PYTHON]
        print(f"| {name} | {cpu[name]:.3f} | {wall[name]:.3f} | {beyond:.3f} | {ratio:.0f} |")


def _measure(arguments: tuple[str, ...], folder: str, *, completes: bool) -> tuple[float, float]:
    """Return the CPU and the wall seconds that a command takes."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    if completes:
        *arguments_before, line = arguments
        words = f"harrow {line}"
        environment |= {
            "_HARROW_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split())),
        }
        arguments = tuple(arguments_before)
    before, began = _children_s(), time.perf_counter()
    subprocess.run(  # noqa: S603  # the commands of this file
        [sys.executable, *arguments], cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True
    )
    return _children_s() - before, time.perf_counter() - began


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()

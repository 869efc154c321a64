"""The time and memory that judging a history takes, for some operations and ten times as many.

Run ``python -m benchmarks.history [OPERATIONS]``. Each operation is one line of the history;
invocations and completions are separate lines (docs/reference/history-format.md). The history is
that of a correct log: half sends, half polls, 10 partitions, 20 processes that follow two
partitions each. ``harrow check`` judges each size in its own process, from JSON lines on disk to
the verdict.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from harrow.cluster_model.sim.choices import Choices

PARTITIONS: Final = 10
PROCESSES: Final = 20
FOLLOWED: Final = 2
US: Final = 1_000


def history(operations: int, *, gaps: int = 0) -> Iterator[str]:
    """Yield the lines of a history; between two offsets there is a gap of *gaps*."""
    draw = Choices.from_seed(1).workload.below
    logs: list[list[int]] = [[] for _ in range(PARTITIONS)]
    read = [[0] * FOLLOWED for _ in range(PROCESSES)]
    index = 0

    def line(process: int, type_: str, f: str, value: object) -> str:
        nonlocal index
        index += 1
        operation = {
            "index": index - 1,
            "process": process,
            "type": type_,
            "f": f,
            "value": value,
            "time": index * 10 * US,
        }
        return json.dumps(operation) + "\n"

    def poll(process: int) -> Iterator[str]:
        records = {}
        for slot in range(FOLLOWED):
            partition = (process + slot * 7) % PARTITIONS
            log, start = logs[partition], read[process][slot]
            if start < len(log):
                records[f"t-{partition}"] = [
                    [offset * (1 + gaps), f"t-{partition}:{offset}"] for offset in log[start : start + 500]
                ]
                read[process][slot] = min(len(log), start + 500)
        yield line(process, "invoke", "poll", [["poll"]])
        yield line(process, "ok", "poll", [["poll", records]])

    for _ in range(operations // 2 - PROCESSES):
        process = draw(PROCESSES)
        if draw(2):
            partition = draw(PARTITIONS)
            offset = len(logs[partition])
            logs[partition].append(offset)
            value = f"t-{partition}:{offset}"
            yield line(process, "invoke", "send", [["send", f"t-{partition}", value]])
            yield line(process, "ok", "send", [["send", f"t-{partition}", [offset * (1 + gaps), value]]])
        else:
            yield from poll(process)
    for process in range(PROCESSES):
        while any(
            read[process][slot] < len(logs[(process + slot * 7) % PARTITIONS]) for slot in range(FOLLOWED)
        ):
            yield from poll(process)


def measure(folder: Path, operations: int, *, gaps: int = 0) -> float:
    """Judge a history of this size, print the cost, and return the seconds of processor time."""
    path = folder / f"{operations}-{gaps}.jsonl"
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(history(operations, gaps=gaps))
    command = [sys.executable, "-m", "harrow", "check", str(path), "--format", "json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    # The exit code differs if the history breaks a promise, which is no error here.
    completed = subprocess.run(command, check=False, stdout=subprocess.PIPE)  # noqa: S603 - our own command
    wall_s = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    gap = f", gaps of {gaps:.0e}" if gaps else ""
    print(
        f"{operations:>10} operations ({path.stat().st_size / 1e6:.0f} MB{gap}): {busy_s:.1f} s of one core "
        f"({wall_s:.1f} s), {after.ru_maxrss / 1024:.0f} MiB at most so far, "
        f"verdict {json.loads(completed.stdout)['verdict']}"
    )
    path.unlink()
    return busy_s


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operations", nargs="?", type=int, default=1_000_000)
    operations = parser.parse_args().operations
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tenth_s = measure(folder, operations // 10)
        whole_s = measure(folder, operations)
        gaps_s = measure(folder, operations, gaps=10**12)
    print(f"ten times the operations cost {whole_s / tenth_s:.1f} times the time")
    print(f"gaps of 10^12 between the offsets cost {gaps_s / whole_s:.2f} times the time of none")


if __name__ == "__main__":
    main()

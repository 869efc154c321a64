"""How much of a run's CPU time each folder of harrow takes.

Run ``python -m benchmarks.parts [NAME...]``, with names of ``python -m benchmarks.compare --list``.
A timer of CPU time interrupts a run a thousand times a second, and the folder of the running
function is counted. A profiler that counts calls would make folders with many small functions look
more expensive than they are.
"""

import argparse
import gc
import signal
from collections import Counter, defaultdict
from pathlib import Path
from types import FrameType
from typing import Final

from benchmarks.speed.clusters import TABLE, MeasuredCluster
from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.runner import run_plan

_ROOT: Final = Path(__file__).resolve().parents[1]
_INTERVAL_S: Final = 0.001
_SHARE_MIN: Final = 0.005
_OTHER: Final = "other"
_FREEING: Final = "freeing its memory"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", default=["standard", "300-partitions", "10-producers"]
    )
    names = parser.parse_args().names
    clusters = {cluster.name: cluster for cluster in TABLE}
    unknown = [name for name in names if name not in clusters]
    if unknown:
        parser.error(f"{', '.join(unknown)}: not among {', '.join(clusters)}")
    shares = {name: _shares(clusters[name]) for name in names}
    parts = sorted(
        {part for share in shares.values() for part in share}, key=lambda part: (part == _OTHER, part)
    )
    print(f"| part | {' | '.join(f'`{name}`' for name in names)} |")
    print(f"| --- |{' ---: |' * len(names)}")
    for part in parts:
        cells = " | ".join(f"{shares[name][part]:.0%}" for name in names)
        print(f"| {part} | {cells} |")


def _shares(cluster: MeasuredCluster) -> defaultdict[str, float]:
    """Return the share of each part; the smallest are added together."""
    plan = load_text(cluster.text(), "benchmark.yaml").plans[0]
    run_plan(plan, 0)  # Do not measure imports and the filling of caches.
    gc.freeze()
    samples: Counter[str] = Counter()
    parts: dict[str, str | None] = {}

    def sample(_signal: int, frame: FrameType | None) -> None:
        while frame is not None:
            file = frame.f_code.co_filename
            if file not in parts:
                parts[file] = _part(file)
            part = parts[file]
            if part is not None:
                samples[part] += 1
                return
            frame = frame.f_back

    before = signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, _INTERVAL_S, _INTERVAL_S)
    try:
        for seed in range(cluster.seeds):
            run_plan(plan, seed)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    shares: defaultdict[str, float] = defaultdict(float)
    for part, number in samples.items():
        share = number / samples.total()
        shares[part if share >= _SHARE_MIN else _OTHER] += share
    return shares


def _part(file: str) -> str | None:
    """Return the folder of a file; None for generated constructors and the standard library."""
    path = Path(file).resolve()
    if file.startswith("<") or not path.is_relative_to(_ROOT):
        return None
    folder = str(path.relative_to(_ROOT).parent)
    # The memory of a run is freed here, where the last reference to it goes away.
    return _FREEING if folder == "benchmarks" else f"`{folder}/`"


if __name__ == "__main__":
    main()

"""What a sweep costs: one process, a pool of them, and Spark, over the same runs.

``python -m benchmarks.sweep [RUNS] [--rounds N] [--campaign NAME]`` measures throughput without the
start of workers, and checks that all engines write the same rows. The campaign is one of the
library, and otherwise a small one. ``python -m benchmarks.sweep --rows 10000 100000``
measures the driver: the rows that it receives and writes a second, and its memory, with runs that
cost next to nothing.
"""

import argparse
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.workers.available_workers import available_workers
from harrow.campaigns.storage.location import Location, location
from harrow.campaigns.sweep.chunk import Chunk, Task
from harrow.campaigns.sweep.definition import Definition, define
from harrow.campaigns.sweep.engine import Engine
from harrow.campaigns.sweep.part_file import RUNS
from harrow.campaigns.sweep.process_engine import ProcessEngine
from harrow.campaigns.sweep.queries import duck_sql
from harrow.campaigns.sweep.spark_engine import SparkEngine
from harrow.campaigns.sweep.spark_session import spark_address, start_session
from harrow.campaigns.sweep.sweep import Sweep
from harrow.campaigns.sweep.sweep_folder import SweepFolder
from harrow.campaigns.sweep.sweep_report import report_of

SMALL = """
name: small
kafka: "2.4"
cluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}
workload: {duration: 5s, producers: [{name: p, rate: 4/s}]}
faults:
  - rate: 30/m
    do: {broker_crash: {broker: leader of t-0, restart_after: 500ms}}
"""
TINY = "name: tiny\ncluster: {brokers: 1, topics: [{name: t}]}\n"


def definition(text: str, runs: int) -> Definition:
    """Return the sweep of the first plan of a campaign."""
    campaign = load_text(text, "benchmark.yaml")
    return define([(replace(campaign, plans=campaign.plans[:1]), "benchmark.yaml")], range(runs))


@dataclass(frozen=True)
class SweepRate:
    """How fast a sweep was: its runs, its time, and the processor time that it took.

    The processor time is that of this process and of all its descendants, by the kind of process.
    Other work on the machine hardly changes it. ``driver_cpu_s`` is the part of this process.
    """

    runs: int
    elapsed_s: float
    cpu_s: Mapping[str, float]
    driver_cpu_s: float

    @property
    def runs_per_s(self) -> float:
        return self.runs / self.elapsed_s

    @property
    def runs_per_cpu_s(self) -> float:
        return self.runs / sum(self.cpu_s.values())


def cpu_s_by_process() -> dict[int, float]:
    """Return the processor time of this process and of each of its descendants (Linux)."""
    ticks: dict[int, float] = {}
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # the process has ended
            fields = stat.read_text().rpartition(")")[2].split()
            parents[int(stat.parent.name)] = int(fields[1])
            # The time of children counts if they have ended and have been waited for.
            ticks[int(stat.parent.name)] = sum(map(int, fields[11:15]))
    family = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return {pid: ticks[pid] / os.sysconf("SC_CLK_TCK") for pid in family if pid in ticks}


def start_workers(sweep_definition: Definition, engine: Engine) -> None:
    """Run some tasks: workers start with their first one."""
    task = Task(cell=0, seeds=range(1))
    engine.run(Chunk(tasks=(task,) * 2 * engine.workers, campaign=sweep_definition.cells[0].campaign))


def measured(
    sweep_definition: Definition,
    engine: Engine,
    place: Path | Location,
    kind_of: Callable[[int], str] = lambda _: "",
) -> SweepRate:
    """Run a sweep, and return how fast it was. *kind_of* returns the kind of a process."""
    folder = SweepFolder(place, sweep_definition)
    folder.begin()
    engine.folder = folder.location
    start_workers(sweep_definition, engine)
    start_s, start_cpu_s, start_driver_s = time.perf_counter(), cpu_s_by_process(), time.process_time()
    progress = Sweep(sweep_definition, folder, engine).run()
    elapsed_s, end_cpu_s = time.perf_counter() - start_s, cpu_s_by_process()
    driver_s = time.process_time() - start_driver_s
    assert progress.is_complete(), progress
    used_s: defaultdict[str, float] = defaultdict(float)
    for pid, process_s in end_cpu_s.items():
        used_s[kind_of(pid)] += process_s - start_cpu_s.get(pid, 0.0)
    return SweepRate(sweep_definition.runs(), elapsed_s, used_s, driver_s)


def rows_of(place: Path | Location) -> pa.Table:
    """Return all rows without their times, in the order of their keys."""
    system, top = location(place).in_arrow()
    rows = ds.dataset(f"{top}/{RUNS}", filesystem=system, partitioning="hive").to_table()
    return rows.drop_columns("wall_us").sort_by([("cell", "ascending"), ("seed", "ascending")])


def throughput(text: str, runs: int, rounds: int) -> None:
    """Print the runs a second of each engine in each round, and the ratios of the best rounds.

    Other work on the machine can only slow an engine down, so the best round tells the most.
    """
    sweep_definition = definition(text, runs)
    tables: list[pa.Table] = []
    scales: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        engines: dict[str, Engine] = {
            "1 process": ProcessEngine(sweep_definition.cells, 1),
            "processes": ProcessEngine(sweep_definition.cells),
            "Spark": SparkEngine(
                start_session(spark_address(), log=Path(folder) / "spark.log"), sweep_definition.cells
            ),
        }
        rates: dict[str, list[SweepRate]] = {name: [] for name in engines}
        for number in range(rounds):
            scales.append(scale(sweep_definition, max(1, runs // available_workers())))
            print(
                f"round {number}: {sweep_definition.runs()} runs; the cores are worth {scales[-1]:.2f} of one alone"
            )
            for name, engine in engines.items():
                path = Path(folder) / f"{number}-{name.replace(' ', '-')}"
                rates[name].append(measured(sweep_definition, engine, path))
                tables.append(rows_of(path))
                rate = rates[name][-1]
                print(
                    f"  {name:<10} {engine.workers} workers  {rate.runs_per_s:8.1f} runs/s"
                    f"  {rate.runs_per_cpu_s:8.1f} runs per CPU second",
                    flush=True,
                )
        for engine in engines.values():
            engine.close()
    best = {name: max(rate.runs_per_s for rate in found) for name, found in rates.items()}
    per_cpu = {name: max(rate.runs_per_cpu_s for rate in found) for name, found in rates.items()}
    print(
        f"Spark / processes {best['Spark'] / best['processes']:.2f}, by CPU {per_cpu['Spark'] / per_cpu['processes']:.2f}"
    )
    print(f"Spark / 1 process {best['Spark'] / best['1 process']:.2f}, of {max(scales):.2f} that there are")
    print(f"rows are {'the same' if all(map(tables[0].equals, tables)) else 'DIFFERENT'}")


def scale(sweep_definition: Definition, runs: int) -> float:
    """Return how many times as many runs all cores do together as one core does alone.

    Each core does *runs* runs in a process of its own, and the processes share nothing.
    """
    context = multiprocessing.get_context("spawn")
    with context.Pool(available_workers()) as pool:
        together = sum(pool.starmap(_alone, [(sweep_definition, runs)] * available_workers(), chunksize=1))
    with context.Pool(1) as pool:
        return together / pool.apply(_alone, (sweep_definition, runs))


def _alone(sweep_definition: Definition, runs: int) -> float:
    """Return the runs a second of this process."""
    plan = sweep_definition.cells[0].plan
    start_s = time.perf_counter()
    for seed in range(runs):
        run_plan(plan, seed)
    return runs / (time.perf_counter() - start_s)


def driver(runs: int) -> None:
    """Print what it costs the driver to receive, write and query this many rows."""
    sweep_definition = definition(TINY, runs)
    path = Path(tempfile.mkdtemp())
    try:
        engine = ProcessEngine(sweep_definition.cells)
        rate = measured(sweep_definition, engine, path / "sweep").runs_per_s
        engine.close()
        peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        start_s = time.perf_counter()
        folder = SweepFolder(path / "sweep", sweep_definition)
        folder.load()
        report_of(duck_sql(folder), sweep_definition, {})
        query_s = time.perf_counter() - start_s
        size = sum(part.stat().st_size for part in path.glob("sweep/runs/*/*.parquet"))
        print(
            f"{runs:>8} rows: {rate:8.0f} rows/s, driver {peak_mib:6.0f} MiB, "
            f"{size / runs:5.0f} bytes a row on disk, all questions {query_s:.2f} s",
            flush=True,
        )
    finally:
        shutil.rmtree(path)


def main() -> None:
    """Run the benchmark, and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="?", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--campaign")
    parser.add_argument("--rows", nargs="+", type=int, default=[])
    parser.add_argument("--driver", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.driver:
        driver(arguments.driver)
        return
    if not arguments.rows:
        text = resolve(arguments.campaign)[0].read_text(encoding="utf-8") if arguments.campaign else SMALL
        throughput(text, arguments.runs, arguments.rounds)
    for rows in arguments.rows:  # a process each: memory only grows
        subprocess.run([sys.executable, "-m", "benchmarks.sweep", "--driver", str(rows)], check=True)  # noqa: S603 - this very file


if __name__ == "__main__":
    main()

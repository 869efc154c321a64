"""What a sweep costs: one process, a pool of them, and Spark, over the same runs.

``python -m benchmarks.sweep [RUNS] [--rounds N]`` measures throughput without the start of workers,
and checks that all engines write the same rows. ``python -m benchmarks.sweep --rows 10000 100000``
measures the driver: the rows that it receives and writes a second, and its memory, with runs that
cost next to nothing.
"""

import argparse
import hashlib
import multiprocessing
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.workers.available_workers import available_workers
from harrow.campaigns.sweep.chunk import Chunk, Task
from harrow.campaigns.sweep.definition import Definition, define
from harrow.campaigns.sweep.engine import Engine
from harrow.campaigns.sweep.process_engine import ProcessEngine
from harrow.campaigns.sweep.queries import duck_sql
from harrow.campaigns.sweep.spark_engine import SparkEngine
from harrow.campaigns.sweep.spark_session import start_session
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
SCALE_RUNS = 2_000
"""How many runs each process does to measure how much more all cores do than one core."""

TINY = "name: tiny\ncluster: {brokers: 1, topics: [{name: t}]}\n"


def definition(text: str, runs: int) -> Definition:
    """Return the sweep of one campaign."""
    return define([(load_text(text, "benchmark.yaml"), "benchmark.yaml")], range(runs))


def measured(sweep_definition: Definition, engine: Engine, path: Path) -> float:
    """Run a sweep, and return its runs a second."""
    folder = SweepFolder(path, sweep_definition)
    folder.begin()
    # Workers start with their first task. Run such tasks before the measurement.
    warm_up = Task(cell=0, seeds=range(1))
    engine.run(Chunk(tasks=(warm_up,) * 2 * engine.workers, campaign=sweep_definition.cells[0].campaign))
    start_s = time.perf_counter()
    progress = Sweep(sweep_definition, folder, engine).run()
    elapsed_s = time.perf_counter() - start_s
    assert progress.is_complete(), progress
    return sweep_definition.runs() / elapsed_s


def rows_digest(path: Path) -> str:
    """Return a digest of all rows without their times, in the order of their keys."""
    rows = duckdb.read_parquet(str(path / "runs" / "*" / "*.parquet"), hive_partitioning=True)
    names = ", ".join(name for name in rows.columns if name != "wall_us")
    found = rows.project(names).order("cell, seed").fetchall()
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]


def throughput(runs: int, rounds: int) -> None:
    """Print the runs a second of each engine in each round, and the ratios of the best rounds.

    Other work on the machine can only slow an engine down, so the best round says most about it.
    """
    sweep_definition = definition(SMALL, runs)
    digests: set[str] = set()
    scales: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        engines: dict[str, Engine] = {
            "1 process": ProcessEngine(sweep_definition.cells, 1),
            "processes": ProcessEngine(sweep_definition.cells),
            "Spark": SparkEngine(start_session(log=Path(folder) / "spark.log"), sweep_definition.cells),
        }
        rates: dict[str, list[float]] = {name: [] for name in engines}
        for number in range(rounds):
            scales.append(scale(sweep_definition))
            print(
                f"round {number}: {sweep_definition.runs()} runs; the cores are worth {scales[-1]:.2f} of one alone"
            )
            for name, engine in engines.items():
                path = Path(folder) / f"{number}-{name.replace(' ', '-')}"
                rates[name].append(measured(sweep_definition, engine, path))
                digests.add(rows_digest(path))
                print(f"  {name:<10} {engine.workers} workers  {rates[name][-1]:8.1f} runs/s", flush=True)
        for engine in engines.values():
            engine.close()
    best = {name: max(found) for name, found in rates.items()}
    print(f"Spark / processes {best['Spark'] / best['processes']:.2f}")
    print(f"Spark / 1 process {best['Spark'] / best['1 process']:.2f}, of {max(scales):.2f} that there are")
    print(f"rows are {'the same' if len(digests) == 1 else 'DIFFERENT'}")


def scale(sweep_definition: Definition) -> float:
    """Return how many times as many runs all cores do together as one core does alone.

    Each core runs a process of its own, and the processes share nothing.
    """
    context = multiprocessing.get_context("spawn")
    with context.Pool(available_workers()) as pool:
        together = sum(pool.map(_alone, [sweep_definition] * available_workers(), chunksize=1))
    with context.Pool(1) as pool:
        return together / pool.apply(_alone, (sweep_definition,))


def _alone(sweep_definition: Definition) -> float:
    """Return the runs a second of this process."""
    plan = sweep_definition.cells[0].plan
    start_s = time.perf_counter()
    for seed in range(SCALE_RUNS):
        run_plan(plan, seed)
    return SCALE_RUNS / (time.perf_counter() - start_s)


def driver(runs: int) -> None:
    """Print what it costs the driver to receive, write and query this many rows."""
    sweep_definition = definition(TINY, runs)
    path = Path(tempfile.mkdtemp())
    try:
        engine = ProcessEngine(sweep_definition.cells)
        rate = measured(sweep_definition, engine, path / "sweep")
        engine.close()
        peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        start_s = time.perf_counter()
        report_of(duck_sql(path / "sweep"), sweep_definition, {})
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
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="?", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--rows", nargs="+", type=int, default=[])
    parser.add_argument("--driver", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.driver:
        driver(arguments.driver)
        return
    if not arguments.rows:
        throughput(arguments.runs, arguments.rounds)
    for rows in arguments.rows:  # a process each: memory only grows
        subprocess.run([sys.executable, "-m", "benchmarks.sweep", "--driver", str(rows)], check=True)  # noqa: S603 - this very file


if __name__ == "__main__":
    main()

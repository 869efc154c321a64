"""What a sweep costs on a standalone cluster of Spark that keeps its rows in an object store.

``python -m benchmarks.standalone_sweep [RUNS] [--campaign NAME] [--rounds N]`` starts a master, a
worker for each core and an S3 server on this machine. It sweeps with the pool and with the cluster
into the object store, and compares how fast they are. Then it kills a Python worker, a worker of
Spark and the driver of another sweep (`KILLS`), resumes that sweep, and compares its rows with
those of the pool. The start of processes is not part of the times.
The last line is the verdict, and the benchmark exits with 1 if rows differ or are there twice.
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from benchmarks.sweep import SMALL, SweepRate, definition, measured, rows_of
from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.run.workers.available_workers import available_workers
from harrow.campaigns.storage.location import Location, location
from harrow.campaigns.sweep.process_engine import ProcessEngine
from harrow.campaigns.sweep.spark_engine import SparkEngine
from harrow.campaigns.sweep.spark_session import spark_address, start_session, stop_session
from harrow.campaigns.sweep.sweep_folder import SweepFolder, SweepFolderError, read_definition, read_state
from tests.s3_server import BUCKET, s3_server
from tests.spark.standalone_cluster import ENVIRONMENT, StandaloneCluster, standalone_cluster
from tests.spark.sweep_processes import start, wait_for

KILLS: Final = (0.1, 0.3, 0.5)
"""Parts of the runs after which a Python worker, a worker of Spark and the driver are killed."""
_PATIENCE_S: Final = 24 * 3_600
_ROWS: Final = 10_000


@dataclass(frozen=True)
class KilledProcess:
    """What was killed, and how many rows there were by then."""

    name: str
    rows: int


def rows_written(place: Location) -> int:
    """Return how many runs have a row. A sweep that merges files at the moment counts as none."""
    try:
        folder = SweepFolder(place, read_definition(place))
        folder.load()
    except SweepFolderError:
        return 0
    return sum(part.rows for part in folder.parts())


def doubled(rows: pa.Table) -> int:
    """Return how many rows repeat another one."""
    keys = zip(rows["cell"].to_pylist(), rows["seed"].to_pylist(), strict=True)
    return sum(count - 1 for count in Counter(keys).values())


def sweep_with_kills(
    cluster: StandaloneCluster, folder: Path, words: Sequence[str], place: Location, runs: int
) -> list[KilledProcess]:
    """Sweep on a cluster, kill what `KILLS` says, and resume."""
    kills: list[KilledProcess] = []
    command = (*words, "--out", str(place), "--engine", "spark", "--master", cluster.url)
    with ExitStack() as processes:
        driver = start(processes, folder, *command, **ENVIRONMENT)

        def kill_at(part: float, name: str, kill: Callable[[], object]) -> None:
            wait_for(lambda: rows_written(place) >= part * runs, driver)
            wait_for(lambda: kill() is not False, driver)
            kills.append(KilledProcess(name, rows_written(place)))

        kill_at(KILLS[0], "a Python worker", cluster.kill_python)
        kill_at(KILLS[1], "a worker of Spark", cluster.kill_worker)
        cluster.add_worker()
        kill_at(KILLS[2], "the driver", driver.kill)
        driver.communicate()
        if read_state(place).get("complete"):
            raise SystemExit(f"{runs} runs are too few: the sweep ended before its driver was killed")
        again = start(processes, folder, *command, "--resume", **ENVIRONMENT)
        _, stderr = again.communicate(timeout=_PATIENCE_S)
        assert again.returncode in (0, 1), stderr
    return kills


def compare(text: str, runs: int, rounds: int, cluster: StandaloneCluster) -> Location:
    """Print how fast the pool and the cluster sweep in each round. Return a sweep of the pool."""
    sweep_definition = definition(text, runs)
    rates: dict[str, list[SweepRate]] = {"pool": [], "Spark": []}
    for number in range(rounds):
        for name, found in rates.items():
            with ExitStack() as opened:
                engine: ProcessEngine | SparkEngine = ProcessEngine(sweep_definition.cells)
                if name == "Spark":
                    session = start_session(spark_address(cluster.url), log=Path(os.devnull))
                    opened.callback(stop_session, session)
                    engine = SparkEngine(session, sweep_definition.cells)
                opened.callback(engine.close)
                rate = measured(sweep_definition, engine, place_of(f"{name}-{number}"))
            found.append(rate)
            driver_s = rate.driver_cpu_s / runs * _ROWS
            print(
                f"round {number}: {name:<6} {engine.workers} workers  {rate.runs_per_s:8.1f} runs/s"
                f"  {rate.runs_per_s / engine.workers:8.1f} runs/s and worker"
                f"  {rate.runs_per_cpu_s:8.1f} runs per CPU second"
                f"  {driver_s:.3f} s of the driver's CPU per {_ROWS} rows",
                flush=True,
            )
        assert rows_of(place_of(f"Spark-{number}")).equals(rows_of(place_of("pool-0"))), "other rows"
    best = {name: max(rate.runs_per_s for rate in found) for name, found in rates.items()}
    per_cpu = {name: max(rate.runs_per_cpu_s for rate in found) for name, found in rates.items()}
    print(f"Spark / pool {best['Spark'] / best['pool']:.2f}, by CPU {per_cpu['Spark'] / per_cpu['pool']:.2f}")
    return place_of("pool-0")


def place_of(name: str) -> Location:
    return location(f"s3://{BUCKET}/{name}")


def main() -> int:
    """Run the benchmark, and print its figures and the verdict."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="?", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--campaign")
    arguments = parser.parse_args()
    runs, campaign = arguments.runs, arguments.campaign
    text = resolve(campaign)[0].read_text(encoding="utf-8") if campaign else SMALL
    folder = Path(tempfile.mkdtemp())
    try:
        (folder / "campaign.yaml").write_text(text, encoding="utf-8")
        with s3_server() as variables, standalone_cluster(available_workers()) as cluster:
            os.environ.update({**variables, **ENVIRONMENT})
            expected = rows_of(compare(text, runs, arguments.rounds, cluster))
            words = ("campaign.yaml", "--variant", "base", "--seeds", f"0..{runs}")
            kills = sweep_with_kills(cluster, folder, words, place_of("killed"), runs)
            rows = rows_of(place_of("killed"))
    finally:
        shutil.rmtree(folder)
    for kill in kills:
        print(f"killed {kill.name} when {kill.rows} of {runs} rows were written")
    is_same, repeated = rows.equals(expected), doubled(rows)
    same = "the same rows as the pool" if is_same else "OTHER ROWS THAN THE POOL"
    print(f"{len(rows)} rows after --resume, {repeated} doubled: {same}")
    return 0 if is_same and not repeated else 1


if __name__ == "__main__":
    sys.exit(main())

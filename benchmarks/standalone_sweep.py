"""What a sweep costs on a standalone cluster of Spark that keeps its rows in an object store.

``python -m benchmarks.standalone_sweep [RUNS] [--campaign NAME] [--rounds N]`` starts a master, a
worker for each core but one, and an S3 server on this machine. It sweeps with the pool and with the
cluster into the object store, and compares how fast they are.

On a cluster, the driver, the master and the storage run on other machines than the executors. So
here, the workers have cores of their own, as the pool's processes have in their rounds, and
everything else shares the remaining core. The rate of a core is the number of runs a second on
these cores; other work on the machine lowers it. So the benchmark also divides the runs by the
processor time of the processes on these cores: on Spark, Java and Python. The times of the driver
and of the object store are stated beside it. The start of processes is not part of the times.

Then the benchmark adds a worker, kills a Python worker, a worker of Spark and the driver of another
sweep (`KILLS`), resumes that sweep, and compares its rows with those of the pool.
The last line is the verdict, and the benchmark exits with 1 if rows differ or are there twice.
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from benchmarks.sweep import SMALL, SweepRate, definition, measured, rows_of, start_workers
from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.storage.location import Location, location
from harrow.campaigns.sweep.process_engine import ProcessEngine
from harrow.campaigns.sweep.spark_engine import SparkEngine
from harrow.campaigns.sweep.spark_session import spark_address, start_session, stop_session
from harrow.campaigns.sweep.sweep_folder import SweepFolder, SweepFolderError, read_definition, read_state
from harrow.compilation import compilation
from tests.s3_server import BUCKET, s3_server
from tests.spark.standalone_cluster import ENVIRONMENT, StandaloneCluster, standalone_cluster
from tests.spark.sweep_processes import descendants_of, start, wait_for

KILLS: Final = (0.1, 0.3, 0.5)
"""Parts of the runs after which a Python worker, a worker of Spark and the driver are killed."""
_PATIENCE_S: Final = 24 * 3_600
_ROWS: Final = 10_000
_WORKERS: Final = "workers"
_DRIVER: Final = "driver"
_STORE: Final = "object store"
"""The kinds of processes. Java's processes count with the machine that they would run on."""


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


class Cores:
    """The cores of workers, and those of everything else."""

    def __init__(self) -> None:
        self.others, *workers = ({core} for core in sorted(os.sched_getaffinity(0)))
        if not workers:
            raise SystemExit("this benchmark needs two cores")
        self.workers: set[int] = set().union(*workers)

    @contextmanager
    def used(self, cores: set[int]) -> Iterator[None]:
        """Let this thread, and the processes and threads that it starts, run on some cores only."""
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cores)
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)


def compare(text: str, runs: int, rounds: int, cluster: StandaloneCluster, cores: Cores) -> Location:
    """Print how fast the pool and the cluster sweep in each round. Return a sweep of the pool."""
    sweep_definition = definition(text, runs)
    store = [pid for pid, command in descendants_of(os.getpid()).items() if "moto" in command]
    rates: dict[str, list[SweepRate]] = {"pool": [], "Spark": []}

    def kind_of(pid: int) -> str:
        if pid in store:
            return _STORE
        return _WORKERS if os.sched_getaffinity(pid) == cores.workers else _DRIVER

    for number in range(rounds):
        for name, found in rates.items():
            with ExitStack() as opened, cores.used(cores.others):
                engine: ProcessEngine | SparkEngine
                engine = ProcessEngine(sweep_definition.cells, len(cores.workers))
                if name == "Spark":
                    session = start_session(spark_address(cluster.url), log=Path(os.devnull))
                    opened.callback(stop_session, session)
                    engine = SparkEngine(session, sweep_definition.cells)
                    assert engine.core == compilation()[0], engine.core
                opened.callback(engine.close)
                with cores.used(cores.workers):
                    start_workers(sweep_definition, engine)
                rate = measured(sweep_definition, engine, place_of(f"{name}-{number}"), kind_of)
            found.append(rate)
            scale = _ROWS / runs
            print(
                f"round {number}: {name:<6}{rate.runs_per_s / len(cores.workers):8.1f} runs/s and core;"
                f" CPU s per {_ROWS} runs: {rate.cpu_s[_WORKERS] * scale:.1f} on these cores,"
                f" {rate.cpu_s[_DRIVER] * scale:.1f} of the driver (Python {rate.driver_cpu_s * scale:.1f}),"
                f" {rate.cpu_s[_STORE] * scale:.1f} of the object store",
                flush=True,
            )
        assert rows_of(place_of(f"Spark-{number}")).equals(rows_of(place_of("pool-0"))), "other rows"
    best = {name: max(rate.runs_per_s for rate in found) for name, found in rates.items()}
    least_s = {name: min(rate.cpu_s[_WORKERS] for rate in found) for name, found in rates.items()}
    print(
        f"Spark / pool {best['Spark'] / best['pool']:.2f} for each core,"
        f" {least_s['pool'] / least_s['Spark']:.2f} for each CPU second on these cores; {compilation()[0]}"
    )
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
        cores = Cores()
        with ExitStack() as opened:
            with cores.used(cores.others):
                os.environ.update({**opened.enter_context(s3_server()), **ENVIRONMENT})
                cluster = opened.enter_context(standalone_cluster(workers=0))
            with cores.used(cores.workers):
                for _ in cores.workers:
                    cluster.add_worker()
            expected = rows_of(compare(text, runs, arguments.rounds, cluster, cores))
            with cores.used(cores.workers):
                cluster.add_worker()
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

"""A sweep on a standalone cluster into an object store survives the loss of any process."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.standalone_sweep import doubled, sweep_with_kills
from benchmarks.sweep import rows_of
from harrow.campaigns.storage.location import location
from tests.s3_server import BUCKET, s3_server
from tests.spark.standalone_cluster import standalone_cluster
from tests.spark.sweep_processes import SMALL, sweep

RUNS = 96
GRID = ("--seeds", "0..4", "--vary", "acks=1,all", "--vary", "linger.ms=0,1,2,3,4,5,6,7,8,9,10,11")


def test_killed_workers_and_a_killed_driver_cost_no_row_and_double_none(
    processes: ExitStack, linux: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "small.yaml").write_text(SMALL.replace("duration: 5s", "duration: 60s"), encoding="utf-8")
    sweep(processes, tmp_path, "local", *GRID, "--engine", "process")
    with s3_server() as variables, standalone_cluster(2) as cluster:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        place = location(f"s3://{BUCKET}/sweep")
        sweep_with_kills(cluster, tmp_path, ("small.yaml", *GRID), place, RUNS)
        rows = rows_of(place)
    assert (len(rows), doubled(rows)) == (RUNS, 0)
    assert rows.equals(rows_of(tmp_path / "local"))

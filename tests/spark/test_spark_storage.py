"""Executors write the rows of a sweep into an object store, and the driver only counts them."""

from contextlib import ExitStack
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from harrow.campaigns.storage.location import location
from tests.s3_server import BUCKET, s3_server
from tests.spark.sweep_processes import CLUSTER, SMALL, sweep
from tests.spark.test_spark_sweeps import GRID


def test_executors_write_the_rows_of_local_processes_into_an_object_store(
    processes: ExitStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executors of a cluster inherit neither the driver's variables nor its working folder."""
    (tmp_path / "small.yaml").write_text(SMALL, encoding="utf-8")
    uri = f"s3a://{BUCKET}/sweep"
    sweep(processes, tmp_path, "local", *GRID, "--engine", "process")
    with s3_server() as variables:
        sweep(processes, tmp_path, uri, *GRID, "--engine", "spark", "--master", CLUSTER, **variables)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        system, top = location(uri).in_arrow()
        stored = ds.dataset(f"{top}/runs", filesystem=system).to_table().drop_columns("wall_us")
    expected = ds.dataset(tmp_path / "local" / "runs").to_table().drop_columns("wall_us")
    order = [("cell", "ascending"), ("seed", "ascending")]
    assert stored.sort_by(order).equals(expected.sort_by(order))
    assert len(stored) == 80

"""What a Python worker of Spark does besides running seeds."""

import gc
import pickle
from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.sweep.chunk import Task
from harrow.campaigns.sweep.definition import define
from harrow.campaigns.sweep.spark_engine import _on_executor
from harrow.campaigns.sweep.task_result import perform_nth

TINY = "name: tiny\ncluster: {brokers: 1, topics: [{name: t}]}\n"


@pytest.fixture(autouse=True)
def _unfreeze_afterwards() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_a_worker_keeps_its_modules_from_the_garbage_collector() -> None:
    cells = define([(load_text(TINY, "tiny.yaml"), "tiny.yaml")], range(2)).cells
    work = partial(perform_nth, dict(enumerate(cells)), [Task(cell=0, seeds=range(2))], None)
    (results,) = _on_executor(work)([pa.RecordBatch.from_pydict({"id": [0]})])
    (result,) = map(pickle.loads, results.column(1).to_pylist())
    assert result.tally.runs.total() == 2
    # PySpark collects garbage after each task, and cannot be told not to.
    assert len(gc.get_objects()) < gc.get_freeze_count()

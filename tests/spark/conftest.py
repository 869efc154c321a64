"""What the tests on a real Spark need: Java. Without it they are skipped, unless that is not allowed."""

import os
from pathlib import Path

import pytest

from harrow.campaigns.sweep.spark_availability import what_is_missing

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have one process of a parallel run start Spark, and no other; skip everything where it cannot be had.

    They come first: while Java starts and waits, the other processes have all the rest to do. And xdist reads
    the names of groups when this is called, so it has to be called before.
    """
    missing = what_is_missing()
    required = os.environ.get("HARROW_REQUIRE_SPARK") == "1"
    for item in items:
        if HERE not in item.path.parents:
            continue
        item.add_marker(pytest.mark.xdist_group("spark"))
        if missing is not None and not required:
            item.add_marker(pytest.mark.skip(reason=f"no Spark here: {missing}"))
    items.sort(key=lambda item: HERE not in item.path.parents)


@pytest.fixture(autouse=True, scope="session")
def spark_is_there() -> None:
    """Fail where Spark is required and is not there."""
    missing = what_is_missing()
    assert missing is None, f"HARROW_REQUIRE_SPARK=1, but {missing}"

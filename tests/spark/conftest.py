"""Tests on a real Spark need Java. Without it they are skipped, or fail if Spark is required."""

import os
from pathlib import Path

import pytest

from harrow.campaigns.sweep.spark_availability import why_spark_cannot_start

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run these tests in one process of a parallel run, or skip them without Spark.

    They come first, because other processes can work while Java starts. xdist reads the names of
    groups in the same hook, so this function must run before that of xdist.
    """
    missing = why_spark_cannot_start()
    required = os.environ.get("HARROW_REQUIRE_SPARK") == "1"
    for item in items:
        if HERE not in item.path.parents:
            continue
        item.add_marker(pytest.mark.xdist_group("spark"))
        if missing is not None and not required:
            item.add_marker(pytest.mark.skip(reason=f"no Spark here: {missing}"))
    items.sort(key=lambda item: HERE not in item.path.parents)


@pytest.fixture(autouse=True, scope="session")
def require_spark() -> None:
    """Fail if Spark is required but missing."""
    missing = why_spark_cannot_start()
    assert missing is None, f"HARROW_REQUIRE_SPARK=1, but {missing}"


@pytest.fixture
def linux() -> None:
    """Skip a test without /proc.

    A mark would split the report of tests without Java into two lines.
    """
    if not Path("/proc/self/stat").exists():
        pytest.skip("looks for processes in /proc")

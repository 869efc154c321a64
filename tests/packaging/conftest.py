"""Builds each distribution once. All tests that need one run in one process of a parallel run."""

from pathlib import Path

import pytest

from tests.packaging.distributions import VirtualEnvironment, build
from tests.plain_environment import ROOT

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("packaging"))


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel") / "dist")


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist") / "dist")


@pytest.fixture
def environment(tmp_path: Path) -> VirtualEnvironment:
    return VirtualEnvironment(tmp_path / "environment")

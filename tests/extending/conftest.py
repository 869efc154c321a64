"""Registers the examples of docs/how-to/extending*.md for a test, as the pages describe."""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from harrow.cluster_model.registry import Registry
from tests.cli.conftest import ROOT
from tests.cli.docs_pages import read_page

FILES = {
    name: text
    for page in sorted((ROOT / "docs" / "how-to").glob("extending*.md"))
    for name, text in read_page(page, ROOT).files.items()
}

Register = Callable[[Registry[Any, Any], str, Any], None]


@pytest.fixture
def example(tmp_path: Path) -> Iterator[Callable[[str], ModuleType]]:
    """Return a function that imports a file of the pages."""
    names: list[str] = []

    def load(name: str) -> ModuleType:
        path = tmp_path / Path(name).name
        path.write_text(FILES[name], encoding="utf-8")
        names.append(f"extending_{path.stem}")
        spec = importlib.util.spec_from_file_location(names[-1], path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[names[-1]] = module
        spec.loader.exec_module(module)
        return module

    yield load
    for name in names:
        del sys.modules[name]


@pytest.fixture
def register() -> Iterator[Register]:
    """Return a function that registers an extension until the end of the test."""
    registered: list[tuple[Registry[Any, Any], str]] = []

    def add(registry: Registry[Any, Any], name: str, value: Any) -> None:
        assert name not in registry
        registry[name] = value
        registered.append((registry, name))

    yield add
    for registry, name in registered:
        del registry[name]

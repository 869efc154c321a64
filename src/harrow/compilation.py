"""Whether the core runs compiled: all compiled modules are imported from one library.

Compiled modules depend on each other's layout, so all of them are used or none. None is used after
a source has changed, or with HARROW_PURE=1.
"""

import os
import sys
from collections.abc import Sequence
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import source_hash, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder
else:
    # The classes below have the methods that the import system needs. To import `importlib.abc`
    # would load archives, temporary files and URLs at each start of harrow, for its resources.
    Loader = MetaPathFinder = object

NAME: Final = "harrow__mypyc"
HOME: Final = Path(__file__).parent
LIBRARY: Final = HOME / f"{NAME}{EXTENSION_SUFFIXES[0]}"
SOURCES: Final = LIBRARY.with_name(f"{LIBRARY.name}.sources")
"""The sources of the library: a line per file with its digest and, if compiled, its module."""

COMPILED: Final = "compiled"
PURE: Final = "pure Python"
STALE: Final = "pure Python: sources have changed since they were compiled"


def source_line(home: Path, file: str, module: str) -> str:
    """Return the line of a source in `SOURCES`."""
    return f"{source_hash((home / file).read_bytes()).hex()} {file} {module}".rstrip()


@cache
def compilation() -> tuple[str, frozenset[str]]:
    """Return how the core runs, and the modules that are compiled."""
    if os.environ.get("HARROW_PURE") or not SOURCES.exists():
        return PURE, frozenset()
    lines = SOURCES.read_text(encoding="utf-8").splitlines()
    sources = [(*line.split(" "), "")[1:3] for line in lines]
    try:
        now = [source_line(HOME, file, module) for file, module in sources]
    except OSError:
        now = []
    if now != lines:
        return STALE, frozenset()
    return COMPILED, frozenset(module for _, module in sources if module)


def mangled(module: str) -> str:
    """Return the name of a module in the library."""
    return module.replace(".", "___")


class _Library(Loader):
    """Makes modules from the library, which has a function ``PyInit_...`` for each."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        name = mangled(spec.name)
        loader = ExtensionFileLoader(name, str(LIBRARY))
        module = loader.create_module(ModuleSpec(name, loader, origin=str(LIBRARY)))
        sys.modules.pop(name, None)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: making it has run it."""


class Finder(MetaPathFinder):
    """Finds the compiled modules; all others are found as ever."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname == NAME:
            return spec_from_file_location(NAME, LIBRARY)
        if path is None or not fullname.startswith("harrow.") or fullname not in compilation()[1]:
            return None
        source = f"{next(iter(path))}/{fullname.rpartition('.')[2]}.py"
        return spec_from_file_location(fullname, source, loader=_Library())

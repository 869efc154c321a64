"""Whether the core runs compiled: all compiled modules are imported from one library.

Compiled modules depend on each other's layout, so all of them are used or none. None is used after
a source has changed, or with HARROW_PURE=1.

On Spark's executors harrow is in an archive, from which no library can be loaded. There the library
is on Python's path, if it is for that Python and platform.
"""

import os
import sys
from collections.abc import Sequence
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec, PathFinder
from importlib.util import source_hash, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

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
UNLOADABLE: Final = "pure Python: the compiled library does not load"

_loader: Any = __spec__.loader
"""Reads files beside this one, even in an archive."""
_FOLDER: Final = os.path.dirname(__file__)  # noqa: PTH120 - a `Path` would turn ./a.zip into a.zip
"""`HOME` as Python's path has it, because only by that name an archive has its files."""


def source_line(home: Path | str, file: str, module: str) -> str:
    """Return the line of a source in `SOURCES`."""
    return f"{source_hash(_loader.get_data(f'{home}/{file}')).hex()} {file} {module}".rstrip()


@cache
def source_lines() -> list[str]:
    """Return the lines of `SOURCES`; none if nothing was compiled for this Python."""
    try:
        return str(_loader.get_data(f"{_FOLDER}/{SOURCES.name}"), encoding="utf-8").splitlines()
    except OSError:
        return []


@cache
def compilation() -> tuple[str, frozenset[str]]:
    """Return how the core runs, and the modules that are compiled."""
    lines = source_lines()
    if os.environ.get("HARROW_PURE") or not lines:
        return PURE, frozenset()
    sources = [(*line.split(" "), "")[1:3] for line in lines]
    try:
        now = [source_line(_FOLDER, file, module) for file, module in sources]
    except OSError:
        now = []
    if now != lines:
        return STALE, frozenset()
    if not (LIBRARY.exists() or _is_on_path()):
        return UNLOADABLE, frozenset()
    return COMPILED, frozenset(module for _, module in sources if module)


def _is_on_path() -> bool:
    """Return whether the library is on Python's path and loads: it may need a newer libc."""
    try:
        return __import__(NAME) is not None
    except ImportError:
        return False


@cache
def _library() -> str:
    """Return the path of the library; empty if there is none."""
    spec = None if LIBRARY.exists() else PathFinder.find_spec(NAME)
    return str(LIBRARY) if LIBRARY.exists() else "" if spec is None else str(spec.origin)


def mangled(module: str) -> str:
    """Return the name of a module in the library."""
    return module.replace(".", "___")


class _Library(Loader):
    """Makes modules from the library, which has a function ``PyInit_...`` for each."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        name = mangled(spec.name)
        loader = ExtensionFileLoader(name, _library())
        module = loader.create_module(ModuleSpec(name, loader, origin=_library()))
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
            return spec_from_file_location(NAME, _library()) if _library() else None
        if path is None or not fullname.startswith("harrow.") or fullname not in compilation()[1]:
            return None
        source = f"{next(iter(path))}/{fullname.rpartition('.')[2]}.py"
        return spec_from_file_location(fullname, source, loader=_Library())

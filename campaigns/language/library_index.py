"""Finds campaign files by their path, by their folder, or by the name under which they ship.

Two folders ship: the library, and the fault models of `harrow assess`.
"""

import atexit
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harrow.campaigns.language.problem import CampaignError, Problem
from harrow.campaigns.language.spelling import quoted, suggestion

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_HOME: Final = Path(__file__).parents[1]
_SUFFIXES: Final = (".yaml", ".yml")


def library_names() -> list[str]:
    """Return the sorted names of the campaigns in the library."""
    return sorted(_library())


def fault_model_names() -> list[str]:
    """Return the sorted names of the fault models that ship."""
    return sorted(_fault_models())


def shipped_names() -> list[str]:
    """Return the sorted names of all campaigns that ship."""
    return sorted(_shipped())


def resolve(argument: str) -> list[Path]:
    """Return the sorted campaign files that a path, a folder or a shipped name refers to.

    Raises:
        CampaignError: There are no such files.

    """
    if not argument:
        return _fail(argument, "the name of a campaign is empty")
    path = Path(argument)
    shipped = _shipped().get(argument)
    try:
        if path.is_dir():
            campaigns = sorted(file for file in path.iterdir() if _is_campaign(file))
            if campaigns or shipped is None:
                return campaigns or _fail(argument, "the folder has no campaign files (*.yaml)")
        else:
            path.stat()
            return [path]
    except (FileNotFoundError, NotADirectoryError, ValueError):
        pass  # A `ValueError` says that no path has such characters.
    except OSError as error:
        return _fail(argument, f"cannot be read: {error.strerror or error}")
    if shipped is not None:
        return [shipped]
    if argument.endswith(_SUFFIXES) or len(path.parts) > 1:
        return _fail(argument, "no such file or folder")
    hint = suggestion(argument, shipped_names())
    return _fail(argument, f"no file, folder or campaign that ships is called {quoted(argument)}{hint}")


def _fail(argument: str, message: str) -> list[Path]:
    raise CampaignError([Problem(argument, 0, 0, message)])


def _is_campaign(path: Path) -> bool:
    return path.suffix in _SUFFIXES and not path.name.startswith(".") and path.is_file()


def _shipped() -> dict[str, Path]:
    return {**_library(), **_fault_models()}


def _library() -> dict[str, Path]:
    return _campaigns_in("library")


def _fault_models() -> dict[str, Path]:
    return _campaigns_in("fault_models")


@cache
def _campaigns_in(name: str) -> dict[str, Path]:
    """Return the campaigns of a folder that ships, by name.

    If harrow runs from a zip file, the folder is unpacked until the process exits.
    """
    folder = _HOME / name
    if not folder.is_dir():
        from importlib.resources import files  # noqa: PLC0415 - only archives need it

        packed = files("harrow.campaigns") / name
        if not packed.is_dir():
            return {}
        folder = _unpacked(packed)
    return {path.stem: path for path in folder.iterdir() if _is_campaign(path)}


def _unpacked(folder: "Traversable") -> Path:
    from harrow.campaigns.temporary_folder import temporary_folder  # noqa: PLC0415 - only archives need it

    until_exit = ExitStack()
    atexit.register(until_exit.close)
    unpacked = until_exit.enter_context(temporary_folder())
    _copy(folder, unpacked)
    return unpacked


def _copy(folder: "Traversable", into: Path) -> None:
    for item in folder.iterdir():
        if item.is_dir():
            (into / item.name).mkdir()
            _copy(item, into / item.name)
        else:
            (into / item.name).write_bytes(item.read_bytes())

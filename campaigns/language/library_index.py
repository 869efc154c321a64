"""Finds campaign files by their path, by their folder, or by their name in the library."""

import atexit
from contextlib import ExitStack
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from harrow.campaigns.language.problem import CampaignError, Problem
from harrow.campaigns.language.spelling import quoted, suggestion

_SUFFIXES: Final = (".yaml", ".yml")


def library_names() -> list[str]:
    """Return the sorted names of the campaigns in the library."""
    return sorted(_library())


def resolve(argument: str) -> list[Path]:
    """Return the sorted campaign files that a path, a folder or a library name refers to.

    Raises:
        CampaignError: There are no such files.

    """
    if not argument:
        return _fail(argument, "the name of a campaign is empty")
    path = Path(argument)
    in_library = _library().get(argument)
    try:
        if path.is_dir():
            campaigns = sorted(file for file in path.iterdir() if _is_campaign(file))
            if campaigns or in_library is None:
                return campaigns or _fail(argument, "the folder has no campaign files (*.yaml)")
        elif path.exists():
            return [path]
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return _fail(argument, f"cannot be read: {reason}")
    if in_library is not None:
        return [in_library]
    if argument.endswith(_SUFFIXES) or len(path.parts) > 1:
        return _fail(argument, "no such file or folder")
    hint = suggestion(argument, library_names())
    return _fail(argument, f"no file, folder or campaign of the library is called {quoted(argument)}{hint}")


def _fail(argument: str, message: str) -> list[Path]:
    raise CampaignError([Problem(argument, 0, 0, message)])


def _is_campaign(path: Path) -> bool:
    return path.suffix in _SUFFIXES and not path.name.startswith(".") and path.is_file()


@cache
def _library() -> dict[str, Path]:
    """Return the campaigns of the library by name.

    If harrow runs from a zip file, the library is unpacked until the process exits.
    """
    folder = files("harrow.campaigns") / "library"
    if not folder.is_dir():
        return {}
    root = folder if isinstance(folder, Path) else _unpacked(folder)
    return {path.stem: path for path in root.iterdir() if _is_campaign(path)}


def _unpacked(folder: Traversable) -> Path:
    from harrow.campaigns.temporary_folder import temporary_folder  # noqa: PLC0415 - only archives need it

    until_exit = ExitStack()
    atexit.register(until_exit.close)
    unpacked = until_exit.enter_context(temporary_folder())
    for file in folder.iterdir():
        if file.is_file():
            (unpacked / file.name).write_bytes(file.read_bytes())
    return unpacked

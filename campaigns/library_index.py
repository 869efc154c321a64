"""Finds campaign files: by path, in a folder, or by the name of a campaign that ships."""

import atexit
from contextlib import ExitStack
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

from campaigns.problem import CampaignError, Problem
from campaigns.spelling import quoted, suggestion

_SUFFIXES: Final = (".yaml", ".yml")


def library_names() -> list[str]:
    """Return the names of the campaigns that ship, sorted."""
    return sorted(_library())


def resolve(argument: str) -> list[Path]:
    """Return the campaign files that a path, a folder or a library name stands for, sorted.

    Raises:
        CampaignError: there are none.

    """
    path = Path(argument)
    in_library = _library().get(argument)
    try:
        if path.is_dir():
            found = sorted(file for file in path.iterdir() if _is_campaign(file))
            if found or in_library is None:
                return found or _fail(argument, "the folder has no campaign files (*.yaml)")
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
    """Return the campaigns that ship, by name; out of a zip file they are unpacked until the exit."""
    folder = files("campaigns") / "library"
    if isinstance(folder, Path):
        root = folder
    else:
        stack = ExitStack()
        atexit.register(stack.close)
        root = stack.enter_context(as_file(folder))
    if not root.is_dir():
        return {}
    return {path.stem: path for path in root.iterdir() if _is_campaign(path)}

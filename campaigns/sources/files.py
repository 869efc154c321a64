"""Finds the sources that a user names: files, folders, and standard input."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from harrow.campaigns.language.cluster_file import is_text_of_cluster_file
from harrow.campaigns.language.encoding import UTF16, UTF16_MARKS
from harrow.campaigns.language.problem import CampaignError, Problem
from harrow.campaigns.sources.description import Description, Kind
from harrow.campaigns.sources.kinds import KINDS, description_of
from harrow.campaigns.sources.source_text import file_text, stream_text
from harrow.cluster_model.lazy_dataclass import dataclass

STANDARD_INPUT: Final = "-"
_STANDARD_INPUT_NAME: Final = "<stdin>"
_FILES_MAX: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What sources describe, by the name of the file, and files of folders that are no sources."""

    descriptions: Sequence[tuple[str, Description]]
    left_out: Sequence[str]


def read_sources(paths: Sequence[Path], kinds: Sequence[Kind] = KINDS) -> Sources:
    """Read files, the files in folders (not in folders below), and standard input (``-``).

    Raises:
        CampaignError: A file cannot be read, is no source, or has mistakes. Within a folder, a file
            that is no source is left out.

    """
    descriptions: list[tuple[str, Description]] = []
    left_out: list[str] = []
    problems: list[Problem] = []
    for path in paths:
        texts = dict(_texts(path))
        found = [(name, description_of(name, text, kinds)) for name, text in texts.items()]
        known = [(name, about) for name, about in found if about is not None]
        descriptions += known
        if path.is_dir() and known:
            left_out += [name for name, about in found if about is None]
        elif len(known) < len(found) or not found:
            reason = "" if path.is_dir() else _reason(next(iter(texts.values())))
            known_kinds = "; ".join(kind.name for kind in kinds)
            message = reason or f"it describes no cluster. harrow reads {known_kinds}"
            problems.append(Problem(_name(path), 0, 0, message))
    if problems:
        raise CampaignError(problems)
    return Sources(descriptions=descriptions, left_out=left_out)


def _reason(text: str) -> str:
    """Return why a text describes no cluster; empty if it is just something else."""
    # What is not UTF-8 was read as Latin-1.
    if text.startswith(tuple(mark.decode("latin-1") for mark in UTF16_MARKS)):
        return f"it is {UTF16}"
    if is_text_of_cluster_file(text):
        return "it is a cluster file: it cannot be imported, and stands alone"
    return ""


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    if str(path) == STANDARD_INPUT:
        yield _STANDARD_INPUT_NAME, stream_text(sys.stdin.buffer, _STANDARD_INPUT_NAME)
    elif path.is_dir():
        files = sorted(each for each in path.iterdir() if each.is_file())
        if len(files) > _FILES_MAX:
            raise CampaignError(
                [Problem(str(path), 0, 0, f"more than {_FILES_MAX} files: name those to import")]
            )
        yield from ((str(each), file_text(each)) for each in files)
    else:
        yield str(path), file_text(path)


def _name(path: Path) -> str:
    return _STANDARD_INPUT_NAME if str(path) == STANDARD_INPUT else str(path)

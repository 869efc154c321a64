"""Finds the sources that a user names: files, folders, and standard input."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from harrow.campaigns.language.cluster_file import is_text_of_cluster_file
from harrow.campaigns.language.encoding import UTF16, UTF16_MARKS
from harrow.campaigns.language.problem import CampaignError, Problem
from harrow.campaigns.language.spelling import listed, printable
from harrow.campaigns.sources.description import Description, Kind
from harrow.campaigns.sources.kinds import KINDS, description_of
from harrow.campaigns.sources.source_text import file_text, stream_text
from harrow.campaigns.sources.yaml_source import YamlSource
from harrow.cluster_model.lazy_dataclass import dataclass

STANDARD_INPUT: Final = "-"
_STANDARD_INPUT_NAME: Final = "<stdin>"
_YAML_SUFFIXES: Final = (".yaml", ".yml")
_SUFFIXES: Final = (".properties", *_YAML_SUFFIXES, ".txt")
"""The endings of the files that are read in a folder, which may have anything else as well."""
_CONTROL_CHARACTER: Final = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_FILES_MAX: Final = 1_000
_BYTES_MAX: Final = 16 << 20
"""How many files of a folder are read at most, and how large they may be together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What sources describe, by the name of the file.

    ``left_out`` are files of folders that are no sources. ``notes`` say which files of each folder
    were read.
    """

    descriptions: Sequence[tuple[str, Description]]
    left_out: Sequence[str]
    notes: Sequence[str] = ()


def read_sources(paths: Sequence[Path], kinds: Sequence[Kind] = KINDS) -> Sources:
    """Read files, the files in folders (not in folders below), and standard input (``-``).

    In a folder only files with the endings of sources are read.

    Raises:
        CampaignError: A file cannot be read, is no source, or has mistakes. Within a folder, a file
            that is no source is left out.

    """
    descriptions: list[tuple[str, Description]] = []
    left_out: list[str] = []
    notes: list[str] = []
    problems: list[Problem] = []
    for path in paths:
        texts = dict(_texts(path))
        found = [(name, description_of(name, text, kinds)) for name, text in texts.items()]
        known = [(name, about) for name, about in found if about is not None]
        descriptions += known
        if path.is_dir() and known:
            others = [name for name, about in found if about is None]
            left_out += others
            notes.append(_folder_note(path, [name for name, _ in known], others))
        elif len(known) < len(found) or not found:
            problems += (
                [Problem(str(path), 0, 0, _reason_of_folder(texts))]
                if path.is_dir()
                else _problems(*next(iter(texts.items())), kinds)
            )
    if problems:
        raise CampaignError(problems)
    return Sources(descriptions=descriptions, left_out=left_out, notes=notes)


def _folder_note(folder: Path, known: Sequence[str], others: Sequence[str]) -> str:
    read, left = (listed([Path(name).name for name in names]) for names in (known, others))
    note = f"read in {printable(str(folder))}: {read}"
    return f"{note}; no cluster in {left}" if others else note


def _reason_of_folder(texts: Mapping[str, str]) -> str:
    """Return why the files in a folder describe no cluster."""
    endings = f"{', '.join(_SUFFIXES[:-1])} and {_SUFFIXES[-1]}"
    if not texts:
        return f"the folder has no files that end in {endings}"
    alone = [Path(name).name for name, text in texts.items() if is_text_of_cluster_file(text)]
    if alone:
        return f"a cluster file stands alone, so name the file, not its folder: {listed(alone)}"
    return f"no file in the folder describes a cluster; harrow reads those that end in {endings}"


def _problems(name: str, text: str, kinds: Sequence[Kind]) -> Sequence[Problem]:
    """Return why a file describes no cluster."""
    # What is not UTF-8 was read as Latin-1.
    if text.startswith(tuple(mark.decode("latin-1") for mark in UTF16_MARKS)):
        return [Problem(name, 0, 0, f"it is {UTF16}")]
    if is_text_of_cluster_file(text):
        message = "this is already a cluster file: there is nothing to import, and it stands alone"
        return [Problem(name, 0, 0, message)]
    if control := _CONTROL_CHARACTER.search(text):
        begin = control.start()
        line, column = text.count("\n", 0, begin) + 1, begin - text.rfind("\n", 0, begin)
        message = f"this is no text: it has the control character U+{ord(control[0]):04X}"
        return [Problem(name, line, column, message)]
    if name.endswith(_YAML_SUFFIXES):
        try:
            YamlSource(name, text)
        except CampaignError as error:
            return error.problems
    known_kinds = "; ".join(kind.name for kind in kinds)
    return [Problem(name, 0, 0, f"it describes no cluster. harrow reads {known_kinds}")]


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    if str(path) == STANDARD_INPUT:
        yield _STANDARD_INPUT_NAME, stream_text(sys.stdin.buffer, _STANDARD_INPUT_NAME)
    elif path.is_dir():
        yield from ((str(each), file_text(each)) for each in _files_in(path))
    else:
        yield str(path), file_text(path)


def _files_in(folder: Path) -> Sequence[Path]:
    """Return the files in a folder that may be sources.

    Raises:
        CampaignError: The folder cannot be read, or they are too many or too large.

    """
    try:
        named = (each for each in folder.iterdir() if each.suffix in _SUFFIXES and each.is_file())
        files = sorted(islice(named, _FILES_MAX + 1))
        size = sum(each.stat().st_size for each in files)
    except OSError as error:
        raise CampaignError(
            [Problem(str(folder), 0, 0, f"cannot be read: {error.strerror or error}")]
        ) from None
    if len(files) > _FILES_MAX or size > _BYTES_MAX:
        limit = f"{_FILES_MAX} files" if len(files) > _FILES_MAX else f"{_BYTES_MAX >> 20} MiB"
        raise CampaignError([Problem(str(folder), 0, 0, f"more than {limit}: name the files to read")])
    return files

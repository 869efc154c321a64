"""Reads the text of a source, which may be anything that a user has."""

from pathlib import Path
from typing import BinaryIO, Final

from harrow.campaigns.language.loader import read_bytes
from harrow.campaigns.language.problem import CampaignError, Problem

_MIB: Final = 1 << 20
_MAX_MIB: Final = 16
_LIMIT: Final = _MAX_MIB * _MIB + 1


def file_text(path: Path) -> str:
    """Return the text of a file, or of a pipe that a process writes to.

    Raises:
        CampaignError: It cannot be read, or is too large.

    """
    return _text(read_bytes(path, _LIMIT), str(path))


def stream_text(stream: BinaryIO, name: str) -> str:
    """Return the text of a stream, such as standard input.

    Raises:
        CampaignError: It is too large.

    """
    return _text(stream.read(_LIMIT), name)


def _text(content: bytes, name: str) -> str:
    if len(content) >= _LIMIT:
        raise CampaignError([Problem(name, 0, 0, f"larger than {_MAX_MIB} MiB")])
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        # Java reads Latin-1.
        return content.decode("latin-1")

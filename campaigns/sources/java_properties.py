r"""Reads Kafka's ``.properties`` files as ``java.util.Properties`` does.

A line ends only at ``\n``, ``\r`` or ``\r\n``. Other characters at which Python splits lines, such
as a form feed, are part of a line.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from harrow.campaigns.language.problem import CampaignError, Problem
from harrow.campaigns.language.spelling import quoted

_BLANK: Final = " \t\f"
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_KEY_AND_VALUE: Final = re.compile(rf"((?:\\.|[^\\=:{_BLANK}])*)[{_BLANK}]*[=:]?[{_BLANK}]*(.*)\Z", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})?|(.))", re.DOTALL)
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_TRIMMED: Final = " \t\n\r\f"
"""What Kafka removes from both ends of most values."""


class Property(NamedTuple):
    """A setting in a ``.properties`` file."""

    line: int
    name: str
    value: str


def properties_of(text: str, file: str) -> Iterator[Property]:
    """Yield the properties of a file.

    Raises:
        CampaignError: Java refuses an escape sequence, or the text is half a character.

    """
    for number, line in _logical_lines(text):
        match = _KEY_AND_VALUE.match(line)
        assert match is not None, "every part of the pattern may be empty"
        try:
            name, value = _unescaped(match[1]), _unescaped(match[2])
        except ValueError as error:
            raise CampaignError([Problem(file, number, 1, str(error))]) from None
        yield Property(number, name, value.strip(_TRIMMED))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with its number, joined with its continuation lines, without comments."""
    lines = iter(enumerate(_LINE_END.split(text), 1))
    for number, raw in lines:
        line = raw.lstrip(_BLANK)
        if line.startswith(("#", "!")):
            continue
        while (len(line) - len(line.rstrip("\\"))) % 2:
            line = line[:-1] + next(lines, (0, ""))[1].lstrip(_BLANK)
        if line:
            yield number, line


def _unescaped(text: str) -> str:
    plain = _ESCAPE.sub(_character, text)
    try:
        # Two escapes may be the halves of one character.
        return plain.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError(f"{quoted(text)} has half of a surrogate pair") from None


def _character(match: re.Match[str]) -> str:
    code, char = match.groups()
    if code is not None:
        return chr(int(code, 16))
    if char is None:
        raise ValueError(f"expected four hexadecimal digits after `\\u` in {quoted(match.string)}")
    return _CONTROLS.get(char, char)

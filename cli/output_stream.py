"""The last thing that output passes when it goes to a pipe, a file or a log."""

import os
import re
from collections.abc import Iterable
from typing import Any, Final, TextIO, cast

from harrow.campaigns.language.spelling import LOG_COMMAND

_COMMAND: Final = re.compile(rf"^[^\S\n]*::|{LOG_COMMAND}", re.MULTILINE)
"""What CI systems obey: at the start of a line, blanks before it included, or anywhere in it."""
_MAY_BECOME_ONE: Final = re.compile(r"[^\S\n]*:?")
_ENDS_AS_ONE_BEGINS: Final = re.compile(r"##?\w{0,20}\Z")
_BEGINNING_MAX: Final = 24
_CONTROL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters, ends of lines that only some programs know, changes of direction, and what UTF-8 does not have."""
_COLOUR: Final = re.compile("\x1b\\[[0-9;]*m")


class OutputStream:
    """A stream on which no line is a command to a CI system, and no character one to a terminal.

    Everything that harrow prints has been escaped where it was made. But a long line may be wrapped in front of `::`, and
    a new command may forget to escape, so this looks again. Only annotations, which are commands, pass it by (`commands`).
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._line = ""
        self._has_colours = bool(os.environ.get("FORCE_COLOR") or os.environ.get("TTY_COMPATIBLE"))

    def __getattr__(self, name: str) -> Any:
        """Return what the stream itself has."""
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        # A line may be written in parts; what has been written of it stays as it is, so the last character is escaped.
        shown = _COMMAND.sub(_without_last, self._line + text)[len(self._line) :]
        if _CONTROL.search(shown):
            shown = self._without_controls(shown)
        self._line = _kept((self._line + text).rpartition("\n")[2])
        self._stream.write(shown)
        return len(text)

    def writelines(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.write(text)

    def commands(self, texts: Iterable[str]) -> None:
        """Write lines as they are: commands to a CI system, made by `harrow.cli.ci.github`."""
        self._stream.writelines(texts)

    def _without_controls(self, text: str) -> str:
        if not self._has_colours:
            return _CONTROL.sub(_code, text)
        kept = _COLOUR.findall(text)
        parts = [_CONTROL.sub(_code, part) for part in _COLOUR.split(text)]
        return "".join(part + colour for part, colour in zip(parts, [*kept, ""], strict=True))


def _kept(line: str) -> str:
    """Return what decides whether the next text makes a command of a line."""
    if _MAY_BECOME_ONE.fullmatch(line):
        return line
    beginning = _ENDS_AS_ONE_BEGINS.search(line[-_BEGINNING_MAX:])
    return f"\0{beginning[0] if beginning else ''}"


def _without_last(command: re.Match[str]) -> str:
    return f"{command[0][:-1]}\\x{ord(command[0][-1]):x}"


def _code(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def guarded(stream: TextIO | Any) -> TextIO:
    """Return a stream on which no data is a command, unless it is a terminal, which knows no such commands."""
    return stream if stream is None or stream.isatty() else cast("TextIO", OutputStream(stream))

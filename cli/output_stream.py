"""A stream that escapes commands to CI systems and control characters in all output."""

import os
import re
from collections.abc import Iterable
from typing import Any, Final, TextIO, cast

from harrow.campaigns.language.spelling import LOG_COMMAND

_COMMAND: Final = re.compile(rf"^[^\S\n]*::|{LOG_COMMAND}", re.MULTILINE)
"""A command to a CI system: ``::`` at the start of a line, or `LOG_COMMAND` anywhere in a line."""
_COMMAND_PREFIX: Final = re.compile(r"[^\S\n]*:?")
_LOG_COMMAND_PREFIX: Final = re.compile(r"##?\w{0,20}\Z")
_PREFIX_MAX: Final = 24
_CONTROL: Final = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters, odd line separators, changes of text direction, and lone surrogates."""
_COLOUR: Final = "\x1b\\[[0-9;]*m"


class OutputStream:
    """A stream whose text contains no command to a CI system or to a terminal.

    harrow escapes text where it creates the text. But a long line may be wrapped in front of `::`,
    and a new command of harrow may forget to escape, so this class checks again. Only annotations,
    which are meant as commands, bypass the check (`commands`).
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._line = ""
        self._has_colours = bool(os.environ.get("FORCE_COLOR") or os.environ.get("TTY_COMPATIBLE"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        # The beginning of a command may already be written, so its last character is escaped.
        shown = _COMMAND.sub(_with_last_escaped, self._line + text)[len(self._line) :]
        if not shown.replace("\n", "").isprintable():
            shown = self._without_controls(shown)
        self._line = _possible_prefix((self._line + text).rpartition("\n")[2])
        self._stream.write(shown)
        return len(text)

    def writelines(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.write(text)

    def commands(self, texts: Iterable[str]) -> None:
        """Write commands to a CI system, from `harrow.cli.ci.github`, as they are."""
        self._stream.writelines(texts)

    def _without_controls(self, text: str) -> str:
        if not self._has_colours:
            return re.sub(_CONTROL, _code, text)
        colours = re.findall(_COLOUR, text)
        parts = [re.sub(_CONTROL, _code, part) for part in re.split(_COLOUR, text)]
        return "".join(part + colour for part, colour in zip(parts, [*colours, ""], strict=True))


def _possible_prefix(line: str) -> str:
    """Return the end of a line that the next text could turn into a command."""
    if _COMMAND_PREFIX.fullmatch(line):
        return line
    prefix = _LOG_COMMAND_PREFIX.search(line[-_PREFIX_MAX:])
    return f"\0{prefix[0] if prefix else ''}"


def _with_last_escaped(command: re.Match[str]) -> str:
    return f"{command[0][:-1]}\\x{ord(command[0][-1]):x}"


def _code(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def guarded(stream: TextIO | Any) -> TextIO:
    """Return a stream that escapes commands to a CI system, except for a terminal."""
    return stream if stream is None or stream.isatty() else cast("TextIO", OutputStream(stream))

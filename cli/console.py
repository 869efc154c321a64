"""The consoles for output: data goes to stdout, progress and messages go to stderr.

Rich honours NO_COLOR, FORCE_COLOR, COLUMNS and TTY_COMPATIBLE. Pipes and files get plain lines
of any length, unless COLUMNS limits their width.
"""

import errno
import os
import sys
from collections.abc import Iterable
from io import StringIO
from typing import IO, Any, Final, NoReturn, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text as RichText  # noqa: TID251 - the console of Text itself

from harrow.campaigns.language.spelling import in_message, printable
from harrow.cli.output_stream import OutputStream, guarded
from harrow.cli.text import Text

_ENDLESS: Final = 100_000
"""The width of a pipe or a file. It is so large that no line is broken or cut off."""


class _SafeConsole(Console):
    """A console on which no text can move the cursor, change colours or break a line.

    Control codes come only from styles, which this class renders. The characters of a `Text` and of
    a string are escaped.
    """

    def render_str(self, text: str, **options: Any) -> RichText:
        """Escape a string, including newlines (`harrow.cli.text.lines`), before it is measured."""
        return super().render_str(printable(text), **options)

    def on_broken_pipe(self) -> NoReturn:
        """Fail like a write to a stream. Rich would exit with 1, which means a broken promise."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield segments whose text contains no commands to a terminal."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            if control is None and not text.isprintable():
                text = "\n".join(map(printable, text.split("\n")))
                segment = Segment(text, style)  # noqa: PLW2901 - the same segment, escaped
            yield segment


def data_console(*, no_color: bool = False, file: TextIO | None = None) -> Console:
    """Return the console for data: *file*, by default stdout."""
    return _console(sys.stdout if file is None else guarded(file), no_color=no_color)


def message_console(*, no_color: bool = False) -> Console:
    """Return the console for messages: stderr."""
    return _console(sys.stderr, no_color=no_color)


def is_unicode(console: Console) -> bool:
    return "utf" in console.encoding


def can_be_redrawn(console: Console) -> bool:
    """Return whether output may redraw itself. FORCE_COLOR does not make a pipe a terminal."""
    return console.is_interactive and not console.is_dumb_terminal and console.file.isatty()


def unbroken(text: Text) -> Text:
    """Keep a text on one line. The terminal wraps the line, so that a user can copy all of it."""
    text.no_wrap = True
    return text


def show(console: Console, *renderables: RenderableType) -> None:
    """Print each renderable on its own lines, without trailing blanks in a pipe or a file."""
    if console.is_terminal:
        _print(console, renderables)
        return
    with console.capture() as captured:
        _print(console, renderables)
    console.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def _print(console: Console, renderables: Iterable[RenderableType]) -> None:
    for renderable in renderables:
        console.print(renderable, soft_wrap=isinstance(renderable, Text) and renderable.no_wrap is True)


def plain_text(*renderables: RenderableType) -> str:
    """Return the plain lines that a pipe would get, whatever the environment variables say."""
    file = StringIO()
    console = _SafeConsole(
        file=file,
        width=_ENDLESS,
        force_terminal=False,
        color_system=None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    show(console, *renderables)
    return file.getvalue()


def commands(file: IO[str], texts: Iterable[str]) -> None:
    """Write commands for a CI system, which an `OutputStream` would otherwise escape."""
    (file.commands if isinstance(file, OutputStream) else file.writelines)(texts)


def say(console: Console, message: str, *, style: str = "") -> None:
    """Print a message for the user, with the prefix ``harrow:``."""
    text = Text.assemble(("harrow: ", "bold"), (in_message(message), style))
    console.print(text, soft_wrap=True)


def _console(file: TextIO, *, no_color: bool) -> Console:
    console = _SafeConsole(file=file, no_color=no_color or None, highlight=False, markup=False, emoji=False)
    if not console.is_terminal and not os.environ.get("COLUMNS", "").isdigit():
        console.width = _ENDLESS
    return console

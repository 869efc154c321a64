"""The ``harrow`` command: its groups of commands, and what happens when something goes wrong."""

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import cache
from typing import Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from harrow.campaigns.version import version
from harrow.cli import exit_code
from harrow.cli.command_help import epilog, grouped
from harrow.cli.output_stream import guarded
from harrow.cli.requests import COMMANDS, request_of
from harrow.cli.requests.request import CommandRequest
from harrow.cli.usage_errors import with_a_way_out
from harrow.compilation import compilation

_USAGE_ERROR: Final[Any] = typer.BadParameter.__base__
"""Click's, or that of Typer's copy of Click, which has no public name."""
_BEGUN_NS: Final = time.time_ns()
_SHARED: Final = frozenset(option.name for option in fields(CommandRequest))


class RequestCommand(TyperCommand):
    """A command: what was typed becomes a request, and a session meets it."""

    def invoke(self, ctx: Any) -> NoReturn:
        """Leave with the exit code of the session."""
        request = super().invoke(ctx)
        from harrow.cli.session import exit_code_of

        try:
            code = exit_code_of(str(self.name), request)
        except (typer.BadParameter, OSError):
            raise
        except Exception as error:  # noqa: BLE001 - a bug of harrow's; of some Click would make "Aborted!" and 1
            code = _internal_error(error)
        raise typer.Exit(code)


class Commands(TyperGroup):
    """The commands. When nothing reads the output any more (``harrow ... | head``), they end without a word."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = _CommandsByName()

    def invoke(self, ctx: Any) -> Any:
        try:
            with _printable_mistakes():
                return super().invoke(ctx)
        except BrokenPipeError:
            _leave_quietly()
        except OSError as error:
            raise typer.Exit(_cannot_go_on(error)) from error

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with _printable_mistakes():
            return super().make_context(*arguments, **options)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        commands = dict(self.commands)
        # Two blanks before a name and two behind it, and one column that Click leaves free.
        width = max(map(len, commands))
        limit = formatter.width - 6 - width
        for heading, names in grouped(commands):
            with formatter.section(heading):
                formatter.write_dl(
                    [(f"{name:{width}}", commands[name].get_short_help_str(limit)) for name in names]
                )


@contextmanager
def _printable_mistakes() -> Iterator[None]:
    """Have what was typed wrong stand on one line of the message, with the nearest right word."""
    try:
        yield
    except _USAGE_ERROR as error:
        from harrow.campaigns.language.spelling import in_message

        error.message = in_message(with_a_way_out(error.message))
        raise


class _CommandsByName(Mapping[str, TyperCommand]):
    """Commands that are made when they are asked for: a command line needs one of them."""

    def __getitem__(self, name: str) -> TyperCommand:
        if name not in COMMANDS:
            raise KeyError(name)
        return _command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


@cache
def _command(name: str) -> TyperCommand:
    """Return a command: the options that most commands have come last, and examples follow its help."""
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name, cls=RequestCommand, epilog=epilog(name))(request_of(name))
    command = typer.main.get_command(alone)
    assert isinstance(command, TyperCommand), "an app of one command is that command"
    command.params.sort(key=lambda option: option.name in _SHARED)
    for argument in command.params:
        if isinstance(argument, TyperArgument):
            # `list[str]` tells a reader nothing that the name and the help do not.
            argument.display_type_rich = lambda ctx: None  # type: ignore[method-assign]  # noqa: ARG005 - it is called with the context
    return command


app = typer.Typer(
    name="harrow",
    cls=Commands,
    help="A chaos harness for Apache Kafka: break a modelled cluster on purpose and see which promises hold.",
    epilog="Exit codes: 0 as expected, 1 a promise broken or an expectation missed, 2 wrong usage or a wrong "
    "campaign file, 3 inconclusive or nothing ran, 4 internal error, 130 interrupted.",
    no_args_is_help=True,
    # Plain help: the same on a terminal, in a pipe and in a log, and quick.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"harrow {version()} ({compilation()[0]})")
        raise typer.Exit


@app.callback()
def harrow(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Declare the options of ``harrow`` itself."""


def main() -> None:
    """Run the command line and end the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows its code, not a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = guarded(sys.stdout), guarded(sys.stderr)
    sys.exit(_flushed(_exit_code()))


def _exit_code() -> int:
    """Run the command line and return its exit code, whatever exception comes out of it."""
    try:
        app(prog_name="harrow")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else exit_code.INTERNAL
    except OSError as error:
        return _cannot_go_on(error)
    except Exception as error:  # noqa: BLE001 - a bug of harrow's, whatever it is
        return _internal_error(error)
    raise AssertionError("Click ends with an exception")


def _flushed(code: int) -> int:
    """Write what is buffered for stdout, and return the exit code; another one if it cannot be written."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _leave_quietly()
    except OSError as error:
        _discard_stdout()
        return _cannot_go_on(error)
    return code


def _internal_error(error: Exception) -> int:
    """Report a bug, and return the exit code, which alone says it where stderr cannot be written."""
    from harrow.cli.internal_error import report

    with suppress(OSError):
        report(error, _BEGUN_NS)
    return exit_code.INTERNAL


def _cannot_go_on(error: OSError) -> int:
    """Say which file or stream failed and why, and return the exit code, which alone says it where stderr fails too."""
    from harrow.cli.console import message_console, say
    from harrow.cli.session import reason_of

    with suppress(OSError):
        say(message_console(), f"cannot go on: {reason_of(error)}", style="red")
    return exit_code.USAGE


def _leave_quietly() -> NoReturn:
    _discard_stdout()
    sys.exit(exit_code.BROKEN_PIPE)


def _discard_stdout() -> None:
    """Keep the interpreter, which flushes stdout when it ends, from failing there again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()

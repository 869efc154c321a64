"""The ``harrow`` command: it parses the command line, runs one command, and reports errors."""

import gc
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NoReturn, get_args, get_origin

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from harrow.campaigns.version import version
from harrow.cli import exit_code
from harrow.cli.command_help import epilog
from harrow.cli.output_stream import guarded
from harrow.cli.requests import COMMANDS, GROUPS, request_of
from harrow.cli.requests.request import CommandRequest
from harrow.compilation import compilation

_USAGE_ERROR: Final[Any] = typer.BadParameter.__base__
"""The base class in Click, or in Typer's copy of Click, where it has no public name."""
_START_NS: Final = time.time_ns()
_SHARED_OPTIONS: Final = frozenset(option.name for option in fields(CommandRequest))
_DIGITS: Final = r"[0-9]{1,18}"
_INVALID_CHOICE: Final = r"(?s)(?:Value error, )?'(?P<word>.*)' is not one of (?P<choices>'.*')\.?"
"""Typer's message for a word that is not a member of an enumeration."""


class RequestCommand(TyperCommand):
    """A command. It parses its arguments into a request, executes the request, and exits."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _defer_coercion(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> NoReturn:
        request = super().invoke(ctx)
        from harrow.cli.session import exit_code_of

        try:
            code = exit_code_of(str(self.name), request)
        except (typer.BadParameter, OSError):
            raise
        except Exception as error:  # noqa: BLE001 - a bug in harrow; Click would turn some into "Aborted!" and 1
            code = _internal_error(error)
        raise typer.Exit(code)


class Commands(TyperGroup):
    """All commands. They end silently when their output is closed (``harrow ... | head``)."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = _CommandsByName()

    def invoke(self, ctx: Any) -> Any:
        try:
            with _printable_mistakes():
                return super().invoke(ctx)
        except BrokenPipeError:
            _exit_silently()
        except OSError as error:
            raise typer.Exit(_report_failed_output(error)) from error

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with _printable_mistakes():
            return super().make_context(*arguments, **options)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _defer_coercion(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        commands = dict(self.commands)
        # A line has two blanks before and after a name, and Click leaves two columns free.
        width = max(map(len, commands))
        limit = formatter.width - 6 - width
        for heading, names in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(f"{name:{width}}", commands[name].get_short_help_str(limit)) for name in names]
                )


@contextmanager
def _printable_mistakes() -> Iterator[None]:
    """Keep the message of a usage error on one line, and suggest the nearest valid word."""
    try:
        yield
    except _USAGE_ERROR as error:
        from harrow.campaigns.language.spelling import in_message

        error.message = in_message(with_suggestion(error.message))
        raise


def with_suggestion(message: str) -> str:
    """Return Typer's message. For an invalid choice, the message suggests the nearest valid one."""
    match = re.fullmatch(_INVALID_CHOICE, message)
    if match is None:
        return message
    from harrow.campaigns.language.spelling import nearest, printable

    choices = re.findall(r"'([^']*)'", match["choices"])
    word = match["word"]
    close = nearest(word, choices)
    hint = f"did you mean `{close}`? " if close is not None else ""
    return f"there is no `{printable(word)}`; {hint}known: {', '.join(choices)}"


class _CommandsByName(Mapping[str, TyperCommand]):
    """The commands. Each is created on first use, because a command line needs only one of them."""

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
    """Return a command with its shared options last in the help, followed by examples."""
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name, cls=RequestCommand, epilog=epilog(name))(request_of(name))
    command = typer.main.get_command(alone)
    assert isinstance(command, TyperCommand), "an app of one command is that command"
    command.params.sort(key=lambda option: option.name in _SHARED_OPTIONS)
    for argument in command.params:
        if isinstance(argument, TyperArgument):
            # Do not show a type: name and help tell a reader more than `list[str]`.
            argument.display_type_rich = lambda ctx: None  # type: ignore[method-assign]  # noqa: ARG005 - Typer passes the context
    return command


class _DeferredCoercion:
    """Accepts defaults, ASCII words, plain numbers and valid choices, and leaves the rest to Typer.

    Typer checks each value with pydantic, and importing pydantic takes a tenth of the start-up
    time.
    """

    def __init__(self, parameter: Any, typer_coercion: Callable[[], Any]) -> None:
        kind = parameter.type_descriptor
        info = kind.parameter_info
        self._accepts_words = kind.annotation in (str, list[str]) and info.parser is None
        self._accepts_numbers = kind.annotation is int and info.parser is None
        self._choices = get_args(kind.annotation) if get_origin(kind.annotation) is Literal else ()
        self._min = -math.inf if info.min is None else info.min
        self._max = math.inf if info.max is None else info.max
        self._typer_coercion = typer_coercion

    def coerce(self, value: Any, *, param: Any, ctx: Any) -> Any:
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if ctx.get_parameter_source(param.name).name == "DEFAULT":
            return value
        words = [value] if isinstance(value, str) else value
        # The arguments of a process may be invalid Unicode, which pydantic reports clearly.
        if self._accepts_words and all(map(str.isascii, words)):
            return value
        if value in self._choices:
            return value
        if self._accepts_numbers and re.fullmatch(_DIGITS, value) and self._min <= int(value) <= self._max:
            return int(value)
        return self._typer_coercion().coerce(value, param=param, ctx=ctx)


def _defer_coercion(parameters: Iterable[Any]) -> None:
    for parameter in parameters:
        if "get_runtime_param" not in vars(parameter):
            parameter.get_runtime_param = partial(_DeferredCoercion, parameter, parameter.get_runtime_param)


app = typer.Typer(
    name="harrow",
    cls=Commands,
    help="A chaos harness for Apache Kafka: break a modelled cluster on purpose and see which promises hold.",
    epilog="Exit codes: 0 as expected, 1 a promise was broken or an expectation missed, 2 wrong usage or an invalid "
    "campaign file, 3 inconclusive or nothing ran, 4 internal error, 130 interrupted.",
    no_args_is_help=True,
    # Plain help is the same on a terminal, in a pipe and in a log, and it is fast.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"harrow {version()} ({compilation()[0]})")
        raise typer.Exit


def _print_spark_submit_file(wanted: bool) -> None:
    if wanted:
        typer.echo(Path(__file__).with_name("spark_submit") / "harrow_on_spark.py")
        raise typer.Exit


@app.callback()
def harrow(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    spark_submit_file: Annotated[
        bool,
        typer.Option(
            "--spark-submit-file",
            callback=_print_spark_submit_file,
            is_eager=True,
            help="Print the path of the file for spark-submit and exit.",
        ),
    ] = False,
) -> None:
    """Declare the options of ``harrow`` itself, and do nothing."""


def main() -> None:
    """Run the command line and end the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows its code instead of a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = guarded(sys.stdout), guarded(sys.stderr)
    code = _flush_stdout(_exit_code())
    # The interpreter collects garbage when it ends, although the system frees all its memory then.
    gc.freeze()
    sys.exit(code)


def _exit_code() -> int:
    try:
        app(prog_name="harrow")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else exit_code.INTERNAL
    except OSError as error:
        return _report_failed_output(error)
    except Exception as error:  # noqa: BLE001 - any bug in harrow
        return _internal_error(error)
    raise AssertionError("Click ends with an exception")


def _flush_stdout(code: int) -> int:
    """Flush stdout and return the exit code, or a different one if the flush fails."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _exit_silently()
    except OSError as error:
        _discard_stdout()
        return _report_failed_output(error)
    return code


def _internal_error(error: Exception) -> int:
    """Report a bug and return its exit code. If stderr cannot be written, the code must suffice."""
    from harrow.cli.internal_error import report

    with suppress(OSError):
        report(error, _START_NS)
    return exit_code.INTERNAL


def _report_failed_output(error: OSError) -> int:
    """Report that a file or stream failed, if stderr can be written, and return an exit code."""
    from harrow.cli.console import message_console, say
    from harrow.cli.session import reason_of

    with suppress(OSError):
        say(message_console(), f"cannot go on: {reason_of(error)}", style="red")
    return exit_code.USAGE


def _exit_silently() -> NoReturn:
    _discard_stdout()
    sys.exit(exit_code.BROKEN_PIPE)


def _discard_stdout() -> None:
    """Redirect stdout to the null device, so that the interpreter's flush at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()

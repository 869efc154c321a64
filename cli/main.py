"""The ``harrow`` command: its groups of commands, and what happens when something goes wrong."""

import os
import sys
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from campaigns.version import VERSION
from cli import (
    check,
    diff,
    exit_code,
    listing,
    new,
    regress,
    replay,
    run,
    schema,
    shrink,
    sweep,
    trace,
    validate,
)


class Commands(TyperGroup):
    """The commands. When nobody reads what one prints (``harrow ... | head``), it ends without a word."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _leave_quietly()


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
        typer.echo(f"harrow {VERSION}")
        raise typer.Exit


@app.callback()
def harrow(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and leave."
        ),
    ] = False,
) -> None:
    """Typer asks for the options of ``harrow`` itself here."""


run.register(app)
sweep.register(app)
shrink.register(app)
replay.register(app)
diff.register(app)
trace.register(app)
regress.register(app)
check.register(app)
validate.register(app)
listing.register(app)
new.register(app)
schema.register(app)


def main() -> None:
    """Run the command line and end the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows its code, not a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="harrow")
    except Exception as error:  # noqa: BLE001 - whatever nobody foresaw ends here
        from cli.internal_error import report

        report(error)
        sys.exit(exit_code.INTERNAL)
    finally:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            _leave_quietly()


def _leave_quietly() -> NoReturn:
    # The interpreter flushes stdout once more when it ends; that must not fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(exit_code.BROKEN_PIPE)


if __name__ == "__main__":
    main()

"""The ``harrow`` command: its groups of commands, and what happens when something goes wrong."""

import os
import sys
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from campaigns.version import VERSION
from cli import (
    check,
    clean,
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
from cli.command_help import epilog, grouped
from cli.usage_errors import with_a_way_out


class Commands(TyperGroup):
    """The commands. When nobody reads what one prints (``harrow ... | head``), it ends without a word."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _leave_quietly()
        except typer.BadParameter as error:
            error.message = with_a_way_out(error.message)
            raise

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, with examples below its help."""
        command = super().get_command(ctx, cmd_name)
        if command is not None and command.epilog is None:
            command.epilog = epilog(cmd_name)
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by what one wants of them."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        # Two blanks before a name and two behind it, and one column that Click leaves free.
        limit = formatter.width - 6 - max(map(len, commands))
        width = max(map(len, commands))
        for heading, names in grouped(commands):
            with formatter.section(heading):
                formatter.write_dl(
                    [(f"{name:{width}}", commands[name].get_short_help_str(limit)) for name in names]
                )


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
clean.register(app)


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

"""Shared code of all commands: the files and formats of output, and the exit codes of errors.

Each module of `harrow.cli.commands` has a function ``session``, which executes a request. It may
raise `FileError` for mistakes in files, `Refusal` for a request that cannot be met, `ImportError`
for a missing extra, `typer.BadParameter` for options that contradict each other, and `OSError`.
`exit_code_of` and `harrow.cli.main` turn these into a message and an exit code.
"""

import gc
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console

from harrow.campaigns.language.problem import FileError, Problem
from harrow.campaigns.language.spelling import in_message, printable
from harrow.campaigns.record.json_text import json_parts
from harrow.campaigns.run.collector import collect_rarely
from harrow.campaigns.storage.location import LocalLocation, Location, location
from harrow.cli import exit_code
from harrow.cli.console import commands, data_console, message_console, say, show
from harrow.cli.extras import advice_on
from harrow.cli.render.problem import show_problems
from harrow.cli.requests.request import CommandRequest
from harrow.cli.text import Text

if TYPE_CHECKING:
    from harrow.cli.ci.suite import Suite

JSON: Final = "json"
HTML: Final = "html"
JUNIT: Final = "junit"
GITHUB: Final = "github"
CI_FORMATS: Final = frozenset({JUNIT, GITHUB})
"""The values of ``--format`` for CI systems."""


class Refusal(Exception):
    """A request cannot be met. The message says why, and the lines ``below`` give details."""

    def __init__(self, message: str, *below: str, code: int = exit_code.USAGE) -> None:
        super().__init__(message)
        self.below = below
        self.code = code


def exit_code_of(command: str, request: CommandRequest) -> int:
    """Run a command's session and return its exit code. Usage errors and `OSError` pass through."""
    messages = message_console(no_color=request.no_color)
    try:
        need_two_files(request)
        session = import_module(f"harrow.cli.commands.{command}").session
        # Imported modules are never garbage, so the collector need not scan them.
        collect_rarely()
        gc.enable()
        code: int = session(request)
    except FileError as error:
        refuse_files(request, error.problems)
    except Refusal as error:
        say(messages, str(error), style="red")
        for line in error.below:
            messages.print(Text(in_message(line), "red"), soft_wrap=True)
        return error.code
    except KeyboardInterrupt:
        say(messages, "interrupted: there is no result")
        return exit_code.INTERRUPTED
    except ImportError as error:
        advice = advice_on(error)
        if advice is None:
            raise
        say(messages, advice, style="red")
    else:
        return code
    return exit_code.USAGE


def reason_of(error: OSError) -> str:
    """Return the reason why an operation on a file failed, and the name of the file."""
    return ": ".join(str(part) for part in (error.strerror or error, error.filename) if part is not None)


def unreadable(error: OSError) -> Exception:
    """Return the mistake that a file cannot be read, or the same error if it names no file."""
    if error.filename is None:
        return error
    return FileError([Problem(str(error.filename), 0, 0, f"cannot be read: {error.strerror or error}")])


def need_two_files(request: CommandRequest) -> None:
    """Refuse the same path for ``--output`` and ``--junit``: one file would replace the other."""
    output, junit = request.output, request.junit
    if output is not None and junit is not None and output.absolute() == junit.absolute():
        raise Refusal(f"nothing was run: --output and --junit both name {printable(str(junit))}")


def need_writable(place: Path | Location) -> None:
    """Refuse a folder, which need not exist yet, if results cannot be written to it."""
    folder = location(place)
    try:
        if not isinstance(folder, LocalLocation):
            trial_file = folder / f".trial-{os.getpid()}"
            trial_file.write(b"")
            trial_file.delete()
            return
        above = next(path for path in (folder.path, *folder.path.parents) if path.exists())
        trial = above / f".harrow-{os.getpid()}"
        # Permissions do not reveal a read-only file system, or one like /proc.
        trial.mkdir()
        trial.rmdir()
    except OSError as error:
        reason = error.strerror or str(error)
        raise Refusal(
            f"nothing was run: {printable(str(folder))} cannot be written: {printable(reason)}"
        ) from None


def need_file_for_page(request: CommandRequest) -> None:
    """Refuse to print an HTML page on a terminal."""
    if request.output_format == HTML and request.output is None and sys.stdout.isatty():
        raise Refusal("an HTML page is for a browser: write it to a file, as in -o page.html (or -o -)")


def write_new(path: Path, text: str) -> None:
    """Write a file, but refuse to overwrite an existing one."""
    from harrow.campaigns.storage.whole_file import whole_file

    try:
        with whole_file(path, is_new=True) as stream:
            stream.write(text)
    except FileExistsError:
        raise Refusal(f"{path} already exists; harrow does not overwrite it") from None


@contextmanager
def data(request: CommandRequest) -> Iterator[Console]:
    """Yield the console for data. The file of ``--output`` appears only when it is complete."""
    if request.output is None or str(request.output) == "-":
        yield data_console(no_color=request.no_color)
        return
    from harrow.campaigns.storage.whole_file import whole_file

    with whole_file(request.output) as stream:
        yield data_console(no_color=request.no_color, file=stream)
    note(request, f"wrote {request.output}")


@contextmanager
def junit_file(request: CommandRequest) -> Iterator[Callable[[Callable[[], Sequence["Suite"]]], None]]:
    """Yield a function that writes suites to the file of ``--junit``, if the request has one.

    The file is opened at once, so that a wrong path is an error before anything runs.
    """
    if request.junit is None:
        yield lambda _: None
        return
    from harrow.campaigns.storage.whole_file import whole_file
    from harrow.cli.ci.junit import junit_xml

    with whole_file(request.junit) as stream:
        yield lambda suites: stream.writelines([junit_xml(suites())])
    note(request, f"wrote {request.junit}")


def note(request: CommandRequest, message: str) -> None:
    """Print a message for the user, unless the request is ``--quiet``."""
    if not request.quiet:
        say(message_console(no_color=request.no_color), message)


def write_json(console: Console, document: Mapping[str, Any]) -> None:
    console.file.writelines(json_parts(document))
    console.file.flush()


def publish(
    request: CommandRequest,
    *,
    document: Callable[[], Mapping[str, Any]],
    suites: Callable[[], Sequence["Suite"]],
    noun: str,
    show: Callable[[Console], None],
    texts: Mapping[str, Callable[[], str]] | None = None,
) -> None:
    """Write a result in the format of the request. *noun* says what a suite is, such as "run".

    *texts* returns the whole output of further formats, such as a page.
    """
    with data(request) as console, junit_file(request) as write_junit:
        write_junit(suites)
        if request.output_format == JSON:
            write_json(console, document())
        elif request.output_format in CI_FORMATS:
            write_suites(console, request, suites(), noun)
        elif texts is not None and request.output_format in texts:
            console.file.write(texts[request.output_format]())
            console.file.flush()
        else:
            show(console)


def write_suites(
    console: Console, request: CommandRequest, suites: Sequence["Suite"], noun: str, total: str | None = None
) -> None:
    """Write suites in one of `CI_FORMATS`. *total* replaces the default summary line.

    In a step of GitHub Actions, the format `GITHUB` also writes a table to the step's summary. If
    the table cannot be written, this is reported, but it does not change the result.
    """
    if request.output_format == JUNIT:
        from harrow.cli.ci.junit import junit_xml

        console.file.write(junit_xml(suites))
    else:
        from harrow.cli.ci import github
        from harrow.cli.ci.suite import in_total

        total = in_total(suites, noun) if total is None else total
        commands(console.file, (f"{line}\n" for line in github.annotations(suites)))
        show(console, Text(total))
        try:
            github.append_step_summary(github.step_summary(suites, noun, total))
        except OSError as error:
            messages = message_console(no_color=request.no_color)
            say(messages, f"cannot write to ${github.STEP_SUMMARY}: {reason_of(error)}")
    console.file.flush()


def refuse_files(request: CommandRequest, problems: Sequence[Problem]) -> None:
    """Report the mistakes in files, also to a CI system if the request is for one."""
    messages = message_console(no_color=request.no_color)
    show_problems(messages, problems)
    if request.junit is None and request.output_format not in CI_FORMATS:
        return
    from harrow.cli.ci.suite import problem_suites

    try:
        with junit_file(request) as write_junit:
            write_junit(lambda: problem_suites(problems))
        if request.output_format in CI_FORMATS:
            with data(request) as console:
                write_suites(console, request, problem_suites(problems), "file")
    except BrokenPipeError:
        raise
    except OSError as error:
        say(messages, f"cannot write: {reason_of(error)}", style="red")

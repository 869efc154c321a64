"""One `harrow diff`: read a run, or two, and show what their replicas have."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from campaigns.problem import CampaignError
from campaigns.recorded_run import RecordError, find_run, read_run
from campaigns.run_diff import DiffError, RunDiff, diff_document, diff_run, parse_at
from campaigns.runs_diff import diff_runs, runs_document
from cli import exit_code
from cli.console import data_console, destination, message_console, say, say_written
from cli.options import DEFAULT_RESULTS, ListFormat
from cli.render_diff import show_run_diff
from cli.render_problem import show_problems
from cli.render_runs_diff import show_runs_diff

_RUNS_MAX: Final = 2


def diff_session(
    arguments: Sequence[str],
    results: Path,
    *,
    at: str,
    partitions: Sequence[str],
    only_different: bool,
    output_format: ListFormat,
    output: Path | None,
    no_color: bool,
) -> int:
    """Show the logs of a run, or two runs side by side, and return the exit code."""
    messages = message_console(no_color=no_color)
    if len(arguments) > _RUNS_MAX:
        say(messages, f"{len(arguments)} runs are too many: name one, or two to compare")
        return exit_code.USAGE
    try:
        moment = parse_at(at)
        recorded = [read_run(find_run(argument, results)) for argument in arguments]
        with destination(output) as stream:
            console = data_console(no_color=no_color, file=stream)
            if len(recorded) == _RUNS_MAX:
                runs = diff_runs(recorded[0], recorded[1], moment, partitions)
                if output_format is ListFormat.JSON:
                    _write(console, runs_document(runs))
                else:
                    show_runs_diff(console, runs, only_different=only_different)
            else:
                found = diff_run(recorded[0], moment, partitions)
                if output_format is ListFormat.JSON:
                    _write(console, diff_document(found))
                else:
                    argument = _as_typed(arguments[0], results, found)
                    show_run_diff(console, found, argument, only_different=only_different)
    except DiffError as error:
        say(messages, str(error))
        return exit_code.USAGE
    except RecordError as error:
        show_problems(messages, [error.problem])
        return exit_code.USAGE
    except CampaignError as error:
        show_problems(messages, error.problems)
        return exit_code.USAGE
    except BrokenPipeError:
        raise
    except OSError as error:
        say(messages, f"cannot go on: {error.strerror or error}: {error.filename}", style="red")
        return exit_code.USAGE
    say_written(messages, output, quiet=False)
    return exit_code.OK


def _as_typed(argument: str, results: Path, found: RunDiff) -> str:
    """Return how to name the run in a command that follows, where the results may stand elsewhere."""
    is_enough = results == DEFAULT_RESULTS or Path(argument).exists()
    return shlex.quote(argument if is_enough else str(found.recorded.folder))


def _write(console: Console, document: dict[str, Any]) -> None:
    console.file.write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")

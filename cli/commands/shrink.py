"""`harrow shrink`: turns a failing run into a small campaign."""

import gc
import time
from collections.abc import Iterator

from harrow.campaigns.language.spelling import counted
from harrow.campaigns.record.report import reproduce_command
from harrow.campaigns.search.shrink import NothingToShrinkError, Shrinker, Shrunk
from harrow.campaigns.search.shrunk_campaign import shrunk_text
from harrow.campaigns.storage.whole_file import whole_file
from harrow.checks.finding import INCONCLUSIVE
from harrow.cli import exit_code
from harrow.cli.commands.run_selection import select_one
from harrow.cli.console import data_console, message_console, say
from harrow.cli.interrupts import Interrupts
from harrow.cli.options import parse_time_s
from harrow.cli.progress import ProgressLine
from harrow.cli.requests.failures import ShrinkRequest
from harrow.cli.session import Refusal, note, reason_of
from harrow.cli.worker_processes import workers_of
from harrow.cluster_model.lazy_dataclass import replace


def session(request: ShrinkRequest) -> int:
    """Shrink a run, and return the exit code. Even if interrupted, write the best campaign."""
    if str(request.output) == "-":
        request = replace(request, output=None)
    time_max_s = parse_time_s(request.time_max)
    plan = select_one(request.campaign, request.overrides, request.variant).plans[0]
    messages = message_console(no_color=request.no_color)
    progress = ProgressLine(messages, total=None, enabled=not request.quiet)
    command = reproduce_command(request.campaign, request.seed, plan.variant, request.overrides or ())
    shrinker: Shrinker | None = None
    interrupted = False
    with Interrupts() as interrupts, workers_of(request) as workers:

        def on_run(runs: int, best: Shrunk) -> None:
            interrupts.check()
            progress.update(runs, f"runs, {_size(best)} left")

        gc.freeze()
        start_s = time.monotonic()
        try:
            shrinker = Shrinker(
                plan,
                request.seed,
                names=() if request.rule is None else (request.rule,),
                time_max_s=time_max_s,
                on_run=on_run,
                workers=workers,
            )
            shrinker.run()
        except NothingToShrinkError as nothing:
            say(messages, f"nothing to shrink: {nothing} ({command})", style="red")
            return exit_code.INCONCLUSIVE if nothing.status == INCONCLUSIVE else exit_code.USAGE
        except KeyboardInterrupt:
            interrupted = True
        finally:
            interrupts.defer_to_the_end()
            progress.clear()
        if shrinker is None:
            say(messages, "interrupted before the original run finished")
            return exit_code.INTERRUPTED
        wall_s = time.monotonic() - start_s
        _write(request, shrunk_text(shrinker, command))
        if interrupted:
            say(messages, "interrupted: this is the best candidate so far")
        elif not shrinker.complete:
            say(messages, "--max-time reached: this is the best candidate so far")
        for line in _summary(request, shrinker, wall_s):
            note(request, line)
    return exit_code.INTERRUPTED if interrupted else exit_code.OK


def _write(request: ShrinkRequest, text: str) -> None:
    try:
        data_console().file.write(text)
        if request.output is not None:
            with whole_file(request.output) as stream:
                stream.write(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Refusal(f"cannot write: {reason_of(error)}") from None


def _summary(request: ShrinkRequest, shrinker: Shrinker, wall_s: float) -> Iterator[str]:
    faults = counted(len(shrinker.original.result.faults), "fault")
    size = f"{_size(shrinker.best)} left, from {faults}"
    yield f"{shrinker.failure.name}: {size}, {counted(shrinker.runs, 'run')} in {wall_s:.1f} s"
    if request.output is not None:
        command = reproduce_command(str(request.output), shrinker.best.seed, None)
        yield f"wrote {request.output}: {command.removesuffix(' --seed 0')}"


def _size(best: Shrunk) -> str:
    faults, records = best.size()
    return f"{counted(faults, 'fault')} and {counted(records, 'record')}"

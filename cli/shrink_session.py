"""One `harrow shrink`: a failing run in, a small campaign out."""

import gc
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from campaigns.plan import Plan
from campaigns.report import BASE, reproduce_command
from campaigns.results_folder import whole_file
from campaigns.shrink import NothingToShrinkError, Shrinker, Shrunk
from campaigns.shrunk_campaign import shrunk_text
from campaigns.spelling import counted
from checks.finding import INCONCLUSIVE
from cli import exit_code
from cli.console import data_console, message_console, say
from cli.interrupts import Interrupts
from cli.progress import ProgressLine
from cli.render_problem import show_problems
from cli.run_selection import choose_variants, find_campaigns, load_all


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkRequest:
    """What to shrink, for how long, and where to write it beside printing it."""

    argument: str
    seed: int
    overrides: tuple[str, ...] = ()
    variant: str | None = None
    rule: str | None = None
    output: Path | None = None
    time_max_s: float | None = None


def shrink_session(request: ShrinkRequest, *, quiet: bool, no_color: bool) -> int:
    """Shrink what was asked for, print it, and return the exit code."""
    messages = message_console(no_color=no_color)
    files, not_found = find_campaigns([request.argument])
    loaded, mistakes = load_all(files, request.overrides)
    if problems := [*not_found, *mistakes]:
        show_problems(messages, problems)
        return exit_code.USAGE
    if len(loaded) != 1:
        say(messages, f"{request.argument} is {len(loaded)} campaigns: name one", style="red")
        return exit_code.USAGE
    plan = choose_variants(loaded, [request.variant or BASE])[0][0]
    with Interrupts() as interrupts:
        return _Session(request, plan, messages, interrupts, quiet=quiet).run()


class _Session:
    """The search for one campaign, and what is said of it."""

    def __init__(
        self, request: ShrinkRequest, plan: Plan, messages: Console, interrupts: Interrupts, *, quiet: bool
    ) -> None:
        self._request = request
        self._plan = plan
        self._messages = messages
        self._interrupts = interrupts
        self._quiet = quiet
        self._progress = ProgressLine(messages, total=None, enabled=not quiet)
        self._command = reproduce_command(request.argument, request.seed, plan.variant, request.overrides)

    def run(self) -> int:
        """Search, and print and write the best also when something ends the search early."""
        gc.freeze()
        begun_s = time.monotonic()
        shrinker: Shrinker | None = None
        interrupted = False
        try:
            shrinker = Shrinker(
                self._plan,
                self._request.seed,
                rule=self._request.rule,
                time_max_s=self._request.time_max_s,
                on_run=self._show_progress,
            )
            shrinker.run()
        except NothingToShrinkError as nothing:
            say(self._messages, f"nothing to shrink: {nothing} ({self._command})", style="red")
            return exit_code.INCONCLUSIVE if nothing.status == INCONCLUSIVE else exit_code.USAGE
        except KeyboardInterrupt:
            interrupted = True
        except Exception as error:
            error.add_note(f"it happened in: {self._command.replace('harrow run', 'harrow shrink', 1)}")
            raise
        finally:
            self._interrupts.hold()
            self._progress.clear()
        if shrinker is None:
            say(self._messages, "interrupted before the run to shrink was over")
            return exit_code.INTERRUPTED
        return self._finish(shrinker, interrupted=interrupted, wall_s=time.monotonic() - begun_s)

    def _show_progress(self, runs: int, best: Shrunk) -> None:
        self._interrupts.check()
        self._progress.update(runs, f"runs, {_size(best)} left")

    def _finish(self, shrinker: Shrinker, *, interrupted: bool, wall_s: float) -> int:
        text = shrunk_text(shrinker, self._command)
        output = self._request.output
        try:
            data_console().file.write(text)
            if output is not None:
                with whole_file(output) as stream:
                    stream.write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            reason = f"{error.strerror or error}: {error.filename}"
            say(self._messages, f"cannot write: {reason}", style="red")
            return exit_code.USAGE
        if interrupted:
            say(self._messages, "interrupted: this is the best so far")
        elif not shrinker.complete:
            say(self._messages, "--max-time is over: this is the best so far")
        if not self._quiet:
            self._say_result(shrinker, wall_s)
        return exit_code.INTERRUPTED if interrupted else exit_code.OK

    def _say_result(self, shrinker: Shrinker, wall_s: float) -> None:
        original = shrinker.original.result
        size = f"{_size(shrinker.best)} left of {len(original.faults)} faults"
        say(
            self._messages,
            f"{shrinker.signature.rule}: {size}, {shrinker.runs} runs in {wall_s:.1f} s",
        )
        if self._request.output is not None:
            seed = shrinker.best.seed
            command = reproduce_command(str(self._request.output), seed, None)
            shown = command if seed else command.removesuffix(" --seed 0")
            say(self._messages, f"wrote {self._request.output}: {shown}")


def _size(best: Shrunk) -> str:
    faults, records = best.size()
    return f"{counted(faults, 'fault')} and {counted(records, 'record')}"

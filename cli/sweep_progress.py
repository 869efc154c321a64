"""Shows the progress of a sweep: a bar on a terminal, otherwise a line every ten seconds."""

import time
from collections.abc import Callable
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from harrow.campaigns.language.spelling import counted
from harrow.campaigns.language.units import rough_duration_text
from harrow.campaigns.sweep.sweep import Progress
from harrow.cli.console import say
from harrow.cli.text import Text
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

_LINE_INTERVAL_S: Final = 10.0
_SIGNATURES_SHOWN: Final = 5
_PROBES_SHOWN: Final = 6
_BAR_WIDTH: Final = 16


class SweepProgress:
    """Shows the progress of a sweep if *enabled*.

    On a terminal, it redraws the result of *picture*, which by default is a bar and a few lines.
    """

    def __init__(
        self, console: Console, *, enabled: bool, picture: Callable[[Progress], RenderableType] | None = None
    ) -> None:
        self._console = console
        self._enabled = enabled
        self._picture = _picture if picture is None else picture
        self._next_s = time.monotonic() + _LINE_INTERVAL_S
        self._live: Live | None = None
        if enabled and console.is_terminal and not console.is_dumb_terminal:
            self._live = Live(console=console, transient=True, refresh_per_second=4)
            self._live.start()

    def show(self, progress: Progress) -> None:
        if self._live is not None:
            self._live.update(self._picture(progress))
        elif self._enabled and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + _LINE_INTERVAL_S
            say(self._console, progress_line(progress))

    def end(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


def progress_line(progress: Progress) -> str:
    failed = progress.failed.total()
    missing = len(progress.probes_missing())
    return (
        f"{progress.already + progress.done} of {progress.planned} runs, {speed_text(progress)}, "
        f"{failed} failed, {missing} rare states not reached{_left(progress)}"
    )


def speed_text(progress: Progress) -> str:
    """Return the runs per second, with one decimal below 10."""
    speed = progress.runs_per_s()
    return f"{speed:.0f} runs/s" if speed >= 10 else f"{speed:.1f} runs/s"


def _left(progress: Progress) -> str:
    if progress.left_s is None:
        return ""
    return f", about {rough_duration_text(round(progress.left_s * US_PER_SECOND))} left"


def _picture(progress: Progress) -> RenderableType:
    done = progress.already + progress.done
    first = Table.grid(padding=(0, 2))
    first.add_row(
        ProgressBar(total=progress.planned, completed=done, width=_BAR_WIDTH),
        f"{done} of {progress.planned} runs",
        f"{speed_text(progress)}{_left(progress)}",
    )
    lines: list[RenderableType] = [first]
    if progress.failed:
        lines.append(Text(f"{progress.failed.total()} failed:", "red"))
        most = progress.failed.most_common(_SIGNATURES_SHOWN)
        lines += [
            Text(f"  {count:>6}  {signature}", no_wrap=True, overflow="ellipsis") for signature, count in most
        ]
        if len(progress.failed) > len(most):
            lines.append(Text(f"  and {counted(len(progress.failed) - len(most), 'other kind')}", "dim"))
    missing = progress.probes_missing()
    if missing:
        shown = ", ".join(missing[:_PROBES_SHOWN])
        more = f" and {len(missing) - _PROBES_SHOWN} more" if len(missing) > _PROBES_SHOWN else ""
        text = f"not reached yet: {shown}{more}"
        lines.append(Text(text, "dim", no_wrap=True, overflow="ellipsis"))
    return Group(*lines)

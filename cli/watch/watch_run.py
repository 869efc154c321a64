"""Plays runs on a terminal at the chosen speed, and restores the terminal after Ctrl-C."""

import math
import time
from collections.abc import Callable
from typing import Final

from rich.console import Console
from rich.live import Live

from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.story.playback import Playback, Scene
from harrow.cli.watch.canvas import canvas_of
from harrow.cli.watch.pace import Frame, pace
from harrow.cli.watch.run_screen import frame
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

_FRAME_S: Final = 1 / 12
_END_US: Final = 5 * US_PER_SECOND
"""How long the end of a run stays on screen before the next run, at speed 1."""


class RunWatch:
    """Plays finished runs, one after the other.

    *speed* is in cluster seconds per wall-clock second. With `math.inf`, only the end of a run is
    shown, and not even that shortly after the end of another run. If *only* is set, there is only
    one run, and its view stays on screen. *check* raises an exception to end the playback.
    """

    def __init__(
        self,
        console: Console,
        *,
        speed: float,
        only: bool,
        check: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._console = console
        self._speed = speed
        self._only = only
        self._check = check
        self._clock = clock
        self._sleep = sleep
        self._drawn_s = -math.inf
        self._next_s = -math.inf
        self.played_s = 0.0

    def play(self, result: RunResult) -> None:
        start_s = self._clock()
        if math.isinf(self._speed) and start_s < self._next_s:
            return
        playback = Playback(result)
        live = Live(
            console=self._console,
            auto_refresh=False,
            transient=not self._only,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )
        try:
            with live:
                self._play(playback, live)
        except KeyboardInterrupt:
            # A second Ctrl-C may have interrupted the removal of the view.
            self._console.show_cursor(show=True)
            raise
        finally:
            if self._only:
                self._console.print()  # The report of the run follows below the view.
            duration_s = self._clock() - start_s
            self.played_s += duration_s
            # With `math.inf`, most of the time should be spent on runs and not on drawing them.
            self._next_s = start_s + duration_s + max(_FRAME_S, 3 * duration_s)

    def _play(self, playback: Playback, live: Live) -> None:
        due_s = self._clock()
        if not math.isinf(self._speed):
            for frame in pace(playback):
                self._check()
                playback.advance(frame.position)
                due_s = self._show(frame, due_s, playback, live)
        playback.advance(len(playback.events) - 1)
        self._draw(playback.scene(playback.end_us), live)
        if not self._only and not math.isinf(self._speed):
            self._wait_until(self._clock() + _END_US / US_PER_SECOND / self._speed)

    def _show(self, frame: Frame, due_s: float, playback: Playback, live: Live) -> float:
        """Show a frame while the clock in it advances. Return when the next frame is due."""
        shown_s = frame.shown_us / US_PER_SECOND / self._speed
        until_s = due_s + shown_s
        begin_us = playback.at_us
        # A frame that is too short to see is drawn together with the next one.
        while until_s - max(self._clock(), self._drawn_s) >= _FRAME_S:
            elapsed_fraction = max(0.0, self._clock() - due_s) / shown_s
            self._draw(playback.scene(begin_us + round(min(1.0, elapsed_fraction) * frame.advance_us)), live)
            self._wait_until(min(until_s, self._drawn_s + _FRAME_S))
        return until_s

    def _draw(self, scene: Scene, live: Live) -> None:
        speed = "" if math.isinf(self._speed) else f", {self._speed:g}x"
        live.update(frame(scene, canvas_of(self._console), speed=speed), refresh=True)
        self._drawn_s = self._clock()

    def _wait_until(self, due_s: float) -> None:
        while (left_s := due_s - self._clock()) > 0:
            self._check()
            self._sleep(min(left_s, _FRAME_S))
        self._check()

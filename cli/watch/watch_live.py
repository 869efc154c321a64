"""Shows a run on a terminal while it goes on, and restores the terminal at its end."""

import math
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.live import Live

from harrow.campaigns.story.live_playback import LivePlayback
from harrow.cli.watch.canvas import canvas_of
from harrow.cli.watch.run_screen import frame

_FRAME_S: Final = 1 / 4
_SHARE: Final = 8
"""Between two frames passes at least so many times the time that it takes to draw one."""


class LiveWatch:
    """A view of one run. Its last moment stays on the terminal.

    A terminal that is drawn on must get no other output until the view has ended.
    """

    def __init__(
        self,
        console: Console,
        *,
        speed: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._speed = speed
        self._clock = clock
        self._due_s = -math.inf
        self._live = Live(
            console=console,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live.is_started:
            try:
                self._live.stop()
            finally:
                # A second Ctrl-C may have interrupted the removal of the view.
                self._console.show_cursor(show=True)
            self._console.print()

    def is_due(self) -> bool:
        """Return whether the view is old enough to be drawn again."""
        return self._clock() >= self._due_s

    def draw(self, playback: LivePlayback, at_us: int, clients: tuple[str, ...]) -> None:
        """Show the moment *at_us* of a run, at which *clients* are connected."""
        began_s = self._clock()
        playback.catch_up()
        self._live.start()
        scene = playback.scene(at_us, clients)
        self._live.update(frame(scene, canvas_of(self._console), speed=self._speed), refresh=True)
        drawn_s = self._clock()
        self._due_s = drawn_s + max(_FRAME_S, _SHARE * (drawn_s - began_s))

"""What can be done to the process of a broker or of a controller."""

from typing import Protocol


class NodeProcess(Protocol):
    """The process of a broker, or of a controller that is none, as far as something can be done to it."""

    id: int

    @property
    def is_running(self) -> bool:
        """Return whether it is there; it may be paused."""

    @property
    def is_paused(self) -> bool:
        """Return whether it stands still."""

    def look_after(self) -> None:
        """Do the work that is due. The thread that runs the campaign calls this repeatedly."""

    def start(self) -> None:
        """Start it, unless it is there."""

    def kill(self) -> None:
        """End it at once (SIGKILL), and come back when it is gone."""

    def stop(self) -> None:
        """Tell it to stop in good order; it takes the time that it needs."""

    def pause(self) -> None:
        """Let it stand still (SIGSTOP)."""

    def resume(self) -> None:
        """Let it go on (SIGCONT)."""

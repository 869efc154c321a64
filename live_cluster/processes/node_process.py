"""The interface to the process of a broker or a controller."""

from typing import Protocol


class NodeProcess(Protocol):
    """The process of a broker or of a KRaft controller."""

    id: int

    @property
    def is_running(self) -> bool:
        """Whether the process exists; it may be paused."""

    @property
    def is_paused(self) -> bool: ...

    def poll(self) -> None:
        """Do pending work. The thread that runs the campaign calls this repeatedly."""

    def start(self) -> None:
        """Start the process unless it exists."""

    def kill(self) -> None:
        """Kill the process, and wait for its end."""

    def stop(self) -> None:
        """Begin a controlled shutdown."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

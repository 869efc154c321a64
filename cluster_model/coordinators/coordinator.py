"""Defines the interface of all coordinators on a broker."""

from typing import Protocol


class Coordinator(Protocol):
    """Coordinates the partitions of its internal topic that its broker leads."""

    def on_election(self, partition: int, leader_epoch: int) -> None:
        """Load a partition that this broker has begun to lead, or still leads in a new epoch."""

    def on_resignation(self, partition: int) -> None:
        """Unload a partition that this broker no longer leads."""

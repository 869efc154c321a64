"""Defines the interface of all coordinators on a broker."""

from typing import Protocol


class Coordinator(Protocol):
    """Coordinates, on one broker, the partitions of an internal topic that the broker leads."""

    def on_election(self, partition: int, leader_epoch: int) -> None:
        """Load a partition that this broker now leads, or still leads but in a new leader epoch."""

    def on_resignation(self, partition: int) -> None:
        """Unload a partition that this broker no longer leads."""

"""What a coordinator on a broker is, whatever it coordinates."""

from typing import Protocol


class Coordinator(Protocol):
    """Coordinates what the partitions of its internal topic say, for as long as its broker leads them."""

    def elected(self, partition: int, leader_epoch: int) -> None:
        """Load what a partition says, which this broker leads from now on, or goes on leading in a new epoch."""

    def resigned(self, partition: int) -> None:
        """Forget what a partition says: another broker leads it, or none does."""

"""What a message may carry that the network looks at: znodes, or records."""

# Plain Python: protocols that are `runtime_checkable`.

from typing import Protocol, runtime_checkable


@runtime_checkable
class AboutZnodes(Protocol):
    """The body of a message about znodes."""

    @property
    def znodes(self) -> tuple[str, ...]:
        """Their paths."""


@runtime_checkable
class CarriesRecords(Protocol):
    """The body of a message with records."""

    @property
    def record_bytes(self) -> int:
        """Their total size."""

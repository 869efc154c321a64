"""Describes the parts of a message body that the network inspects: znode paths and record sizes."""

# Plain Python: its protocols are `runtime_checkable`, which mypyc does not support.

from typing import Protocol, runtime_checkable


@runtime_checkable
class ZnodeMessage(Protocol):
    """The body of a message about znodes."""

    @property
    def znodes(self) -> tuple[str, ...]:
        """The paths of the znodes."""


@runtime_checkable
class RecordMessage(Protocol):
    """The body of a message with records."""

    @property
    def record_bytes(self) -> int:
        """The total size of the records."""

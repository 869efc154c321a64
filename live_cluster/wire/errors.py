"""Errors of Kafka's protocol: numbers on the wire, names in the model."""

from typing import Any, Final

from kafka.errors import for_code

from harrow.cluster_model import errors

_OTHERWISE: Final = {
    0: errors.NONE,
    -1: errors.UNKNOWN_SERVER_ERROR,
    39: errors.INVALID_REPLICA_ASSIGNMENT,
    # NEW_LEADER_ELECTED (KIP-841): leaders treat both alike.
    108: errors.FENCED_LEADER_EPOCH,
}
"""What kafka-python calls otherwise."""
_CODES: Final = range(-1, 200)


def error_name(code: int) -> str:
    """Return the name of an error, `NONE` of none."""
    known: Any = for_code(code)
    return _OTHERWISE.get(code) or str(known.message)


def error_code(name: str) -> int:
    """Return the number of an error."""
    return _NUMBERS[name]


_NUMBERS: Final = {error_name(code): code for code in reversed(_CODES)}

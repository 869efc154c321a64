"""Errors of Kafka's protocol: numbers on the wire, names in the model."""

from typing import Any, Final

from kafka.errors import for_code

from harrow.cluster_model import errors

_RENAMED: Final = {
    0: errors.NONE,
    -1: errors.UNKNOWN_SERVER_ERROR,
    39: errors.INVALID_REPLICA_ASSIGNMENT,
    # NEW_LEADER_ELECTED (KIP-841): leaders treat both alike.
    108: errors.FENCED_LEADER_EPOCH,
}
"""Errors that have another name in kafka-python."""


def error_name(code: int) -> str:
    error: Any = for_code(code)
    return _RENAMED.get(code) or str(error.message)


def error_code(name: str) -> int:
    return _CODES[name]


_CODES: Final = {error_name(code): code for code in reversed(range(-1, 200))}

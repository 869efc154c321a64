"""What errors that brokers answer with are called in Kafka's protocol, and so on the model."""

from typing import Any, Final

from kafka.errors import for_code

from harrow.cluster_model import errors

_OTHERWISE: Final = {0: errors.NONE, -1: errors.UNKNOWN_SERVER_ERROR}
"""What kafka-python calls otherwise."""


def error_name(code: int) -> str:
    """Return the name of an error, `NONE` of none."""
    known: Any = for_code(code)
    return _OTHERWISE.get(code) or str(known.message)

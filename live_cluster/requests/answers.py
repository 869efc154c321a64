"""What a broker answers, as plain data: the same from a model's broker, a real one, and a file."""

from typing import Any, Final

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.log.record_batch import RecordBatch

Answer = dict[str, Any]
"""Texts, numbers, and lists and dictionaries of them."""

NO_ANSWER: Final[Answer] = {"error": "no answer"}

LOG_START: Final = 0
"""Where every log of the model begins."""
_UNKNOWN: Final = -1


def described_batch(batch: RecordBatch) -> list[Any]:
    """Return what of a stored batch does not depend on who encoded it."""
    return [
        batch.base_offset,
        batch.leader_epoch,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        list(batch.values),
    ]


def fetched(error: str, hw: int, log_start: int, batches: list[list[Any]]) -> Answer:
    """Return what is answered of one partition of a fetch."""
    return {"error": error, "hw": hw, "log_start": log_start, "batches": batches}


def described(answer: Any, *, with_epochs: bool) -> Answer:
    """Return what a broker of the model has answered; metadata *with_epochs* of leaders since KIP-320."""
    if isinstance(answer, protocol.FetchResponse):
        return {
            "error": answer.error,
            "session": answer.session_id,
            "partitions": {
                name: fetched(
                    told.error,
                    told.hw,
                    LOG_START if told.error == errors.NONE else _UNKNOWN,
                    [described_batch(batch) for batch in told.batches],
                )
                for name, told in sorted(answer.partitions.items())
            },
        }
    if isinstance(answer, protocol.InitProducerIdResponse):
        return {
            "error": answer.error,
            "producer_id": answer.producer_id,
            "producer_epoch": answer.producer_epoch,
        }
    if isinstance(answer, protocol.MetadataResponse):
        return {
            "brokers": sorted(answer.brokers),
            "partitions": {
                name: [leader, *([epoch] if with_epochs else [])]
                for name, (leader, epoch) in sorted(answer.partitions.items())
            },
        }
    return {"partitions": {name: list(told) for name, told in sorted(answer.partitions.items())}}


def errors_in(answer: Answer) -> tuple[str, ...]:
    """Return each error of an answer once: its own or, where it has none, those of its partitions."""
    if answer.get("error", errors.NONE) != errors.NONE:
        return (str(answer["error"]),)
    partitions = answer.get("fetched", answer.get("partitions"))
    # Of an assignment partitions are told, and nothing of them.
    told = map(_error_of, partitions.values()) if isinstance(partitions, dict) else ()
    return tuple(dict.fromkeys(error for error in told if error is not None)) or (errors.NONE,)


def _error_of(partition: Any) -> str | None:
    """Return the error of what is said of a partition, None where none can be, as in metadata."""
    error = partition["error"] if isinstance(partition, dict) else partition
    error = error[0] if isinstance(error, list) else error
    return error if isinstance(error, str) else None

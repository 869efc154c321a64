"""What a broker answers, as plain data: the same from a model's broker, a real one, and a file."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.coordinators import protocol as messages
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.sim.connection import Connection, Reply

Answer = dict[str, Any]
"""Texts, numbers, and lists and dictionaries of them."""

NO_ANSWER: Final[Answer] = {"error": "no answer"}

LOG_START: Final = 0
"""Where every log of the model begins."""
_UNKNOWN: Final = -1


@dataclass(slots=True, eq=False)
class ReceivedAnswers:
    """A client's end of connections to what is modelled: it keeps the answers until they are looked at."""

    received: list[Reply] = field(default_factory=list)

    def receive_response(self, reply: Reply) -> None:
        self.received.append(reply)

    def connection_lost(self, connection: Connection) -> None:
        """Do nothing: no answer comes, which is noticed by the caller."""


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


def described(answer: Any, *, with_epochs: bool = True) -> Answer:
    """Return an answer in the model's words as plain data; metadata *with_epochs* of leaders since KIP-320."""
    error = getattr(answer, "error", errors.NONE)
    match answer:
        case protocol.FetchResponse():
            return {
                "error": error,
                "session": answer.session_id,
                "partitions": {
                    name: {
                        "error": told.error,
                        "hw": told.hw,
                        "log_start": told.log_start_offset if told.error == errors.NONE else _UNKNOWN,
                        "batches": [described_batch(batch) for batch in told.batches],
                    }
                    for name, told in sorted(answer.partitions.items())
                },
            }
        case protocol.ProduceResponse():
            return {"partitions": _plain(answer.partitions)}
        case protocol.MetadataResponse():
            told = {name: state if with_epochs else state[:1] for name, state in answer.partitions.items()}
            return {"brokers": sorted(answer.brokers), "partitions": _plain(told)}
        case protocol.AlterPartitionResponse():
            # The epoch of a partition is told where its ISR is as wanted.
            states = {
                name: state if state[0] == errors.NONE else state[:1]
                for name, state in answer.partitions.items()
            }
            return {"error": error, "partitions": _plain(states)}
        case messages.JoinGroupResponse():
            if error != errors.NONE:
                return {"error": error, "member": answer.member}
            return {
                "error": error,
                "generation": answer.generation,
                "protocol": answer.protocol,
                "leader": answer.leader,
                "member": answer.member,
                "members": [
                    [member, instance, list(told.topics)] for member, instance, told in answer.members
                ],
                "skips": answer.skip_assignment,
            }
        case messages.ConsumerGroupHeartbeatResponse():
            if error != errors.NONE:
                return {"error": error}
            return {
                "error": error,
                "consumer": answer.member,
                "epoch": answer.epoch,
                "interval_us": answer.heartbeat_interval_us,
                "assignment": None if answer.assignment is None else sorted(answer.assignment),
            }
    # Where the core is compiled, a constant of the class counts as a field that nothing initializes.
    return {each.name: _plain(getattr(answer, each.name)) for each in fields(answer) if each.init}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(of_name) for name, of_name in sorted(value.items())}
    return list(value) if isinstance(value, tuple) else value


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

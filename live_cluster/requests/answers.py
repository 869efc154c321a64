"""Answers as plain data, the same for a model broker, a real broker and a recording."""

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, Final

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.coordinators import protocol as messages
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.sim.connection import ClientEndpoint, Connection, Reply

Answer = dict[str, Any]
"""Strings, numbers, lists and dictionaries."""

NO_ANSWER: Final[Answer] = {"error": "no answer"}

LOG_START: Final = 0
"""The offset at which every log of the model begins."""
_UNKNOWN: Final = -1


@dataclass(slots=True, eq=False)
class ReceivedAnswers(ClientEndpoint):
    """The client's end of connections to the model.

    It keeps answers until the driver takes them.
    """

    received: list[Reply] = field(default_factory=list)

    def receive_response(self, reply: Reply) -> None:
        self.received.append(reply)

    def connection_lost(self, connection: Connection) -> None:
        """Do nothing: the caller notices that no answer comes."""


def plain_batch(batch: RecordBatch) -> list[Any]:
    """Return the fields of a stored batch that do not depend on its encoder."""
    return [
        batch.base_offset,
        batch.leader_epoch,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        list(batch.values),
    ]


def plain_answer(answer: Any, *, with_leader_epochs: bool = True) -> Answer:
    """Return a response of the model as plain data.

    Metadata has no leader epochs before KIP-320: then *with_leader_epochs* is False.
    """
    error = getattr(answer, "error", errors.NONE)
    match answer:
        case protocol.FetchResponse():
            return {
                "error": error,
                "session": answer.session_id,
                "partitions": {
                    name: {
                        "error": fetched.error,
                        "hw": fetched.hw,
                        "log_start": fetched.log_start_offset if fetched.error == errors.NONE else _UNKNOWN,
                        "batches": [plain_batch(batch) for batch in fetched.batches],
                    }
                    for name, fetched in sorted(answer.partitions.items())
                },
            }
        case protocol.ProduceResponse():
            return {"partitions": _plain(answer.partitions)}
        case protocol.MetadataResponse():
            end = None if with_leader_epochs else 1
            leaders = {name: state[:end] for name, state in answer.partitions.items()}
            return {"brokers": sorted(answer.brokers), "partitions": _plain(leaders)}
        case protocol.AlterPartitionResponse():
            # Only a successful change has a partition epoch.
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
                    [member, instance, list(subscription.topics)]
                    for member, instance, subscription in answer.members
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
    # In the compiled core, a constant of the class counts as a field with init=False.
    return {item.name: _plain(getattr(answer, item.name)) for item in fields(answer) if item.init}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(item_value) for name, item_value in sorted(value.items())}
    return list(value) if isinstance(value, tuple) else value


def errors_in(answer: Answer) -> tuple[str, ...]:
    """Return the distinct errors of an answer: its own, or else those of its partitions."""
    if answer.get("error", errors.NONE) != errors.NONE:
        return (str(answer["error"]),)
    partitions = answer.get("fetched", answer.get("partitions"))
    # An assignment is a list of partitions without errors.
    candidates = map(_error_of, partitions.values()) if isinstance(partitions, dict) else ()
    return tuple(dict.fromkeys(error for error in candidates if error is not None)) or (errors.NONE,)


def _error_of(partition: Any) -> str | None:
    """Return the error of a partition, None if the answer has no errors of partitions."""
    error = partition["error"] if isinstance(partition, dict) else partition
    error = error[0] if isinstance(error, list) else error
    return error if isinstance(error, str) else None

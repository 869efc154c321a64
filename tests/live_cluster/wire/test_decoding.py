"""Nulls in answers of brokers are accepted exactly where the protocol allows them."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

import pytest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.names import Names
from harrow.live_cluster.releases.kafka_release import KafkaRelease
from harrow.live_cluster.users.fetched_logs import fetched_log
from harrow.live_cluster.wire import administration, quorum, replicas, survey
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.decoding import MalformedMessageError, decoded
from harrow.live_cluster.wire.metadata import broker_metadata, eligible_leaders

NAMES: Final = Names({0: 0}, {"t": "t"})
PLAIN: Final = {
    "string": "t",
    "bytes": b"",
    "records": b"",
    "bool": False,
    "uuid": UUID(int=1),
    "float64": 0.0,
    "bitfield": {0},
}
PLAIN_WITH_LENGTH: Final = ("string", "bytes", "records")
ANSWERS_MAX: Final = 8

ASKING: Final[dict[str, Callable[[BrokerConnection], Any]]] = {
    "metadata": lambda connection: broker_metadata(connection, ["t"], NAMES),
    "eligible leaders": lambda connection: eligible_leaders(connection, ["t"], NAMES),
    "survey": survey.survey_cluster,
    "survey of a release": lambda connection: survey.survey_cluster(connection, KafkaRelease("3.9.2")),
    "settings of a broker": lambda connection: survey.reported_settings(connection, 0),
    "settings of topics": lambda connection: survey.topic_settings(connection, ["t"]),
    "deletion of topics": lambda connection: administration.delete_topics(connection, ["t"]),
    "a new topic": lambda connection: administration.create_topic(connection, "t", [[0]], {}),
    "new partitions": lambda connection: administration.create_partitions(connection, "t", 2, None),
    "quorum": quorum.quorum_leader,
    "a new quorum": quorum.depose_leader,
    "reassignments": administration.reassignments,
    "a reassignment": lambda connection: administration.alter_reassignment(connection, "t-0", [0]),
    "replicas": lambda connection: replicas.replica_offsets(connection, ["t-0"], {"t-0": 0}, NAMES),
    "a log": lambda connection: fetched_log(connection, "t-0"),
    "deleted records": lambda connection: administration.delete_records_result(
        connection.ask(administration.delete_records_request(connection, "t-0", 0, 0))
    ),
}
"""Every request that harrow itself sends to brokers."""

Path = tuple[str, ...]


class Broker(BrokerConnection):
    """Answers some requests as over the wire, with a null at *path* in answers of a *kind*."""

    def __init__(self, kind: Any = None, path: Path = ()) -> None:
        super().__init__(("broker", 1))
        self.kinds: list[Any] = []
        self._kind = kind
        self._path = path

    def _supported(self, request: Any) -> tuple[int, int]:
        return 0, request.max_version

    def ask(self, request: Any) -> Any:
        if len(self.kinds) == ANSWERS_MAX:
            raise ConnectionLostError("no more answers")
        request.with_header(1, "harrow")
        kind = request.header.get_response_class()
        self.kinds.append(kind)
        answer = with_null(whole(kind), self._path) if kind is self._kind else whole(kind)
        answer.with_header(correlation_id=1)
        try:
            return decoded(kind, bytes(answer.encode(header=True)))
        except MalformedMessageError as error:
            raise ConnectionLostError(str(error)) from error


def whole(kind: Any) -> Any:
    """Return an answer with a value in each field and one element in each array."""
    return kind(
        **{
            name: value(field, kind._class_version)
            for name, field in present(kind._struct, kind._class_version)
        }
    )


def present(struct: Any, version: int) -> Iterator[tuple[str, Any]]:
    for name, field in struct.fields.items():
        if field.for_version_q(version) and not field.tagged_field_q(version):
            yield name, field


def value(field: Any, version: int) -> Any:
    if field.is_struct_array() or field.is_struct():
        one = field(**{name: value(each, version) for name, each in present(field, version)})
        return [one] if field.is_struct_array() else one
    one = PLAIN.get(field.array_of.type_str if field.is_array() else field.type_str, 0)
    return [one] if field.is_array() else one


def nullable(struct: Any, version: int, *, allowed: bool) -> Iterator[Path]:
    """Yield the paths where a null is *allowed*, or where it is forbidden but encodable."""
    for name, field in present(struct, version):
        may_be = field.nullable_for_version_q(version)
        if may_be if allowed else not may_be and (field.is_array() or field.type_str in PLAIN_WITH_LENGTH):
            yield (name,)
        if field.is_struct_array() or field.is_struct():
            yield from ((name, *rest) for rest in nullable(field, version, allowed=allowed))


def with_null(answer: Any, path: Path) -> Any:
    place = answer
    for name in path[:-1]:
        place = getattr(place, name)
        place = place[0] if isinstance(place, list) else place
    setattr(place, path[-1], None)
    return answer


def response_kinds(ask: Callable[[BrokerConnection], Any]) -> list[Any]:
    """Return the types of the answers to a request in the versions that it uses."""
    broker = Broker()
    with suppress(LiveError):
        ask(broker)
    return list(dict.fromkeys(broker.kinds))


@pytest.mark.parametrize("name", ASKING)
def test_a_null_that_the_protocol_allows_is_accepted(name: str) -> None:
    for kind in response_kinds(ASKING[name]):
        for path in nullable(kind._struct, kind._class_version, allowed=True):
            try:
                shown = repr(ASKING[name](Broker(kind, path)))
            except LiveError as error:
                shown = str(error)
            assert "None-" not in shown, (kind, path)
            assert ": None" not in shown, (kind, path)


@pytest.mark.parametrize("name", ASKING)
def test_a_null_that_the_protocol_forbids_is_refused(name: str) -> None:
    kinds = response_kinds(ASKING[name])
    assert kinds
    for kind in kinds:
        for path in nullable(kind._struct, kind._class_version, allowed=False):
            with pytest.raises(ConnectionLostError, match=f"{path[-1]} is null"):
                ASKING[name](Broker(kind, path))


def test_any_exception_of_a_decoder_refuses_the_answer() -> None:
    for request in (MetadataRequest[12](topics=None), ApiVersionsRequest[3]()):
        request.with_header(1, "harrow")
        kind = request.header.get_response_class()
        for frame in (b"", b"\0\0\0\x01", b"\0\0\0\x01" + b"\xff" * 40):
            with pytest.raises(MalformedMessageError):
                decoded(kind, frame)

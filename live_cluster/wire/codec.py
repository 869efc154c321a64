"""Messages of the model as messages of Kafka, and back.

`_SHAPES` declares each message once, field by field, and is read both ways: `asked` and `to_wire` are for a client,
`request_from_wire` and `answer_to_wire` for a server.

kafka-python knows the fields themselves, in every version (`harrow.live_cluster.wire.schemas` has those that it
lacks). This file knows what they mean: which attribute of the model a field is, microseconds for milliseconds, names
of errors for their numbers, partitions by name where Kafka nests them in topics.

kio 0.6 was considered for the fields. It decodes metadata of 100 partitions in 0.05 ms (kafka-python in 0.65 ms), and
encodes it in 2.7 ms (1.1 ms). It has the versions that Kafka 4 speaks, up to 4.3: no Fetch 3 and CreateTopics 1, which
0.10.2 needs, no TxnOffsetCommit 6 of 4.4. kafka-python is installed in any case, as one of the clients under test.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType, ModuleType
from typing import Any, Final, NamedTuple, Protocol
from uuid import UUID

from kafka.protocol import consumer, metadata, producer

from harrow.cluster_model import protocol
from harrow.cluster_model.coordinators import protocol as messages
from harrow.cluster_model.kraft import protocol as kraft
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.cluster_model.topology import CONSUMER_OFFSETS, TRANSACTION_STATE
from harrow.live_cluster.names import SAME, Names
from harrow.live_cluster.wire.connection import BrokerConnection, only
from harrow.live_cluster.wire.coordinator_messages import (
    assigned_partitions,
    assignment,
    subscribed_topics,
    subscription,
)
from harrow.live_cluster.wire.errors import error_code, error_name
from harrow.live_cluster.wire.schemas import (
    ALTER_PARTITION,
    BROKER_HEARTBEAT,
    BROKER_REGISTRATION,
    CONSUMER_GROUP_HEARTBEAT,
    TXN_OFFSET_COMMIT,
)
from harrow.live_cluster.wire.stored_batches import as_batches, encoded, whole_batches

_ENDS_WITH_PRODUCER: Final = 5
"""The version of EndTxn that comes with transactions v2, in which leaders add their partitions (KIP-890)."""
_NOWHERE: Final = 1
"""A port at which nothing listens."""
_FEATURES: Final = (
    *("metadata.version", "kraft.version", "transaction.version", "group.version"),
    *("eligible.leader.replicas.version", "share.version", "streams.version"),
)
_LEVEL_MAX: Final = 10_000
_INCARNATION, _DIRECTORY = 1 << 96, 1 << 97
"""Ids of processes and of log directories begin here: Kafka keeps the first ids for itself (``Uuid.RESERVED``)."""
_NUMBER_MASK: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Place:
    """What a cluster calls the things that a message names.

    Groups and transactional ids end with *suffix* there. *ids* are the ids of topics, by their names there.
    """

    names: Names = SAME
    suffix: str = ""
    ids: Mapping[str, UUID] = field(default_factory=lambda: MappingProxyType({}))
    cluster_id: str = ""

    def topic_of(self, topic: Any) -> str:
        """Return the model's name of a topic that a message has by its name, or by its id."""
        name = next((said for key in _NAMES if (said := getattr(topic, key, None))), None)
        if name is None:
            name = next(
                (known for known, id_ in self.ids.items() if id_ == topic.topic_id), str(topic.topic_id)
            )
        return self.names.own_topic(name)

    def own_broker(self, broker: int) -> int:
        """Return the model's id of a broker, or the one there if the model has none, as of no leader."""
        own = self.names.own_broker(broker)
        return broker if own is None else own


HERE: Final = Place()
_NAMES: Final = ("name", "topic")
_INDEXES: Final = ("partition_index", "partition", "index")


class _Way(NamedTuple):
    """How one value is written and read."""

    to_wire: Callable[[Any, Place], Any]
    to_model: Callable[[Any, Place], Any]


_PLAIN: Final = _Way(lambda value, _: value, lambda value, _: value)
_ERROR: Final = _Way(lambda name, _: error_code(name), lambda code, _: error_name(code))
_TIME: Final = _Way(lambda us, _: us // US_PER_MS, lambda ms, _: ms * US_PER_MS)
_TIME_IF_ANY: Final = _Way(
    lambda us, _: -1 if us is None else us // US_PER_MS, lambda ms, _: None if ms < 0 else ms * US_PER_MS
)
_TEXT: Final = _Way(lambda text, _: text or None, lambda text, _: text or "")
_TEXT_IF_ANY: Final = _Way(lambda text, _: text, lambda text, _: text or "")
_FLAG: Final = _Way(lambda flag, _: flag, lambda flag, _: bool(flag))
_ID: Final = _Way(
    lambda name, there: name + there.suffix if name else None,
    lambda name, there: (name or "").removesuffix(there.suffix),
)
_BROKER: Final = _Way(lambda own, there: there.names.broker(own), lambda id_, there: there.own_broker(id_))
_BROKER_IF_ANY: Final = _Way(
    lambda own, there: -1 if own is None else there.names.broker(own),
    lambda id_, there: None if id_ < 0 else there.own_broker(id_),
)
_RACK: Final = _Way(lambda rack, _: rack or "", lambda rack, _: rack)
_KEY_TYPE: Final = _Way(
    lambda topic, _: int(topic == TRANSACTION_STATE),
    lambda kind, _: TRANSACTION_STATE if kind else CONSUMER_OFFSETS,
)
_TOPICS: Final = _Way(
    lambda topics, there: None if topics is None else [topic + there.suffix for topic in topics],
    lambda names, there: None if names is None else tuple(name.removesuffix(there.suffix) for name in names),
)
_SUBSCRIPTION: Final = _Way(
    lambda told, _: subscription(told.topics),
    lambda data, _: messages.Subscription(tuple(subscribed_topics(data))),
)
_ASSIGNMENT: Final = _Way(
    lambda partitions, _: assignment(partitions), lambda data, _: tuple(assigned_partitions(data))
)
_RECORDS: Final = _Way(
    lambda batches, _: b"".join(map(encoded, batches)),
    lambda data, _: tuple(
        batch for stored, _ in whole_batches(bytes(data or b"")) for batch in as_batches(stored)
    ),
)
_ONE_BATCH: Final = _Way(
    lambda batch, there: _RECORDS.to_wire((batch,), there),
    lambda data, there: only(_RECORDS.to_model(data, there), "batches"),
)


class _Part(Protocol):
    """A part of a message. *fields* are those that the struct can have on the wire."""

    def write(self, message: Any, fields: Mapping[str, Any], there: Place) -> dict[str, Any]:
        """Return the fields on the wire."""

    def read(self, wire: Any, fields: Mapping[str, Any], there: Place) -> dict[Any, Any]:
        """Return the attributes of the model."""


def _written(parts: Iterable[_Part], message: Any, fields: Mapping[str, Any], there: Place) -> dict[str, Any]:
    return {name: value for part in parts for name, value in part.write(message, fields, there).items()}


def _read(parts: Iterable[_Part], wire: Any, fields: Mapping[str, Any], there: Place) -> dict[Any, Any]:
    return {name: value for part in parts for name, value in part.read(wire, fields, there).items()}


def _made(kind: Callable[..., Any] | None, values: Mapping[Any, Any]) -> Any:
    """Return what values are together: an object of a kind, a tuple where they have places, or the only value."""
    if kind is not None:
        return kind(**values)
    return values[None] if None in values else tuple(values[place] for place in sorted(values))


class _Value(NamedTuple):
    """A field, and the attribute that it is: a name, a place in a tuple, None for a value that has one field."""

    wire: str
    model: str | int | None
    way: _Way = _PLAIN

    def write(self, message: Any, fields: Mapping[str, Any], there: Place) -> dict[str, Any]:
        value = message
        if self.model is not None:
            value = getattr(message, self.model) if isinstance(self.model, str) else message[self.model]
        return {self.wire: self.way.to_wire(value, there)}

    def read(self, wire: Any, fields: Mapping[str, Any], there: Place) -> dict[Any, Any]:
        return {self.model: self.way.to_model(getattr(wire, self.wire), there)}


class _Fixed(NamedTuple):
    """A field that the model has no word for."""

    wire: str
    value: Any

    def write(self, message: Any, fields: Mapping[str, Any], there: Place) -> dict[str, Any]:
        return {self.wire: self.value}

    def read(self, wire: Any, fields: Mapping[str, Any], there: Place) -> dict[Any, Any]:
        return {}


class _Inside(NamedTuple):
    """Attributes that are in a struct of their own on the wire, or in the only one of an array."""

    wire: str
    parts: tuple[_Part, ...]

    def write(self, message: Any, fields: Mapping[str, Any], there: Place) -> dict[str, Any]:
        kind = fields[self.wire]
        values = _written(self.parts, message, kind.fields, there)
        if kind.is_struct_array():
            return {self.wire: [kind(**values)]}
        return {self.wire: None if None in values.values() else kind(**values)}

    def read(self, wire: Any, fields: Mapping[str, Any], there: Place) -> dict[Any, Any]:
        kind, struct = fields[self.wire], getattr(wire, self.wire)
        if kind.is_struct_array():
            struct = only(struct, self.wire)
        return {} if struct is None else _read(self.parts, struct, kind.fields, there)


class _Each(NamedTuple):
    """An attribute with several values, an array of structs on the wire."""

    wire: str
    model: str
    parts: tuple[_Part, ...]
    kind: Callable[[Iterable[Any]], Any] = tuple

    def write(self, message: Any, fields: Mapping[str, Any], there: Place) -> dict[str, Any]:
        values, kind = getattr(message, self.model), fields[self.wire]
        values = values.items() if isinstance(values, Mapping) else values
        return {self.wire: [kind(**_written(self.parts, value, kind.fields, there)) for value in values]}

    def read(self, wire: Any, fields: Mapping[str, Any], there: Place) -> dict[Any, Any]:
        inner = fields[self.wire].fields
        structs = getattr(wire, self.wire) or ()
        return {self.model: self.kind(_made(None, _read(self.parts, each, inner, there)) for each in structs)}


class _OfMessage(NamedTuple):
    """A field of each partition that the model has once, in the message."""

    wire: str
    model: str


class _OfFollower(NamedTuple):
    """A field of each partition that the model has beside, where it is not the usual: 0 for followers, -1 for consumers."""

    wire: str
    model: str


class _Partitions(NamedTuple):
    """An attribute that has something of each partition, by name. Kafka has an array of topics, each with its partitions.

    Without *parts* the partitions are names here, and numbers there.
    """

    model: str
    wire: str
    parts: tuple[_Part, ...] = ()
    kind: Callable[..., Any] | None = None
    beside: tuple[_OfMessage | _OfFollower, ...] = ()

    def write(self, message: Any, fields: Mapping[str, Any], there: Place) -> dict[str, Any]:
        partitions = getattr(message, self.model)
        if partitions is None:
            return {self.wire: None}
        kind = fields[self.wire]
        array, inner = _array_in(kind.fields)
        by_topic: dict[str, list[Any]] = {}
        for name in partitions:
            topic, _, number = name.rpartition("-")
            entry: Any = int(number)
            if self.parts:
                entry = inner(
                    **{_one_of(_INDEXES, inner.fields): entry},
                    **_written(self.parts, partitions[name], inner.fields, there),
                    **{each.wire: _beside(each, message, name) for each in self.beside},
                )
            by_topic.setdefault(there.names.topic(topic), []).append(entry)
        return {
            self.wire: [
                kind(
                    **{_one_of(_NAMES, kind.fields): topic} if set(_NAMES) & kind.fields.keys() else {},
                    **{"topic_id": there.ids.get(topic)} if "topic_id" in kind.fields else {},
                    **{array: of_topic},
                )
                for topic, of_topic in by_topic.items()
            ]
        }

    def read(self, wire: Any, fields: Mapping[str, Any], there: Place) -> dict[Any, Any]:
        topics = getattr(wire, self.wire)
        if topics is None:
            return {self.model: None}
        array, inner = _array_in(fields[self.wire].fields)
        told = [
            (there.topic_of(topic), partition)
            for topic in topics
            for partition in getattr(topic, array) or ()
        ]
        if not self.parts:
            return {self.model: tuple(f"{topic}-{number}" for topic, number in told)}
        index = _one_of(_INDEXES, inner.fields)
        named = {f"{topic}-{getattr(each, index)}": each for topic, each in told}
        found: dict[Any, Any] = {
            self.model: {
                name: _made(self.kind, _read(self.parts, each, inner.fields, there))
                for name, each in named.items()
            }
        }
        for each in self.beside:
            values = {name: getattr(partition, each.wire) for name, partition in named.items()}
            if isinstance(each, _OfFollower):
                found[each.model] = {name: value for name, value in values.items() if value > 0}
            elif values:
                found[each.model] = next(iter(values.values()))
        return found


def _array_in(fields: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the only array among the fields of a topic: its partitions."""
    return next((name, kind) for name, kind in fields.items() if kind.is_array() or kind.is_struct_array())


def _one_of(names: Iterable[str], fields: Mapping[str, Any]) -> str:
    return next(name for name in names if name in fields)


def _beside(each: _OfMessage | _OfFollower, message: Any, name: str) -> Any:
    value = getattr(message, each.model)
    return value if isinstance(each, _OfMessage) else value.get(name, 0 if message.replica_id >= 0 else -1)


class _TopicsAsked:
    """Metadata is asked of the topics that the model's names are of, without names of all."""

    def write(self, message: Any, fields: Mapping[str, Any], there: Place) -> dict[str, Any]:
        topics = [fields["topics"](name=name) for name in there.names.topics.values()]
        return {"topics": topics or None, "allow_auto_topic_creation": False}

    def read(self, wire: Any, fields: Mapping[str, Any], there: Place) -> dict[Any, Any]:
        return {}


class _BrokersKnown:
    """The brokers in metadata, those alone that the model's names are of; a server fills in where they listen."""

    def write(self, message: Any, fields: Mapping[str, Any], there: Place) -> dict[str, Any]:
        racks, names = message.racks, there.names
        return {
            "brokers": [
                fields["brokers"](node_id=names.broker(broker), host="", port=0, rack=racks.get(broker))
                for broker in message.brokers
            ]
        }

    def read(self, wire: Any, fields: Mapping[str, Any], there: Place) -> dict[Any, Any]:
        known = {there.names.own_broker(broker.node_id): broker.rack for broker in wire.brokers}
        own = {broker: rack for broker, rack in known.items() if broker is not None}
        return {
            "brokers": tuple(sorted(own)),
            "racks": {broker: rack for broker, rack in own.items() if rack},
        }


class _LeavingError:
    """What a member that leaves is answered: of the group, or of the member itself."""

    def write(self, message: Any, fields: Mapping[str, Any], there: Place) -> dict[str, Any]:
        return {"error_code": error_code(message.error), "members": []}

    def read(self, wire: Any, fields: Mapping[str, Any], there: Place) -> dict[Any, Any]:
        codes = (wire.error_code, *(member.error_code for member in wire.members))
        return {"error": error_name(next((code for code in codes if code), 0))}


class _RegisteringProcess:
    """The process that registers, of a broker that listens nowhere and supports every level of every feature."""

    def write(self, message: Any, fields: Mapping[str, Any], there: Place) -> dict[str, Any]:
        broker = there.names.broker(message.broker)
        return {
            "broker_id": broker,
            "cluster_id": there.cluster_id,
            "incarnation_id": UUID(int=_INCARNATION | broker << 32 | message.incarnation),
            "listeners": [
                fields["listeners"](name="PLAINTEXT", host="127.0.0.1", port=_NOWHERE, security_protocol=0)
            ],
            "features": [
                fields["features"](name=name, min_supported_version=0, max_supported_version=_LEVEL_MAX)
                for name in _FEATURES
            ],
            "rack": None,
            "is_migrating_zk_broker": False,
            "log_dirs": [UUID(int=_DIRECTORY | broker)],
        }

    def read(self, wire: Any, fields: Mapping[str, Any], there: Place) -> dict[Any, Any]:
        return {
            "broker": there.own_broker(wire.broker_id),
            "incarnation": wire.incarnation_id.int & _NUMBER_MASK,
        }


@dataclass(frozen=True, slots=True)
class _Shape:
    """A request and its answer, as some versions have them. *versions* are those that are asked in."""

    asks: type
    tells: type
    kind: Any
    versions: Sequence[int]
    request: tuple[_Part, ...]
    answer: tuple[_Part, ...]
    fits: Callable[[Any, BrokerConnection], bool] = lambda _request, _connection: True
    complete: Callable[[Any, Any], None] = lambda _answer, _request: None


def _offsets_asked_for(answer: Any, request: Any) -> None:
    """Give each partition what the group is answered: of a group with an error no partitions are told."""
    for name in request.partitions:
        answer.partitions.setdefault(name, (answer.error, messages.NO_OFFSET_COMMITTED))


def _adds_as_leader(request: messages.AddPartitionsToTxnRequest, connection: BrokerConnection) -> bool:
    """Return whether a leader sends a request, to verify or with transactions v2, and not a client."""
    return request.verify_only or connection.speaks(producer.EndTxnRequest, _ENDS_WITH_PRODUCER)


def _same(*names: str) -> tuple[_Part, ...]:
    """Return fields that are called alike on the wire and in the model, and are the same values."""
    return tuple(_Value(name, name) for name in names)


def _places(*parts: tuple[str, _Way] | str) -> tuple[_Part, ...]:
    """Return fields that are a tuple in the model."""
    named = ((part, _PLAIN) if isinstance(part, str) else part for part in parts)
    return tuple(_Value(name, place, way) for place, (name, way) in enumerate(named))


_CODE: Final = ("error_code", _ERROR)
_ERROR_ALONE: Final = _Value("error_code", "error", _ERROR)
_PRODUCER: Final = _same("producer_id", "producer_epoch")
_TRANSACTION: Final = (_Value("transactional_id", "transactional_id", _ID), *_PRODUCER)
_TRANSACTION_V3: Final = (
    _Value("v3_and_below_transactional_id", "transactional_id", _ID),
    _Value("v3_and_below_producer_id", "producer_id"),
    _Value("v3_and_below_producer_epoch", "producer_epoch"),
)
_READER: Final = (_Value("replica_id", "replica_id", _BROKER), _Value("isolation_level", "isolation_level"))
_GROUP: Final = _Value("group_id", "group", _ID)
_MEMBER: Final = (_Value("member_id", "member"), _Value("group_instance_id", "instance", _TEXT))
_GENERATION: Final = _Value("generation_id", "generation")
_GENERATION_OR_EPOCH: Final = _Value("generation_id_or_member_epoch", "generation")
_COMMIT: Final = (_Value("committed_offset", None), _Fixed("committed_leader_epoch", -1))
_OFFSETS: Final = _Partitions("offsets", "topics", (*_COMMIT, _Fixed("committed_metadata", "")))
_ERRORS: Final = _Partitions("partitions", "topics", (_Value("error_code", None, _ERROR),))
_COMMITTED: Final = _Partitions("partitions", "topics", _places(_CODE, "committed_offset"))
_THROTTLE: Final = _Value("throttle_time_ms", "throttle_us", _TIME)
_TXN_ERROR: Final = (_Value("partition_error_code", None, _ERROR),)
_BROKER_ID: Final = (_Value("broker_id", "broker", _BROKER), _Value("broker_epoch", "broker_epoch"))


def _shape(
    api: str,
    module: ModuleType,
    kind: Any,
    versions: Sequence[int],
    request: tuple[_Part, ...],
    answer: tuple[_Part, ...],
    **rest: Any,
) -> _Shape:
    """Return the shape of an API, which a module of the model has as a request and a response."""
    asks, tells = getattr(module, f"{api}Request"), getattr(module, f"{api}Response")
    return _Shape(asks, tells, kind, versions, request, answer, **rest)


_FETCH_REQUEST: Final[tuple[_Part, ...]] = (
    *_READER,
    _Value("max_wait_ms", "max_wait_us", _TIME),
    _Fixed("min_bytes", 1),
    *_same("max_bytes", "session_id", "session_epoch"),
    _Partitions(
        *("partitions", "topics", _places("fetch_offset", "current_leader_epoch"), None),
        (_OfMessage("partition_max_bytes", "max_bytes"), _OfFollower("log_start_offset", "log_starts")),
    ),
    _Partitions("forgotten", "forgotten_topics_data"),
)
_FETCHED: Final = (
    _ERROR_ALONE,
    _Value("high_watermark", "hw"),
    *_same("last_stable_offset", "log_start_offset"),
    _Value("records", "batches", _RECORDS),
    _Value("preferred_read_replica", "preferred_read_replica", _BROKER_IF_ANY),
    _Each("aborted_transactions", "aborted", _places("producer_id", "first_offset")),
)
_FETCH_ANSWER: Final = (
    *(_ERROR_ALONE, _THROTTLE, *_same("session_id")),
    _Partitions("partitions", "responses", _FETCHED, protocol.FetchedPartition),
)
_ENDS: Final[tuple[_Part, ...]] = (
    *_READER,
    _Partitions(
        *("partitions", "topics", (_Value("current_leader_epoch", None),), None),
        (_OfMessage("timestamp", "timestamp"),),
    ),
)
_EPOCHS: Final = (
    _Value("replica_id", "replica_id", _BROKER),
    _Partitions("partitions", "topics", _places("current_leader_epoch", "leader_epoch")),
)
_PRODUCE: Final = (
    _Value("transactional_id", "transactional_id", _ID),
    _Value("timeout_ms", "timeout_us", _TIME),
    *(*_same("acks"), _Partitions("batches", "topic_data", (_Value("records", None, _ONE_BATCH),))),
)
_JOIN: Final = (
    *(_GROUP, *_MEMBER, _Fixed("protocol_type", "consumer"), _Fixed("reason", None)),
    _Value("session_timeout_ms", "session_timeout_us", _TIME),
    _Value("rebalance_timeout_ms", "rebalance_timeout_us", _TIME),
    _Each("protocols", "protocols", _places("name", ("metadata", _SUBSCRIPTION))),
)
_JOINED: Final = (
    *(_ERROR_ALONE, _GENERATION, *_same("leader"), _Value("member_id", "member")),
    _Value("protocol_name", "protocol", _TEXT_IF_ANY),
    _Value("skip_assignment", "skip_assignment", _FLAG),
    _Each(
        "members", "members", _places("member_id", ("group_instance_id", _TEXT), ("metadata", _SUBSCRIPTION))
    ),
)
_ASSIGNED: Final = _Each(
    "assignments", "assignments", _places("member_id", ("assignment", _ASSIGNMENT)), dict
)
_COMMITTED_TO_MEMBER: Final = (
    *(_GROUP, _Value("member_id", "member", _TEXT), _Value("member_epoch", "epoch")),
    _Partitions("partitions", "topics"),
)
_CONSUMER: Final = (
    *(_GROUP, _Value("member_id", "member"), _Value("member_epoch", "epoch")),
    _Value("instance_id", "instance", _TEXT),
    _Value("rebalance_timeout_ms", "rebalance_timeout_us", _TIME_IF_ANY),
    _Value("subscribed_topic_names", "topics", _TOPICS),
    _Value("server_assignor", "assignor"),
    _Partitions("owned", "topic_partitions"),
)
_CONSUMER_ASSIGNED: Final = (
    *(_ERROR_ALONE, _Value("member_id", "member", _TEXT), _Value("member_epoch", "epoch")),
    _Value("heartbeat_interval_ms", "heartbeat_interval_us", _TIME),
    _Inside("assignment", (_Partitions("assignment", "topic_partitions"),)),
)
_ALIVE: Final = (_Value("current_metadata_offset", "metadata_offset"), *_same("want_fence", "want_shut_down"))
_ISR: Final = (
    *(*_same("leader_epoch", "partition_epoch"), _Fixed("leader_recovery_state", 0)),
    _Each("new_isr_with_epochs", "isr", _places(("broker_id", _BROKER), "broker_epoch")),
)


def _of_partitions(*parts: tuple[str, _Way] | str, array: str = "topics") -> _Partitions:
    """Return what a tuple says of each partition in an answer."""
    return _Partitions("partitions", array, _places(*parts))


_NAMED: Final = _Partitions("partitions", "topics")
_VERIFIED: Final = _Partitions("partitions", "topic_results", _TXN_ERROR)

# fmt: off
_SHAPES: Final = (
    _shape("Produce", protocol, producer.ProduceRequest, range(3, 13),
        _PRODUCE, (_of_partitions(_CODE, "base_offset", array="responses"), _THROTTLE)),
    # With later versions a follower answers a consumer, too.
    _shape("Fetch", protocol, consumer.FetchRequest, range(5, 11), _FETCH_REQUEST, _FETCH_ANSWER,
        fits=lambda request, _: request.rack is None),
    _shape("Fetch", protocol, consumer.FetchRequest, range(5, 12),
        (*_FETCH_REQUEST, _Value("rack_id", "rack", _RACK)), _FETCH_ANSWER),
    _shape("ListOffsets", protocol, consumer.ListOffsetsRequest, range(2, 6),
        _ENDS, (_of_partitions(_CODE, "offset"),)),
    _shape("OffsetsForLeaderEpoch", protocol, consumer.OffsetForLeaderEpochRequest, range(4),
        _EPOCHS, (_of_partitions(_CODE, "leader_epoch", "end_offset"),)),
    _shape("InitProducerId", protocol, producer.InitProducerIdRequest, range(6),
        (*_TRANSACTION, _Value("transaction_timeout_ms", "transaction_timeout_us", _TIME)),
        (_ERROR_ALONE, *_PRODUCER)),
    _shape("Metadata", protocol, metadata.MetadataRequest, range(4, 10),
        (_TopicsAsked(),), (_BrokersKnown(), _of_partitions(("leader_id", _BROKER), "leader_epoch"))),
    _shape("FindCoordinator", messages, metadata.FindCoordinatorRequest, range(1, 4),
        (_Value("key", "key", _ID), _Value("key_type", "topic", _KEY_TYPE)),
        (_ERROR_ALONE, _Value("node_id", "node", _BROKER))),

    # Transactions. What leaders send comes from 3.6 on.
    _shape("AddPartitionsToTxn", messages, producer.AddPartitionsToTxnRequest, range(4, 6),
        (_Inside("transactions", (*_TRANSACTION, *_same("verify_only"), _NAMED)),),
        (_Inside("results_by_transaction", (_VERIFIED,)),),
        fits=_adds_as_leader),
    _shape("AddPartitionsToTxn", messages, producer.AddPartitionsToTxnRequest, range(4),
        (*_TRANSACTION_V3, _Partitions("partitions", "v3_and_below_topics")),
        (_Partitions("partitions", "results_by_topic_v3_and_below", _TXN_ERROR),)),
    _shape("AddOffsetsToTxn", messages, producer.AddOffsetsToTxnRequest, range(5),
        (*_TRANSACTION, _GROUP), (_ERROR_ALONE,)),
    _shape("TxnOffsetCommit", messages, TXN_OFFSET_COMMIT, range(7),
        (*_TRANSACTION, _GROUP, *_MEMBER, _GENERATION_OR_EPOCH, _OFFSETS), (_ERRORS,)),
    _shape("EndTxn", messages, producer.EndTxnRequest, range(6),
        (*_TRANSACTION, *_same("committed")), (_ERROR_ALONE, *_PRODUCER)),

    # Groups
    _shape("JoinGroup", messages, consumer.JoinGroupRequest, range(4, 10), _JOIN, _JOINED),
    _shape("SyncGroup", messages, consumer.SyncGroupRequest, range(3, 5),
        (_GROUP, *_MEMBER, _GENERATION, _ASSIGNED),
        (_ERROR_ALONE, _Value("assignment", "partitions", _ASSIGNMENT))),
    _shape("Heartbeat", messages, consumer.HeartbeatRequest, range(3, 5),
        (_GROUP, *_MEMBER, _GENERATION), (_ERROR_ALONE,)),
    _shape("LeaveGroup", messages, consumer.LeaveGroupRequest, range(3, 6),
        (_GROUP, _Inside("members", (*_MEMBER, _Fixed("reason", None)))), (_LeavingError(),)),
    _shape("OffsetCommit", messages, consumer.OffsetCommitRequest, range(7, 10),
        (_GROUP, *_MEMBER, _GENERATION_OR_EPOCH, _OFFSETS), (_ERRORS,)),
    _shape("OffsetFetch", messages, consumer.OffsetFetchRequest, range(5, 8),
        (_GROUP, _NAMED, *_same("require_stable")), (_COMMITTED, _ERROR_ALONE),
        fits=lambda request, _: (request.member, request.epoch) == (messages.NO_MEMBER, messages.NO_GENERATION)),
    _shape("OffsetFetch", messages, consumer.OffsetFetchRequest, range(9, 10),
        (_Inside("groups", _COMMITTED_TO_MEMBER), *_same("require_stable")),
        (_Inside("groups", (_COMMITTED, _ERROR_ALONE)),),
        complete=_offsets_asked_for),
    _shape("ConsumerGroupHeartbeat", messages, CONSUMER_GROUP_HEARTBEAT, range(2), _CONSUMER, _CONSUMER_ASSIGNED),

    # Controllers. 3.6 knows no directory of logs, nor a broker's epoch in its former life; 4.0 speaks all.
    _shape("BrokerRegistration", kraft, BROKER_REGISTRATION, range(5),
        (_RegisteringProcess(), *_same("previous_broker_epoch")), (_ERROR_ALONE, *_same("broker_epoch"))),
    _shape("BrokerHeartbeat", kraft, BROKER_HEARTBEAT, range(1),
        (*_BROKER_ID, *_ALIVE), (_ERROR_ALONE, *_same("is_caught_up", "is_fenced", "should_shut_down"))),
    _shape("AlterPartition", protocol, ALTER_PARTITION, range(3, 4),
        (*_BROKER_ID, _Partitions("partitions", "topics", _ISR, protocol.AlterPartition)),
        (_ERROR_ALONE, _of_partitions(_CODE, "partition_epoch"))),
)
# fmt: on

_BY_VERSION: Final = {
    (shape.kind.API_KEY, version): shape for shape in reversed(_SHAPES) for version in shape.versions
}


@dataclass(frozen=True, slots=True)
class Sent:
    """A request of the model, and what it is on the wire."""

    request: Any
    wire: Any
    _shape: _Shape
    _there: Place

    def answer(self, wire: Any) -> Any:
        """Return an answer as the model has it.

        Raises:
            ConnectionLostError: it is the answer to something else.

        """
        told = self._shape.tells(**_read(self._shape.answer, wire, _fields(wire), self._there))
        self._shape.complete(told, self.request)
        return told


def to_wire(
    request: Any, connection: BrokerConnection, there: Place = HERE, versions: Iterable[int] = ()
) -> Sent:
    """Return a request in the newest version that a broker speaks, of all that are asked in, or of some.

    Raises:
        ConnectionLostError: the broker does not say what it speaks, or speaks none of them.

    """
    shape = next(each for each in _SHAPES if each.asks is type(request) and each.fits(request, connection))
    kind = shape.kind[connection.version_of(shape.kind, *(versions or shape.versions))]
    return Sent(request, kind(**_written(shape.request, request, _fields(kind), there)), shape, there)


def asked(
    connection: BrokerConnection, request: Any, there: Place = HERE, versions: Iterable[int] = ()
) -> Any:
    """Send a request, and return the answer, both in the model's words.

    Raises:
        ConnectionLostError: there is no answer, or none to this request.

    """
    sent = to_wire(request, connection, there, versions)
    return sent.answer(connection.ask(sent.wire))


def fetched_batches(
    connection: BrokerConnection, request: protocol.FetchRequest, versions: Iterable[int] = ()
) -> dict[str, tuple[str, list[Any]]]:
    """Send a fetch, and return for each partition its error and the batches of kafka-python, as they are stored.

    They have what the model's batches lack: keys, and offsets up to the end of a batch that was compacted.

    Raises:
        ConnectionLostError: there is no answer, or none to this request.

    """
    answer = connection.ask(to_wire(request, connection, versions=versions).wire)
    return {
        f"{topic.topic}-{told.partition_index}": (
            error_name(told.error_code),
            [batch for batch, _ in whole_batches(bytes(told.records or b""))],
        )
        for topic in answer.responses
        for told in topic.partitions
    }


def request_from_wire(wire: Any, there: Place = HERE) -> Any:
    """Return a request that a client has sent as the model has it."""
    shape = _BY_VERSION[wire.API_KEY, wire.API_VERSION]
    return shape.asks(**_read(shape.request, wire, _fields(wire), there))


def answer_to_wire(wire: Any, answer: Any, there: Place = HERE) -> Any:
    """Return the model's answer to a request that a client has sent (*wire*), in the same version."""
    shape = _BY_VERSION[wire.API_KEY, wire.API_VERSION]
    kind = wire.header.get_response_class()
    return kind(**_written(shape.answer, answer, _fields(kind), there))


def _fields(message: Any) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = message._struct.fields  # noqa: SLF001 - has no other name
    return fields

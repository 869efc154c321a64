"""Translates between messages of the model and messages of Kafka.

`_SHAPES` declares each message once, field by field, for both directions. Clients use `exchange`
and `to_wire`, servers use `request_from_wire` and `answer_to_wire`.

Most schemas come from kafka-python, and `harrow.live_cluster.wire.schemas` adds those that it
lacks. This file maps their fields to attributes of the model. It converts milliseconds to
microseconds, error numbers to names, and topics with nested partitions to partition names.

kio 0.6 was considered in place of kafka-python's schemas. It decodes metadata of 100 partitions in
0.05 ms (kafka-python takes 0.65 ms), and encodes it in 2.7 ms (1.1 ms). It has only the versions
that Kafka 4.0 to 4.3 supports: it lacks Fetch 3 and CreateTopics 1, which 0.10.2 needs, and
TxnOffsetCommit 6 of 4.4. kafka-python is installed in any case, because it is one of the clients
under test.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol
from uuid import UUID

from kafka.protocol import admin, consumer, metadata, producer

from harrow.cluster_model import protocol
from harrow.cluster_model.controller import administration
from harrow.cluster_model.controller.new_topics import LIFE
from harrow.cluster_model.coordinators import protocol as messages
from harrow.cluster_model.kraft import protocol as kraft
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.cluster_model.topic_settings import ALL_BROKERS, brokers_resource, is_of_brokers
from harrow.cluster_model.topology import CONSUMER_OFFSETS, TRANSACTION_STATE
from harrow.live_cluster.names import SAME_NAMES, Names
from harrow.live_cluster.wire.connection import BrokerConnection, only
from harrow.live_cluster.wire.contents import MODEL_CONTENTS, Contents
from harrow.live_cluster.wire.errors import error_code, error_name
from harrow.live_cluster.wire.schemas import (
    ALTER_PARTITION,
    BROKER_HEARTBEAT,
    BROKER_REGISTRATION,
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    TXN_OFFSET_COMMIT,
)
from harrow.live_cluster.wire.stored_batches import whole_batches

_UNUSED_PORT: Final = 1
"""A port on which nothing listens."""
_FEATURES: Final = (
    *("metadata.version", "kraft.version", "transaction.version", "group.version"),
    *("eligible.leader.replicas.version", "share.version", "streams.version"),
)
_FEATURE_LEVEL_MAX: Final = 10_000
_INCARNATION, _DIRECTORY = 1 << 96, 1 << 97
"""The first ids of processes and of log directories: Kafka reserves the lowest ones
(``Uuid.RESERVED``)."""
UNKNOWN_TOPIC_ID: Final = "UNKNOWN_TOPIC_ID"
"""The error for an id that no topic has (KIP-516)."""
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
"""The types of topics and brokers among resources with settings (``ConfigResource.Type``)."""
_NUMBER_MASK: Final = 0xFFFFFFFF


class Address(NamedTuple):
    """Where a broker listens; empty if there is no such broker."""

    host: str = ""
    port: int = -1


_NO_ADDRESS: Final = Address()
_ZERO_ID: Final = UUID(int=0)
"""The id of no topic; kafka-python decodes it as None."""


@dataclass(frozen=True, slots=True)
class Naming:
    """How a cluster names the brokers, topics and groups of a message, and writes its contents.

    Groups and transactional ids get a *suffix*. *ids* are the ids of topics, by their names on the
    cluster. A server also has *find_topic*, which returns the model's name of the topic with an id,
    and its answers have the *addresses* of brokers.
    """

    names: Names = SAME_NAMES
    suffix: str = ""
    ids: Mapping[str, UUID] = field(default_factory=lambda: MappingProxyType({}))
    cluster_id: str = ""
    contents: Contents = MODEL_CONTENTS
    addresses: Mapping[int, Address] = field(default_factory=lambda: MappingProxyType({}))
    find_topic: Callable[[UUID], str | None] | None = None

    def topic_of(self, topic: Any) -> str:
        """Return the model's name of a topic in a message, which has a name or an id.

        A topic with an unknown id gets a name that no topic has, so that its partitions do not
        exist either.
        """
        name = next((value for key in _NAMES if (value := getattr(topic, key, None))), None)
        if name is not None:
            return self.names.campaign_topic(name)
        id_ = topic.topic_id or _ZERO_ID
        found = self._with_id(id_) if self.find_topic is None else self.find_topic(id_)
        return f"{LIFE}{id_}" if found is None else found

    def _with_id(self, id_: UUID) -> str | None:
        found = next((name for name, each in self.ids.items() if each == id_), None)
        return None if found is None else self.names.campaign_topic(found)

    def id_of(self, topic: str) -> UUID | None:
        """Return the id of one of the model's topics, or the unknown id that `topic_of` named."""
        if topic.startswith(LIFE):
            return UUID(topic.removeprefix(LIFE))
        return self.ids.get(self.names.cluster_topic(topic))

    def campaign_broker(self, broker: int) -> int:
        """Return the model's id of a broker, or the same id if the model has none, as for -1."""
        own = self.names.campaign_broker(broker)
        return broker if own is None else own


MODEL_NAMING: Final = Naming()
_NAMES: Final = ("name", "topic", "topic_name")
_INDEXES: Final = ("partition_index", "partition", "index", "partition_id")


class _Conversion(NamedTuple):
    """How to write and how to read a value."""

    to_wire: Callable[[Any, Naming], Any]
    to_model: Callable[[Any, Naming], Any]


_PLAIN: Final = _Conversion(lambda value, _: value, lambda value, _: value)
_ERROR: Final = _Conversion(lambda name, _: error_code(name), lambda code, _: error_name(code))
_TIME: Final = _Conversion(lambda us, _: us // US_PER_MS, lambda ms, _: ms * US_PER_MS)
_TIME_IF_ANY: Final = _Conversion(
    lambda us, _: -1 if us is None else us // US_PER_MS, lambda ms, _: None if ms < 0 else ms * US_PER_MS
)
_TEXT: Final = _Conversion(lambda text, _: text or None, lambda text, _: text or "")
_TEXT_IF_ANY: Final = _Conversion(lambda text, _: text, lambda text, _: text or "")
_FLAG: Final = _Conversion(lambda flag, _: flag, lambda flag, _: bool(flag))
_ID: Final = _Conversion(
    lambda name, naming: name + naming.suffix if name else None,
    lambda name, naming: (name or "").removesuffix(naming.suffix),
)
_ONLY_ID: Final = _Conversion(
    lambda name, naming: [_ID.to_wire(name, naming)],
    lambda names, naming: _ID.to_model(only(names, "keys"), naming),
)
_BROKER: Final = _Conversion(
    lambda own, naming: naming.names.cluster_broker(own), lambda id_, naming: naming.campaign_broker(id_)
)
_BROKER_IF_ANY: Final = _Conversion(
    lambda own, naming: -1 if own is None else naming.names.cluster_broker(own),
    lambda id_, naming: None if id_ < 0 else naming.campaign_broker(id_),
)
_RACK: Final = _Conversion(lambda rack, _: rack or "", lambda rack, _: rack)
_KEY_TYPE: Final = _Conversion(
    lambda topic, _: int(topic == TRANSACTION_STATE),
    lambda kind, _: TRANSACTION_STATE if kind else CONSUMER_OFFSETS,
)
_TOPICS: Final = _Conversion(
    lambda topics, naming: None if topics is None else [topic + naming.suffix for topic in topics],
    lambda names, naming: (
        None
        if names is None
        else tuple(naming.names.campaign_topic(name.removesuffix(naming.suffix)) for name in names)
    ),
)
_GROUP_NAMES: Final = _Conversion(
    lambda groups, naming: [_ID.to_wire(group, naming) for group in groups],
    lambda names, naming: tuple(_ID.to_model(name, naming) for name in names),
)
_WORDS: Final = _Conversion(lambda words, _: list(words), lambda words, _: tuple(words or ()))
_TOPIC: Final = _Conversion(
    lambda topic, naming: naming.names.cluster_topic(topic),
    lambda name, naming: naming.names.campaign_topic(name),
)
_TOPIC_NAMES: Final = _Conversion(
    lambda topics, naming: [naming.names.cluster_topic(topic) for topic in topics],
    lambda names, naming: tuple(naming.names.campaign_topic(name) for name in names or ()),
)
_BROKERS: Final = _Conversion(
    lambda own, naming: None if own is None else [naming.names.cluster_broker(broker) for broker in own],
    lambda ids, naming: None if ids is None else tuple(naming.campaign_broker(id_) for id_ in ids),
)
_SUBSCRIPTION: Final = _Conversion(
    lambda value, naming: naming.contents.subscription_bytes(value),
    lambda data, naming: naming.contents.subscription(bytes(data)),
)
_ASSIGNMENT: Final = _Conversion(
    lambda partitions, naming: naming.contents.assignment_bytes(partitions),
    lambda data, naming: naming.contents.assignment(bytes(data or b"")),
)
_RECORDS: Final = _Conversion(
    lambda batches, naming: b"".join(map(naming.contents.batch_bytes, batches)),
    lambda data, naming: naming.contents.batches(bytes(data or b"")),
)
_ONE_BATCH: Final = _Conversion(
    lambda batch, naming: _RECORDS.to_wire((batch,), naming),
    lambda data, naming: only(_RECORDS.to_model(data, naming), "batches"),
)


class _Part(Protocol):
    """A part of a message. *fields* are the fields of the schema in all versions."""

    def write(self, message: Any, fields: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
        """Return the values of fields on the wire."""

    def read(self, wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
        """Return the values of the model's attributes."""


def _write_all(
    parts: Iterable[_Part], message: Any, fields: Mapping[str, Any], naming: Naming
) -> dict[str, Any]:
    return {name: value for part in parts for name, value in part.write(message, fields, naming).items()}


def _read_all(parts: Iterable[_Part], wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
    return {name: value for part in parts for name, value in part.read(wire, fields, naming).items()}


def _build(kind: Callable[..., Any] | None, values: Mapping[Any, Any]) -> Any:
    """Return ``kind(**values)`` or, without a kind, a tuple by position or the value for None."""
    if kind is not None:
        return kind(**values)
    return values[None] if None in values else tuple(values[position] for position in sorted(values))


def _attribute(message: Any, name: str | int) -> Any:
    """Return an attribute of a message, or an item of a tuple."""
    return getattr(message, name) if isinstance(name, str) else message[name]


class _Value(NamedTuple):
    """A field and its attribute: by name, by position in a tuple, or None for the only value."""

    wire: str
    model: str | int | None
    conversion: _Conversion = _PLAIN

    def write(self, message: Any, fields: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
        value = message if self.model is None else _attribute(message, self.model)
        return {self.wire: self.conversion.to_wire(value, naming)}

    def read(self, wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
        return {self.model: self.conversion.to_model(getattr(wire, self.wire), naming)}


class _Fixed(NamedTuple):
    """A field that the model does not have."""

    wire: str
    value: Any

    def write(self, message: Any, fields: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
        return {self.wire: self.value}

    def read(self, wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
        return {}


class _Nested(NamedTuple):
    """Attributes that the wire nests in a struct, or in an array of one struct."""

    wire: str
    parts: tuple[_Part, ...]

    def write(self, message: Any, fields: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
        kind = fields[self.wire]
        values = _write_all(self.parts, message, kind.fields, naming)
        if kind.is_struct_array():
            return {self.wire: [kind(**values)]}
        return {self.wire: None if None in values.values() else kind(**values)}

    def read(self, wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
        kind, struct = fields[self.wire], getattr(wire, self.wire)
        if kind.is_struct_array():
            struct = only(struct, self.wire)
        return {} if struct is None else _read_all(self.parts, struct, kind.fields, naming)


class _Array(NamedTuple):
    """An attribute with several values, which is an array of structs on the wire."""

    wire: str
    model: str | int
    parts: tuple[_Part, ...]
    kind: Callable[[Iterable[Any]], Any] = tuple
    item: Callable[..., Any] | None = None

    def write(self, message: Any, fields: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
        values, kind = _attribute(message, self.model), fields[self.wire]
        if values is None:
            return {self.wire: None}
        values = values.items() if isinstance(values, Mapping) else values
        return {self.wire: [kind(**_write_all(self.parts, value, kind.fields, naming)) for value in values]}

    def read(self, wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
        inner = fields[self.wire].fields
        structs = getattr(wire, self.wire) or ()
        values = (_build(self.item, _read_all(self.parts, struct, inner, naming)) for struct in structs)
        return {self.model: self.kind(values)}


class _ByTopic(NamedTuple):
    """An attribute with a value for each topic, which is an array of structs on the wire."""

    wire: str
    model: str
    parts: tuple[_Part, ...]
    kind: Callable[..., Any] | None = None
    name: str = "name"

    def write(self, message: Any, fields: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
        kind = fields[self.wire]
        return {
            self.wire: [
                kind(
                    **{self.name: naming.names.cluster_topic(topic)},
                    **_write_all(self.parts, value, kind.fields, naming),
                )
                for topic, value in getattr(message, self.model).items()
            ]
        }

    def read(self, wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
        inner = fields[self.wire].fields
        return {
            self.model: {
                naming.names.campaign_topic(getattr(struct, self.name)): _build(
                    self.kind, _read_all(self.parts, struct, inner, naming)
                )
                for struct in getattr(wire, self.wire) or ()
            }
        }


class _MessageField(NamedTuple):
    """A field of each partition on the wire that is one attribute of the model's message."""

    wire: str
    model: str


class _Partitions(NamedTuple):
    """An attribute with a value for each partition name.

    On the wire it is an array of topics with their partitions. Without *parts* it is a list of
    partitions: names in the model, numbers on the wire.
    """

    model: str
    wire: str
    parts: tuple[_Part, ...] = ()
    kind: Callable[..., Any] | None = None
    extras: tuple[_MessageField, ...] = ()

    def write(self, message: Any, fields: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
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
                    **_write_all(self.parts, partitions[name], inner.fields, naming),
                    **{extra.wire: getattr(message, extra.model) for extra in self.extras},
                )
                if topic.startswith(LIFE) and "error_code" in inner.fields:
                    entry.error_code = error_code(UNKNOWN_TOPIC_ID)
            by_topic.setdefault(topic, []).append(entry)
        return {
            self.wire: [
                kind(
                    **{_one_of(_NAMES, kind.fields): naming.names.cluster_topic(topic)}
                    if set(_NAMES) & kind.fields.keys()
                    else {},
                    **{"topic_id": naming.id_of(topic)} if "topic_id" in kind.fields else {},
                    **{array: partitions_of_topic},
                )
                for topic, partitions_of_topic in by_topic.items()
            ]
        }

    def read(self, wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
        topics = getattr(wire, self.wire)
        if topics is None:
            return {self.model: None}
        array, inner = _array_in(fields[self.wire].fields)
        entries = [
            (naming.topic_of(topic), partition)
            for topic in topics
            for partition in getattr(topic, array) or ()
        ]
        if not self.parts:
            return {self.model: tuple(_partition_name(topic, number) for topic, number in entries)}
        index = _one_of(_INDEXES, inner.fields)
        partitions = {
            _partition_name(topic, getattr(partition, index)): partition for topic, partition in entries
        }
        attributes: dict[Any, Any] = {
            self.model: {
                name: _build(self.kind, _read_all(self.parts, partition, inner.fields, naming))
                for name, partition in partitions.items()
            }
        }
        for extra in self.extras if partitions else ():
            attributes[extra.model] = getattr(next(iter(partitions.values())), extra.wire)
        return attributes


def _partition_name(topic: str, number: int) -> str:
    if number < 0:
        raise ValueError(f"partition {number} of {topic}")
    return f"{topic}-{number}"


def _array_in(fields: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the only array among the fields of a topic: the one with its partitions."""
    return next((name, kind) for name, kind in fields.items() if kind.is_array() or kind.is_struct_array())


def _one_of(names: Iterable[str], fields: Mapping[str, Any]) -> str:
    return next(name for name in names if name in fields)


class _ReplicaLists(NamedTuple):
    """The replicas of each of several partitions, None if the sender leaves them open."""

    wire: str
    model: str

    def write(self, message: Any, fields: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
        kind, assignment = fields[self.wire], getattr(message, self.model)
        if assignment is None:
            return {self.wire: None}
        return {self.wire: [kind(broker_ids=_BROKERS.to_wire(each, naming)) for each in assignment]}

    def read(self, wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
        structs = getattr(wire, self.wire)
        if structs is None:
            return {self.model: None}
        return {self.model: tuple(_BROKERS.to_model(each.broker_ids, naming) for each in structs)}


class _TopicsOrIds(NamedTuple):
    """Topics that a request names or gives by their ids."""

    wire: str
    model: str

    def write(self, message: Any, fields: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
        names = (naming.names.cluster_topic(topic) for topic in getattr(message, self.model))
        return {self.wire: [fields[self.wire](name=name) for name in names]}

    def read(self, wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
        return {self.model: tuple(naming.topic_of(topic) for topic in getattr(wire, self.wire) or ())}


def _resource_to_wire(resource: str, naming: Naming) -> dict[str, Any]:
    if is_of_brokers(resource):
        return {"resource_type": BROKER_RESOURCE, "resource_name": resource.removeprefix(ALL_BROKERS)}
    return {"resource_type": TOPIC_RESOURCE, "resource_name": naming.names.cluster_topic(resource)}


def _resource_from_wire(resource: Any, naming: Naming) -> str:
    name: str = resource.resource_name
    is_topic = resource.resource_type == TOPIC_RESOURCE
    return naming.names.campaign_topic(name) if is_topic else brokers_resource(name)


class _SettingChanges:
    """The changes of the settings of topics and brokers. Other resources are not among them."""

    def write(self, message: Any, fields: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
        kind = fields["resources"]
        return {
            "resources": [
                kind(
                    **_resource_to_wire(topic, naming),
                    configs=[
                        kind.fields["configs"](name=name, config_operation=operation, value=value)
                        for name, operation, value in changes
                    ],
                )
                for topic, changes in message.changes.items()
            ]
        }

    def read(self, wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
        return {
            "changes": {
                _resource_from_wire(resource, naming): tuple(
                    (each.name, getattr(each, "config_operation", administration.SET), each.value)
                    for each in resource.configs
                )
                for resource in wire.resources
                if resource.resource_type in (TOPIC_RESOURCE, BROKER_RESOURCE)
            }
        }


class _SettingOutcomes:
    """The outcome of the changes of the settings of each topic, and of brokers."""

    def write(self, message: Any, fields: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
        return {
            "responses": [
                fields["responses"](
                    error_code=error_code(error),
                    error_message=text or None,
                    **_resource_to_wire(topic, naming),
                )
                for topic, (error, text) in message.topics.items()
            ]
        }

    def read(self, wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
        return {
            "topics": {
                _resource_from_wire(each, naming): (
                    error_name(each.error_code),
                    each.error_message or "",
                )
                for each in wire.responses
            }
        }


class _ElectionType:
    """The kind of an election. Before version 1 of ElectLeaders it is that of preferred leaders."""

    def write(self, message: Any, fields: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
        return {"election_type": message.election}

    def read(self, wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
        is_chosen = wire.API_VERSION > 0
        return {"election": wire.election_type if is_chosen else administration.PREFERRED}


class _NumberedPartitions(NamedTuple):
    """Partitions that a request names by topics and numbers in the field *numbers*."""

    numbers: str

    def write(self, message: Any, fields: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
        if message.partitions is None:
            return {"topics": None}
        numbers: dict[str, list[int]] = {}
        for name in message.partitions:
            topic, _, number = name.rpartition("-")
            numbers.setdefault(naming.names.cluster_topic(topic), []).append(int(number))
        kind = fields["topics"]
        return {"topics": [kind(name=topic, **{self.numbers: each}) for topic, each in numbers.items()]}

    def read(self, wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
        if wire.topics is None:
            return {"partitions": None}
        return {
            "partitions": tuple(
                _partition_name(naming.topic_of(topic), number)
                for topic in wire.topics
                for number in getattr(topic, self.numbers)
            )
        }


class _RequestedTopics:
    """The topics of a metadata request: those that have names in the model, or all if none has."""

    def write(self, message: Any, fields: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
        topics = [fields["topics"](name=name) for name in naming.names.topics.values()]
        return {"topics": topics or None, "allow_auto_topic_creation": False}

    def read(self, wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
        # A topic has a name or an id. A null list, and in version 0 an empty one, means all topics.
        names = [topic.name for topic in wire.topics or () if topic.name is not None]
        return {
            "topics": tuple(map(naming.names.campaign_topic, dict.fromkeys(names))),
            "allow_auto_topic_creation": wire.allow_auto_topic_creation,
        }


class _MetadataBrokers:
    """The brokers in metadata that have an id in the model."""

    def write(self, message: Any, fields: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
        racks, names = message.racks, naming.names
        return {
            "brokers": [
                fields["brokers"](
                    node_id=names.cluster_broker(broker),
                    rack=racks.get(broker),
                    **naming.addresses.get(broker, _NO_ADDRESS)._asdict(),
                )
                for broker in message.brokers
            ]
        }

    def read(self, wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
        racks = {naming.names.campaign_broker(broker.node_id): broker.rack for broker in wire.brokers}
        return {
            "brokers": tuple(sorted(broker for broker in racks if broker is not None)),
            "racks": {broker: rack for broker, rack in racks.items() if rack and broker is not None},
        }


class _NodeAddress:
    """The address of the node that a response names."""

    def write(self, message: Any, fields: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
        return naming.addresses.get(message.node, _NO_ADDRESS)._asdict()

    def read(self, wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
        return {}


class _OptionalPair(NamedTuple):
    """A pair of numbers that may be missing, with the names of its fields."""

    wire: str
    model: str
    first: str
    second: str

    def write(self, message: Any, fields: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
        pair = getattr(message, self.model)
        if pair is None:
            return {}
        return {self.wire: fields[self.wire](**{self.first: pair[0], self.second: pair[1]})}

    def read(self, wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
        pair = getattr(wire, self.wire)
        is_missing = pair is None or getattr(pair, self.first) < 0
        return {self.model: None if is_missing else (getattr(pair, self.first), getattr(pair, self.second))}


class _ReplicaState:
    """The broker that fetches. Since version 15 of Fetch it has a struct of its own (KIP-903)."""

    def write(self, message: Any, fields: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
        return {}

    def read(self, wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
        state = getattr(wire, "replica_state", None)
        return {"replica_id": naming.campaign_broker(wire.replica_id if state is None else state.replica_id)}


class _LeaveError:
    """The error of a LeaveGroup response, which is the group's or the member's."""

    def write(self, message: Any, fields: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
        return {"error_code": error_code(message.error), "members": []}

    def read(self, wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
        codes = (wire.error_code, *(member.error_code for member in wire.members))
        return {"error": error_name(next((code for code in codes if code), 0))}


class _JoinTimeouts:
    """The timeouts of a member; before version 1 of JoinGroup there is only that of its session."""

    def write(self, message: Any, fields: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
        return {
            "session_timeout_ms": message.session_timeout_us // US_PER_MS,
            "rebalance_timeout_ms": message.rebalance_timeout_us // US_PER_MS,
        }

    def read(self, wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
        session_ms, rebalance_ms = wire.session_timeout_ms, wire.rebalance_timeout_ms
        return {
            "session_timeout_us": session_ms * US_PER_MS,
            "rebalance_timeout_us": (session_ms if rebalance_ms < 0 else rebalance_ms) * US_PER_MS,
        }


class _Attribute(NamedTuple):
    """An attribute of the model that has the same value in each message of a shape."""

    model: str | None
    value: Any

    def write(self, message: Any, fields: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
        return {}

    def read(self, wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
        return {self.model: self.value}


class _SinceVersion(NamedTuple):
    """A flag of transactional requests that only their version shows (KIP-890)."""

    model: str
    version: int

    def write(self, message: Any, fields: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
        return {}

    def read(self, wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
        return {self.model: self.version <= wire.API_VERSION and bool(wire.transactional_id)}


class _RegistrationFields:
    """The registration of a process without listeners that supports every feature level."""

    def write(self, message: Any, fields: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
        broker = naming.names.cluster_broker(message.broker)
        return {
            "broker_id": broker,
            "cluster_id": naming.cluster_id,
            "incarnation_id": UUID(int=_INCARNATION | broker << 32 | message.incarnation),
            "listeners": [
                fields["listeners"](
                    name="PLAINTEXT", host="127.0.0.1", port=_UNUSED_PORT, security_protocol=0
                )
            ],
            "features": [
                fields["features"](
                    name=name, min_supported_version=0, max_supported_version=_FEATURE_LEVEL_MAX
                )
                for name in _FEATURES
            ],
            "rack": None,
            "is_migrating_zk_broker": False,
            "log_dirs": [UUID(int=_DIRECTORY | broker)],
        }

    def read(self, wire: Any, fields: Mapping[str, Any], naming: Naming) -> dict[Any, Any]:
        return {
            "broker": naming.campaign_broker(wire.broker_id),
            "incarnation": wire.incarnation_id.int & _NUMBER_MASK,
        }


@dataclass(frozen=True, slots=True)
class _Shape:
    """A request and its response, in the *versions* that harrow sends.

    harrow also answers requests in the versions ``answered``. ``fits`` says whether a request can
    be sent in this shape; ``complete`` fills in a response from its request.
    """

    request_type: type
    response_type: type
    kind: Any
    versions: Sequence[int]
    request: tuple[_Part, ...]
    answer: tuple[_Part, ...]
    answered: Sequence[int] = ()
    fits: Callable[[Any, BrokerConnection], bool] = lambda _request, _connection: True
    complete: Callable[[Any, Any], None] = lambda _answer, _request: None


def _fill_in_offsets(answer: Any, request: Any) -> None:
    """Give each requested partition the group's error: such a response has no partitions."""
    for name in request.partitions or ():
        answer.partitions.setdefault(name, (answer.error, messages.NO_OFFSET_COMMITTED))


def _same(*names: str) -> tuple[_Part, ...]:
    """Return fields that have the same name and value on the wire and in the model."""
    return tuple(_Value(name, name) for name in names)


def _tuple_fields(*parts: tuple[str, _Conversion] | str) -> tuple[_Part, ...]:
    """Return fields that are a tuple in the model."""
    named = ((part, _PLAIN) if isinstance(part, str) else part for part in parts)
    return tuple(_Value(name, position, conversion) for position, (name, conversion) in enumerate(named))


_CODE: Final = ("error_code", _ERROR)
_ERROR_CODE: Final = _Value("error_code", "error", _ERROR)
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
_COMMITTED: Final = _Partitions("partitions", "topics", _tuple_fields(_CODE, "committed_offset"))
_THROTTLE: Final = _Value("throttle_time_ms", "throttle_us", _TIME)
_TXN_ERROR: Final = (_Value("partition_error_code", None, _ERROR),)
_BROKER_ID: Final = (_Value("broker_id", "broker", _BROKER), _Value("broker_epoch", "broker_epoch"))


def _shape(
    kind: Any,
    versions: Sequence[int],
    request: tuple[_Part, ...],
    answer: tuple[_Part, ...],
    *,
    api: str | None = None,
    **rest: Any,
) -> _Shape:
    """Return the shape of kafka-python's *kind* of request.

    *api* is the model's name, if it differs.
    """
    name = api or kind.name.removesuffix("Request")
    modules = (protocol, messages, kraft, administration)
    module: Any = next(each for each in modules if hasattr(each, f"{name}Request"))
    types = getattr(module, f"{name}Request"), getattr(module, f"{name}Response")
    return _Shape(*types, kind, versions, request, answer, **rest)


_FETCHED_FROM: Final = (
    _Value("fetch_offset", "offset"),
    _Value("current_leader_epoch", "leader_epoch"),
    _Value("log_start_offset", "log_start"),
)
_FETCH_LIMITS: Final[tuple[_Part, ...]] = (
    *(_Value("max_wait_ms", "max_wait_us", _TIME), _Fixed("min_bytes", 1)),
    *(*_same("max_bytes", "session_id", "session_epoch"), _Partitions("forgotten", "forgotten_topics_data")),
)


def _fetched_partitions(*parts: _Part) -> _Partitions:
    return _Partitions(
        *("partitions", "topics", parts, protocol.PartitionData),
        (_MessageField("partition_max_bytes", "max_bytes"),),
    )


_FETCH_REQUEST: Final = (*_READER, *_FETCH_LIMITS, _fetched_partitions(*_FETCHED_FROM))
_FETCH_SESSION: Final = (_ERROR_CODE, _THROTTLE, *_same("session_id"))
_FETCHED: Final = (
    _ERROR_CODE,
    _Value("high_watermark", "hw"),
    *_same("last_stable_offset", "log_start_offset"),
    _Value("records", "batches", _RECORDS),
    _Value("preferred_read_replica", "preferred_read_replica", _BROKER_IF_ANY),
    _Array("aborted_transactions", "aborted", _tuple_fields("producer_id", "first_offset")),
)
_FETCH_ANSWER: Final = (
    *_FETCH_SESSION,
    _Partitions("partitions", "responses", _FETCHED, protocol.FetchedPartition),
)
_LIST_OFFSETS: Final[tuple[_Part, ...]] = (
    *_READER,
    _Partitions(
        *("partitions", "topics", (_Value("current_leader_epoch", None),), None),
        (_MessageField("timestamp", "timestamp"),),
    ),
)
_EPOCH_ENDS: Final = (
    _Value("replica_id", "replica_id", _BROKER),
    _Partitions("partitions", "topics", _tuple_fields("current_leader_epoch", "leader_epoch")),
)
_PRODUCE: Final = (
    _Value("transactional_id", "transactional_id", _ID),
    _Value("timeout_ms", "timeout_us", _TIME),
    *(*_same("acks"), _Partitions("batches", "topic_data", (_Value("records", None, _ONE_BATCH),))),
    _SinceVersion("adds_partitions", 12),
)
_TXN_COMMIT: Final = (
    *(*_TRANSACTION, _GROUP, *_MEMBER, _GENERATION_OR_EPOCH, _OFFSETS),
    *(_SinceVersion("adds_partitions", 5), _SinceVersion("knows_group_errors", 6)),
)
_END_TXN: Final = (*_TRANSACTION, *_same("committed"), _SinceVersion("is_v2", 5))
_JOIN: Final = (
    *(_GROUP, *_MEMBER, *_same("protocol_type"), _Fixed("reason", None)),
    _JoinTimeouts(),
    _Array("protocols", "protocols", _tuple_fields("name", ("metadata", _SUBSCRIPTION))),
)
_JOINED: Final = (
    *(_ERROR_CODE, _GENERATION, *_same("leader"), _Value("member_id", "member")),
    _Value("protocol_name", "protocol", _TEXT_IF_ANY),
    _Value("skip_assignment", "skip_assignment", _FLAG),
    _Array(
        "members",
        "members",
        _tuple_fields("member_id", ("group_instance_id", _TEXT), ("metadata", _SUBSCRIPTION)),
    ),
)
_ASSIGNED: Final = _Array(
    "assignments", "assignments", _tuple_fields("member_id", ("assignment", _ASSIGNMENT)), dict
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
    *(_ERROR_CODE, _Value("member_id", "member", _TEXT), _Value("member_epoch", "epoch")),
    _Value("heartbeat_interval_ms", "heartbeat_interval_us", _TIME),
    _Nested("assignment", (_Partitions("assignment", "topic_partitions"),)),
)
_ALIVE: Final = (_Value("current_metadata_offset", "metadata_offset"), *_same("want_fence", "want_shut_down"))
_ISR: Final = (
    *(*_same("leader_epoch", "partition_epoch"), _Fixed("leader_recovery_state", 0)),
    _Array("new_isr_with_epochs", "isr", _tuple_fields(("broker_id", _BROKER), "broker_epoch")),
)


def _by_partition(*parts: tuple[str, _Conversion] | str, array: str = "topics") -> _Partitions:
    """Return the fields of each partition in a response, which are a tuple in the model."""
    return _Partitions("partitions", array, _tuple_fields(*parts))


_PRODUCED: Final = (_by_partition(_CODE, "base_offset", array="responses"), _THROTTLE)
_PARTITION_NAMES: Final = _Partitions("partitions", "topics")
_REASSIGNED: Final = (
    _Value("replicas", "replicas", _BROKERS),
    _Value("adding_replicas", "adding", _BROKERS),
    _Value("removing_replicas", "removing", _BROKERS),
)
_PRODUCER_STATE: Final = (
    *_same("producer_id", "producer_epoch", "last_sequence", "coordinator_epoch"),
    *(_Fixed("last_timestamp", -1), _Value("current_txn_start_offset", "transaction_start")),
)
_TRANSACTION_STATE: Final = (
    *(_ERROR_CODE, _Value("transactional_id", "transactional_id", _ID)),
    *(_Value("transaction_state", "state"), _Value("transaction_timeout_ms", "timeout_us", _TIME)),
    *(_Fixed("transaction_start_time_ms", -1), *_PRODUCER, _Partitions("partitions", "topics")),
)
_LISTED_TRANSACTION: Final = (
    _Value("transactional_id", "transactional_id", _ID),
    *(*_same("producer_id"), _Value("transaction_state", "state")),
)
_DESCRIBED_MEMBER: Final = (
    *(_Value("member_id", "id"), _Value("group_instance_id", "instance", _TEXT)),
    *(_Value("client_id", "client"), _Fixed("client_host", "/127.0.0.1")),
    _Value("member_metadata", "subscription", _SUBSCRIPTION),
    _Value("member_assignment", "partitions", _ASSIGNMENT),
)
_DESCRIBED_GROUP: Final = (
    *(_ERROR_CODE, _Value("group_id", "group", _ID), _Value("group_state", "state")),
    *(*_same("protocol_type"), _Value("protocol_data", "assignor")),
    _Array("members", "members", _DESCRIBED_MEMBER, item=messages.DescribedMember),
)
_DESCRIBED_CONSUMER: Final = (
    *(_Value("member_id", "id"), _Value("instance_id", "instance", _TEXT)),
    *(_Value("member_epoch", "epoch"), _Value("client_id", "client"), _Fixed("client_host", "/127.0.0.1")),
    _Value("subscribed_topic_names", "topics", _TOPIC_NAMES),
    _Nested("assignment", (_Partitions("assigned", "topic_partitions"),)),
    _Nested("target_assignment", (_Partitions("target", "topic_partitions"),)),
    _Fixed("member_type", 1),
)
_DESCRIBED_CONSUMERS: Final = (
    *(_ERROR_CODE, _Value("group_id", "group", _ID), _Value("group_state", "state")),
    *(_Value("group_epoch", "epoch"), _Value("assignment_epoch", "target_epoch")),
    _Value("assignor_name", "assignor"),
    _Array("members", "members", _DESCRIBED_CONSUMER, item=messages.DescribedConsumer),
)
_LISTED_GROUP: Final = (
    *(_Value("group_id", "group", _ID), *_same("protocol_type")),
    *(_Value("group_state", "state"), _Value("group_type", "type")),
)
_COORDINATOR: Final = (_ERROR_CODE, _Value("node_id", "node", _BROKER), _NodeAddress())
_TIMEOUT: Final = _Value("timeout_ms", "timeout_us", _TIME)
_OUTCOME: Final = _tuple_fields(_CODE, ("error_message", _TEXT))
_NEW_TOPIC: Final = (
    _Value("name", "name", _TOPIC),
    _Value("num_partitions", "partitions"),
    *_same("replication_factor"),
    _Array("assignments", "assignment", _tuple_fields("partition_index", ("broker_ids", _BROKERS))),
    _Array("configs", "settings", _tuple_fields("name", "value")),
)
_CREATED_TOPIC: Final = (
    *(_ERROR_CODE, _Value("error_message", "message", _TEXT)),
    *(_Value("num_partitions", "partitions"), *_same("replication_factor"), _Fixed("configs", [])),
)
_NEW_PARTITIONS: Final = (
    _Value("count", "total"),
    _ReplicaLists("assignments", "assignment"),
)
_VERIFIED: Final = _Partitions("partitions", "topic_results", _TXN_ERROR)

_SHAPES: Final = (
    # The later versions of these three requests are for transactions v2 (KIP-890).
    _shape(
        producer.ProduceRequest,
        range(3, 12),
        _PRODUCE,
        _PRODUCED,
        fits=lambda request, _: bool(request.transactional_id) and not request.adds_partitions,
    ),
    _shape(producer.ProduceRequest, range(3, 13), _PRODUCE, _PRODUCED, answered=range(13, 14)),
    _shape(
        TXN_OFFSET_COMMIT,
        range(5),
        _TXN_COMMIT,
        (_ERRORS,),
        fits=lambda request, _: not request.adds_partitions,
    ),
    _shape(TXN_OFFSET_COMMIT, range(5, 7), _TXN_COMMIT, (_ERRORS,)),
    _shape(
        producer.EndTxnRequest,
        range(5),
        _END_TXN,
        (_ERROR_CODE, *_PRODUCER),
        fits=lambda request, _: not request.is_v2,
    ),
    _shape(producer.EndTxnRequest, range(5, 6), _END_TXN, (_ERROR_CODE, *_PRODUCER)),
    # A request without a rack: from version 11 on, followers would answer consumers, too (KIP-392).
    _shape(
        consumer.FetchRequest,
        range(5, 11),
        _FETCH_REQUEST,
        _FETCH_ANSWER,
        answered=range(4, 5),
        fits=lambda request, _: request.rack is None,
    ),
    _shape(
        consumer.FetchRequest,
        range(5, 12),
        (*_FETCH_REQUEST, _Value("rack_id", "rack", _RACK)),
        _FETCH_ANSWER,
    ),
    _shape(
        consumer.FetchRequest,
        (),
        (
            *(_ReplicaState(), *_same("isolation_level"), *_FETCH_LIMITS),
            _fetched_partitions(*_FETCHED_FROM, _Value("last_fetched_epoch", "last_epoch")),
            _Value("rack_id", "rack", _RACK),
        ),
        (
            *_FETCH_SESSION,
            _Partitions(
                "partitions",
                "responses",
                (*_FETCHED, _OptionalPair("diverging_epoch", "diverging", "epoch", "end_offset")),
                protocol.FetchedPartition,
            ),
        ),
        answered=range(12, 19),
        fits=lambda _request, _connection: False,
    ),
    _shape(
        consumer.ListOffsetsRequest,
        range(2, 6),
        _LIST_OFFSETS,
        (_by_partition(_CODE, "offset"),),
        answered=range(1, 12),
    ),
    _shape(
        consumer.OffsetForLeaderEpochRequest,
        range(4),
        _EPOCH_ENDS,
        (_by_partition(_CODE, "leader_epoch", "end_offset"),),
        api="OffsetsForLeaderEpoch",
        answered=range(4, 5),
    ),
    _shape(
        producer.InitProducerIdRequest,
        range(6),
        (*_TRANSACTION, _Value("transaction_timeout_ms", "transaction_timeout_us", _TIME)),
        (_ERROR_CODE, *_PRODUCER),
    ),
    _shape(
        metadata.MetadataRequest,
        range(4, 10),
        (_RequestedTopics(),),
        (_MetadataBrokers(), _by_partition(("leader_id", _BROKER), "leader_epoch")),
        answered=range(14),
    ),
    _shape(
        metadata.FindCoordinatorRequest,
        range(1, 4),
        (_Value("key", "key", _ID), _Value("key_type", "topic", _KEY_TYPE)),
        _COORDINATOR,
        answered=range(1),
    ),
    _shape(
        metadata.FindCoordinatorRequest,
        (),
        (_Value("coordinator_keys", "key", _ONLY_ID), _Value("key_type", "topic", _KEY_TYPE)),
        (_Nested("coordinators", _COORDINATOR),),
        answered=range(4, 7),
        fits=lambda _request, _connection: False,
    ),
    # Transactions. Leaders have sent the versions of the first shape since 3.6.
    _shape(
        producer.AddPartitionsToTxnRequest,
        range(4, 6),
        (
            _Nested("transactions", (*_TRANSACTION, *_same("verify_only"), _PARTITION_NAMES)),
            _Attribute("is_v2", value=True),
        ),
        (_Nested("results_by_transaction", (_VERIFIED,)),),
        fits=lambda request, _: request.is_v2,
    ),
    _shape(
        producer.AddPartitionsToTxnRequest,
        range(4),
        (*_TRANSACTION_V3, _Partitions("partitions", "v3_and_below_topics")),
        (_Partitions("partitions", "results_by_topic_v3_and_below", _TXN_ERROR),),
    ),
    _shape(producer.AddOffsetsToTxnRequest, range(5), (*_TRANSACTION, _GROUP), (_ERROR_CODE,)),
    # Groups
    _shape(consumer.JoinGroupRequest, range(4, 10), _JOIN, _JOINED),
    _shape(
        consumer.JoinGroupRequest,
        (),
        (*_JOIN, _Attribute("repeats_with_id", value=False)),
        _JOINED,
        answered=range(4),
        fits=lambda _request, _connection: False,
    ),
    _shape(
        consumer.SyncGroupRequest,
        range(3, 5),
        (
            *(_GROUP, *_MEMBER, _GENERATION, _ASSIGNED),
            *(*_same("protocol_type"), _Value("protocol_name", "protocol")),
        ),
        (_ERROR_CODE, _Value("assignment", "partitions", _ASSIGNMENT)),
        answered=(*range(3), 5),
    ),
    _shape(
        consumer.HeartbeatRequest,
        range(3, 5),
        (_GROUP, *_MEMBER, _GENERATION),
        (_ERROR_CODE,),
        answered=range(3),
    ),
    _shape(
        consumer.LeaveGroupRequest,
        range(3, 6),
        (_GROUP, _Nested("members", (*_MEMBER, _Fixed("reason", None)))),
        (_LeaveError(),),
    ),
    _shape(
        consumer.LeaveGroupRequest,
        (),
        (_GROUP, _Value("member_id", "member")),
        (_ERROR_CODE,),
        answered=range(3),
        fits=lambda _request, _connection: False,
    ),
    _shape(
        consumer.OffsetCommitRequest,
        range(7, 10),
        (_GROUP, *_MEMBER, _GENERATION_OR_EPOCH, _OFFSETS),
        (_ERRORS,),
        answered=(*range(2, 7), 10),
    ),
    _shape(
        consumer.OffsetFetchRequest,
        range(5, 8),
        (_GROUP, _PARTITION_NAMES, *_same("require_stable")),
        (_COMMITTED, _ERROR_CODE),
        answered=range(1, 5),
        fits=lambda request, _: (
            (request.member, request.epoch) == (messages.NO_MEMBER, messages.NO_GENERATION)
        ),
    ),
    _shape(
        consumer.OffsetFetchRequest,
        (),
        (_Nested("groups", (_GROUP, _PARTITION_NAMES)), *_same("require_stable")),
        (_Nested("groups", (_COMMITTED, _ERROR_CODE)),),
        answered=range(8, 9),
        fits=lambda _request, _connection: False,
    ),
    _shape(
        consumer.OffsetFetchRequest,
        range(9, 10),
        (_Nested("groups", _COMMITTED_TO_MEMBER), *_same("require_stable")),
        (_Nested("groups", (_COMMITTED, _ERROR_CODE)),),
        answered=range(10, 11),
        complete=_fill_in_offsets,
    ),
    _shape(CONSUMER_GROUP_HEARTBEAT, range(2), _CONSUMER, _CONSUMER_ASSIGNED),
    # Administration, as clients request it. harrow as a client has `administration`.
    _shape(
        admin.CreateTopicsRequest,
        range(8),
        (
            _Array("topics", "topics", _NEW_TOPIC, item=administration.NewTopic),
            *_same("validate_only"),
        ),
        (_ByTopic("topics", "topics", _CREATED_TOPIC, administration.CreatedTopic),),
    ),
    _shape(
        admin.CreatePartitionsRequest,
        range(4),
        (
            _ByTopic("topics", "topics", _NEW_PARTITIONS, administration.NewPartitions),
            *_same("validate_only"),
        ),
        (_ByTopic("results", "topics", _OUTCOME),),
    ),
    _shape(
        admin.DeleteTopicsRequest,
        range(6),
        (_Value("topic_names", "topics", _TOPIC_NAMES),),
        (_ByTopic("responses", "topics", _OUTCOME),),
    ),
    _shape(
        admin.DeleteTopicsRequest,
        range(6, 7),
        (_TopicsOrIds("topics", "topics"),),
        (_ByTopic("responses", "topics", _OUTCOME),),
        fits=lambda _request, _connection: False,
    ),
    _shape(
        admin.IncrementalAlterConfigsRequest,
        range(2),
        (_SettingChanges(), *_same("validate_only")),
        (_SettingOutcomes(),),
        api="AlterTopicSettings",
    ),
    _shape(
        admin.AlterConfigsRequest,
        range(3),
        (_SettingChanges(), *_same("validate_only"), _Attribute("replaces", value=True)),
        (_SettingOutcomes(),),
        api="AlterTopicSettings",
        fits=lambda _request, _connection: False,
    ),
    _shape(
        admin.DescribeGroupsRequest,
        range(7),
        (_Value("groups", "groups", _GROUP_NAMES),),
        (_Array("groups", "groups", _DESCRIBED_GROUP, item=messages.DescribedGroup),),
    ),
    _shape(
        CONSUMER_GROUP_DESCRIBE,
        range(2),
        (_Value("group_ids", "groups", _GROUP_NAMES),),
        (_Array("groups", "groups", _DESCRIBED_CONSUMERS, item=messages.DescribedConsumerGroup),),
    ),
    _shape(
        admin.ListGroupsRequest,
        range(6),
        (_Value("states_filter", "states", _WORDS), _Value("types_filter", "types", _WORDS)),
        (_ERROR_CODE, _Array("groups", "groups", _LISTED_GROUP, item=messages.ListedGroup)),
    ),
    _shape(
        admin.DeleteGroupsRequest,
        range(3),
        (_Value("groups_names", "groups", _GROUP_NAMES),),
        (_Array("results", "groups", _tuple_fields(("group_id", _ID), _CODE), dict),),
    ),
    _shape(
        consumer.OffsetDeleteRequest,
        range(1),
        (_GROUP, _Partitions("partitions", "topics", (_Attribute(None, value=None),))),
        (_ERROR_CODE, _ERRORS),
    ),
    _shape(
        admin.ElectLeadersRequest,
        range(3),
        (_ElectionType(), _Partitions("partitions", "topic_partitions")),
        (_ERROR_CODE, _Partitions("partitions", "replica_election_results", _OUTCOME)),
    ),
    _shape(
        admin.AlterPartitionReassignmentsRequest,
        range(2),
        (
            *(_Partitions("targets", "topics", (_Value("replicas", None, _BROKERS),)),),
            _Value("allow_replication_factor_change", "may_change_factor"),
        ),
        (_ERROR_CODE, _Partitions("partitions", "responses", _OUTCOME)),
    ),
    _shape(
        admin.ListPartitionReassignmentsRequest,
        range(1),
        (_NumberedPartitions("partition_indexes"),),
        (_ERROR_CODE, _Partitions("partitions", "topics", _REASSIGNED, protocol.ReplicaAssignment)),
    ),
    _shape(
        admin.DeleteRecordsRequest,
        range(3),
        (_Partitions("partitions", "topics", (_Value("offset", None),)), _TIMEOUT),
        (_Partitions("partitions", "topics", _tuple_fields(_CODE, "low_watermark")),),
    ),
    _shape(
        admin.DescribeProducersRequest,
        range(1),
        (_NumberedPartitions("partition_indexes"),),
        (
            _Partitions(
                "partitions",
                "topics",
                (
                    _Value("error_code", 0, _ERROR),
                    _Array("active_producers", 1, _PRODUCER_STATE, item=protocol.DescribedProducer),
                ),
            ),
        ),
    ),
    _shape(
        admin.DescribeTransactionsRequest,
        range(1),
        (_Value("transactional_ids", "transactional_ids", _GROUP_NAMES),),
        (
            _Array(
                "transaction_states", "transactions", _TRANSACTION_STATE, item=messages.DescribedTransaction
            ),
        ),
    ),
    _shape(
        admin.ListTransactionsRequest,
        range(2),
        (
            _Value("state_filters", "states", _WORDS),
            _Value("producer_id_filters", "producer_ids", _WORDS),
            _Value("duration_filter", "duration_us", _TIME_IF_ANY),
        ),
        (
            _ERROR_CODE,
            _Value("unknown_state_filters", "unknown_states", _WORDS),
            _Array(
                "transaction_states", "transactions", _LISTED_TRANSACTION, item=messages.ListedTransaction
            ),
        ),
    ),
    # Controllers. Registrations of 3.6 lack log directories and the previous broker epoch; 4.0
    # supports all versions of the following shapes.
    _shape(
        BROKER_REGISTRATION,
        range(5),
        (_RegistrationFields(), *_same("previous_broker_epoch")),
        (_ERROR_CODE, *_same("broker_epoch")),
    ),
    _shape(
        BROKER_HEARTBEAT,
        range(1),
        (*_BROKER_ID, *_ALIVE),
        (_ERROR_CODE, *_same("is_caught_up", "is_fenced", "should_shut_down")),
    ),
    _shape(
        ALTER_PARTITION,
        range(3, 4),
        (*_BROKER_ID, _Partitions("partitions", "topics", _ISR, protocol.AlterPartition)),
        (_ERROR_CODE, _by_partition(_CODE, "partition_epoch")),
    ),
)
_BY_VERSION: Final = {
    (shape.kind.API_KEY, version): shape
    for shape in reversed(_SHAPES)
    for version in (*shape.versions, *shape.answered)
}
_OF_BROKERS: Final = frozenset(
    (BROKER_REGISTRATION.API_KEY, BROKER_HEARTBEAT.API_KEY, ALTER_PARTITION.API_KEY)
)
CLIENT_VERSIONS: Final = {
    key: (
        min(version for other, version in _BY_VERSION if other == key),
        max(version for other, version in _BY_VERSION if other == key),
    )
    for key, _ in _BY_VERSION
    if key not in _OF_BROKERS
}
"""The lowest and the highest version of each request of clients, by API key."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A request of the model, and the same request on the wire."""

    request: Any
    wire: Any
    _shape: _Shape
    _naming: Naming

    def answer(self, wire: Any) -> Any:
        """Translate a response on the wire into a response of the model."""
        attributes = _read_all(self._shape.answer, wire, _fields(wire), self._naming)
        response = self._shape.response_type(**attributes)
        self._shape.complete(response, self.request)
        return response


def to_wire(
    request: Any, connection: BrokerConnection, naming: Naming = MODEL_NAMING, versions: Iterable[int] = ()
) -> Sent:
    """Translate a request into the newest version that both sides support, within *versions*."""
    shapes = (shape for shape in _SHAPES if shape.request_type is type(request))
    shape = next(shape for shape in shapes if shape.fits(request, connection))
    kind = shape.kind[connection.version_of(shape.kind, *(versions or shape.versions))]
    return Sent(request, kind(**_write_all(shape.request, request, _fields(kind), naming)), shape, naming)


def exchange(
    connection: BrokerConnection, request: Any, naming: Naming = MODEL_NAMING, versions: Iterable[int] = ()
) -> Any:
    """Send a request of the model, and return the model's response."""
    sent = to_wire(request, connection, naming, versions)
    return sent.answer(connection.ask(sent.wire))


def fetched_batches(
    connection: BrokerConnection, request: protocol.FetchRequest, versions: Iterable[int] = ()
) -> dict[str, tuple[str, list[Any]]]:
    """Send a fetch, and return the error and kafka-python's batches of each partition.

    kafka-python's batches have keys, and the last offset of a compacted batch. The model's have
    neither.
    """
    answer = connection.ask(to_wire(request, connection, versions=versions).wire)
    return {
        f"{topic.topic}-{partition.partition_index}": (
            error_name(partition.error_code),
            [batch for batch, _ in whole_batches(bytes(partition.records or b""))],
        )
        for topic in answer.responses
        for partition in topic.partitions
    }


def request_from_wire(wire: Any, naming: Naming = MODEL_NAMING) -> Any:
    """Translate a client's request into a request of the model."""
    shape = _BY_VERSION[wire.API_KEY, wire.API_VERSION]
    return shape.request_type(**_read_all(shape.request, wire, _fields(wire), naming))


def answer_to_wire(wire: Any, answer: Any, naming: Naming = MODEL_NAMING) -> Any:
    """Translate the model's answer to a client's request (*wire*) into the request's version."""
    shape = _BY_VERSION[wire.API_KEY, wire.API_VERSION]
    kind = wire.header.get_response_class()
    return kind(**_write_all(shape.answer, answer, _fields(kind), naming))


def _fields(message: Any) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = message._struct.fields  # noqa: SLF001 - kafka-python has no public name
    return fields

"""Defines the requests of administrators that the active controller handles.

With KRaft every broker forwards them to the controller (KIP-590). With ZooKeeper a client must send
them to the broker that is the controller, and other brokers answer NOT_CONTROLLER. Settings are
texts here, as on the wire.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from harrow.cluster_model import errors
from harrow.cluster_model.compiling import mypyc_attr
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.protocol import ReplicaAssignment
from harrow.cluster_model.sim.message import Request
from harrow.cluster_model.topic_settings import ALL_BROKERS, is_of_brokers

BROKER_DEFAULT: Final = -1
"""Stands for a number of partitions or replicas that the settings of the brokers decide."""

Outcome = tuple[str, str]
"""An error and a message for people, which is empty if there is nothing to say."""
SUCCESS: Final[Outcome] = (errors.NONE, "")


class RefusedError(Exception):
    """A controller refuses a part of an administrator's request.

    ``error`` is the name of Kafka's error.
    """

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


@mypyc_attr(allow_interpreted_subclasses=True)
class AdministrationRequest(Request):
    """A request that only the active controller can handle."""

    __slots__ = ()

    def refused(self, error: str) -> Any:
        """Return the answer of a broker that could not have the request handled."""
        raise NotImplementedError(type(self).__name__)


@dataclass(slots=True, frozen=True)
class NewTopic:
    """A topic that an administrator wants.

    It has a number of partitions and a replication factor, each possibly `BROKER_DEFAULT`, or else
    an ``assignment``: pairs of a partition's number and its replicas.
    """

    name: str
    partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    assignment: tuple[tuple[int, tuple[int, ...]], ...] = ()
    settings: tuple[tuple[str, str | None], ...] = ()


@dataclass(slots=True, frozen=True)
class CreatedTopic:
    """The outcome for one new topic, and its size if it was or could be created."""

    error: str = errors.NONE
    message: str = ""
    partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT


@dataclass(slots=True, frozen=True)
class CreateTopicsRequest(AdministrationRequest):
    """Create topics. With ``validate_only`` only the answer is as if they were created."""

    api: ClassVar[str] = "CreateTopics"
    topics: tuple[NewTopic, ...]
    validate_only: bool = False

    def refused(self, error: str) -> "CreateTopicsResponse":
        return CreateTopicsResponse({topic.name: CreatedTopic(error) for topic in self.topics}, error)


@dataclass(slots=True, frozen=True)
class CreateTopicsResponse:
    """The answer to a CreateTopics. ``error`` concerns the whole request."""

    api: ClassVar[str] = "CreateTopics"
    topics: Mapping[str, CreatedTopic]
    error: str = errors.NONE


@dataclass(slots=True, frozen=True)
class NewPartitions:
    """The total number of partitions that a topic should have (KIP-195).

    ``assignment`` has the replicas of each added partition. With None the controller assigns them.
    """

    total: int
    assignment: tuple[tuple[int, ...], ...] | None = None


@dataclass(slots=True, frozen=True)
class CreatePartitionsRequest(AdministrationRequest):
    """Add partitions to topics."""

    api: ClassVar[str] = "CreatePartitions"
    topics: Mapping[str, NewPartitions]
    validate_only: bool = False

    def refused(self, error: str) -> "CreatePartitionsResponse":
        return CreatePartitionsResponse(dict.fromkeys(self.topics, (error, "")), error)


@dataclass(slots=True, frozen=True)
class CreatePartitionsResponse:
    """The outcome for each topic."""

    api: ClassVar[str] = "CreatePartitions"
    topics: Mapping[str, Outcome]
    error: str = errors.NONE


@dataclass(slots=True, frozen=True)
class DeleteTopicsRequest(AdministrationRequest):
    """Delete topics."""

    api: ClassVar[str] = "DeleteTopics"
    topics: tuple[str, ...]

    def refused(self, error: str) -> "DeleteTopicsResponse":
        return DeleteTopicsResponse(dict.fromkeys(self.topics, (error, "")), error)


@dataclass(slots=True, frozen=True)
class DeleteTopicsResponse:
    """The outcome for each topic."""

    api: ClassVar[str] = "DeleteTopics"
    topics: Mapping[str, Outcome]
    error: str = errors.NONE


SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3
"""What an IncrementalAlterConfigs does with a setting (``AlterConfigOp.OpType``)."""


@dataclass(slots=True, frozen=True)
class AlterTopicSettingsRequest(AdministrationRequest):
    """Change settings of topics and brokers (AlterConfigs, IncrementalAlterConfigs, KIP-339).

    Each change is a setting, an operation and a value. With ``replaces`` a topic keeps no other
    settings than those.
    """

    api: ClassVar[str] = "IncrementalAlterConfigs"
    changes: Mapping[str, tuple[tuple[str, int, str | None], ...]]
    replaces: bool = False
    validate_only: bool = False

    def refused(self, error: str) -> "AlterTopicSettingsResponse":
        return AlterTopicSettingsResponse(dict.fromkeys(self.changes, (error, "")), error)

    def without_other_brokers(self, broker: int) -> "tuple[AlterTopicSettingsRequest, dict[str, Outcome]]":
        """Return the request without the changes that *broker* refuses, and the refusals.

        A broker changes its own settings and those of all brokers (``ConfigAdminManager``).
        """
        refused = {}
        for resource in self.changes:
            name = resource.removeprefix(ALL_BROKERS)
            if not is_of_brokers(resource) or name in {"", str(broker)}:
                continue
            text = f"Node id must be an integer, but it is: {name}"
            if name.isdecimal():
                text = f"Unexpected broker id, expected {broker}, but received {name}"
            refused[resource] = (errors.INVALID_REQUEST, text)
        changes = {name: changes for name, changes in self.changes.items() if name not in refused}
        return replace(self, changes=changes), refused


@dataclass(slots=True, frozen=True)
class AlterTopicSettingsResponse:
    """The outcome for each topic, and for brokers."""

    api: ClassVar[str] = "IncrementalAlterConfigs"
    topics: Mapping[str, Outcome]
    error: str = errors.NONE

    def with_refused(self, refused: Mapping[str, Outcome]) -> "AlterTopicSettingsResponse":
        return replace(self, topics={**self.topics, **refused})


PREFERRED: Final = 0
UNCLEAN: Final = 1
"""The kinds of elections that an administrator may request (``ElectionType.java``)."""


@dataclass(slots=True, frozen=True)
class ElectLeadersRequest(AdministrationRequest):
    """Elect leaders of partitions, or with None of all partitions (KIP-183, KIP-460)."""

    api: ClassVar[str] = "ElectLeaders"
    election: int
    partitions: tuple[str, ...] | None

    def refused(self, error: str) -> "ElectLeadersResponse":
        return ElectLeadersResponse(dict.fromkeys(self.partitions or (), (error, "")), error)


@dataclass(slots=True, frozen=True)
class ElectLeadersResponse:
    """The outcome for each partition."""

    api: ClassVar[str] = "ElectLeaders"
    partitions: Mapping[str, Outcome]
    error: str = errors.NONE


@dataclass(slots=True, frozen=True)
class AlterPartitionReassignmentsRequest(AdministrationRequest):
    """Reassign partitions to target replicas, or with None cancel reassignments (KIP-455).

    Without ``may_change_factor`` each partition must keep its number of replicas (KIP-860).
    """

    api: ClassVar[str] = "AlterPartitionReassignments"
    targets: Mapping[str, tuple[int, ...] | None]
    may_change_factor: bool = True

    def refused(self, error: str) -> "AlterPartitionReassignmentsResponse":
        return AlterPartitionReassignmentsResponse(dict.fromkeys(self.targets, (error, "")), error)


@dataclass(slots=True, frozen=True)
class AlterPartitionReassignmentsResponse:
    """The outcome for each partition."""

    api: ClassVar[str] = "AlterPartitionReassignments"
    partitions: Mapping[str, Outcome]
    error: str = errors.NONE


@dataclass(slots=True, frozen=True)
class ListPartitionReassignmentsRequest(AdministrationRequest):
    """List the reassignments of partitions, or with None of all partitions."""

    api: ClassVar[str] = "ListPartitionReassignments"
    partitions: tuple[str, ...] | None

    def refused(self, error: str) -> "ListPartitionReassignmentsResponse":
        return ListPartitionReassignmentsResponse({}, error)


@dataclass(slots=True, frozen=True)
class ListPartitionReassignmentsResponse:
    """The partitions that are being reassigned."""

    api: ClassVar[str] = "ListPartitionReassignments"
    partitions: Mapping[str, ReplicaAssignment]
    error: str = errors.NONE


ADMINISTRATION_REQUESTS: Final[tuple[type[AdministrationRequest], ...]] = (
    *(CreateTopicsRequest, CreatePartitionsRequest, DeleteTopicsRequest, AlterTopicSettingsRequest),
    *(ElectLeadersRequest, AlterPartitionReassignmentsRequest, ListPartitionReassignmentsRequest),
)
"""The requests that a broker has the controller handle."""

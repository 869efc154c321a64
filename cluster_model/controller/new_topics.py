"""Checks new topics and partitions, and assigns their replicas.

Controllers with ZooKeeper (``AdminZkClient``, ``ZkAdminManager``) and with KRaft
(``ReplicationControlManager``) follow the same rules.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from harrow.cluster_model import errors
from harrow.cluster_model.controller.administration import (
    BROKER_DEFAULT,
    CreatedTopic,
    NewPartitions,
    NewTopic,
    RefusedError,
)
from harrow.cluster_model.controller.assignment import assign_partitions, assign_replicas
from harrow.cluster_model.controller.setting_changes import new_settings
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.settings import BrokerConfig, Value
from harrow.cluster_model.topic_settings import Settings

_NAME_LENGTH_MAX: Final = 249
_NAME_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
RECORDS_MAX: Final = 10_000
"""The most records of a request, as in KRaft (``MAX_RECORDS_PER_USER_OP``)."""

Assignment = tuple[tuple[int, ...], ...]
"""The replicas of each partition of a topic."""


class ExcessiveRequestError(Exception):
    """A request needs too many records (``BoundedListTooLongException``)."""


class RecordBudget:
    """The number of records that a request may still have.

    A topic has one record, and one more for each setting and partition.
    """

    def __init__(self) -> None:
        self._remaining = RECORDS_MAX

    def spend(self, records: int) -> None:
        """Count records.

        Raises:
            ExcessiveRequestError: The request has too many.

        """
        self._remaining -= records
        if self._remaining < 0:
            raise ExcessiveRequestError


@dataclass(slots=True, frozen=True)
class KnownBrokers:
    """The brokers that a controller can assign replicas to.

    ``registered`` ones exist, and ``active`` ones may lead and join ISRs now. Replicas are spread
    over ``racks``.
    """

    registered: tuple[int, ...]
    active: tuple[int, ...]
    racks: Mapping[int, str]


@dataclass(slots=True, frozen=True)
class ConfiguredTopics:
    """What a controller knows about topics from the campaign.

    ``settings`` are those of the topics that the campaign declares.
    """

    release: str
    settings: Mapping[str, Mapping[str, Value]]
    racks: Mapping[int, str]


@dataclass(slots=True, frozen=True)
class PlannedTopic:
    """A topic that a controller is about to create."""

    name: str
    assignment: Assignment
    settings: Settings


LIFE: Final = "~"
"""Separates a topic's name from the number of its life, if it was deleted and created again.

The model has no topic ids (KIP-516), so each life of a topic has a name of its own.
"""


def plain_name(topic: str) -> str:
    """Return the name that clients use for a topic."""
    return topic.partition(LIFE)[0]


def is_valid_name(name: str) -> bool:
    """Return whether a topic may have a name (``Topic.validate``)."""
    return _NAME_CHARACTERS.issuperset(name) and name not in {"", ".", ".."} and len(name) <= _NAME_LENGTH_MAX


def validate_name(name: str) -> None:
    """Check the form of a topic's name.

    Raises:
        RefusedError: No topic may have the name.

    """
    if not is_valid_name(name):
        message = (
            "a topic's name has 1 to 249 letters, digits, dots, underscores and hyphens, and is not . or .."
        )
        raise RefusedError(errors.INVALID_TOPIC, message)


def check_name(name: str, existing: Collection[str], removed: Collection[str] = ()) -> None:
    """Check whether there can be a new topic of a name.

    Modelled on ``Topic.validate`` and on the check for names that collide in the names of metrics,
    where a dot is an underscore. A *removed* topic that is created again needs another name (see
    `LIFE`).

    Raises:
        RefusedError: The topic exists, or its name is invalid.

    """
    if name in existing or name in removed:
        raise RefusedError(errors.TOPIC_ALREADY_EXISTS, f"the topic {plain_name(name)} exists")
    name = plain_name(name)
    validate_name(name)
    twins = [other for other in map(plain_name, existing) if _key(other) == _key(name) and other != name]
    if twins:
        message = f"{name} differs from the topic {min(twins)} only in dots and underscores"
        raise RefusedError(errors.INVALID_TOPIC, message)


def _key(name: str) -> str:
    return name.replace(".", "_")


def planned_topics(
    topics: Collection[NewTopic],
    existing: Mapping[str, int],
    brokers: KnownBrokers,
    config: BrokerConfig,
    release: str,
    removed: Collection[str] = (),
) -> tuple[list[PlannedTopic], dict[str, CreatedTopic]]:
    """Return the valid topics of a request, and the outcome for each topic.

    *existing* has the number of partitions of each topic in the cluster.

    Raises:
        ExcessiveRequestError: The request needs too many records.

    """
    known, budget = dict(existing), RecordBudget()
    counts = Counter([topic.name for topic in topics])
    plan: list[PlannedTopic] = []
    outcomes: dict[str, CreatedTopic] = {}
    for topic in topics:
        name = topic.name
        if counts[name] > 1:
            message = "the request names the topic more than once"
            outcomes[name] = CreatedTopic(errors.INVALID_REQUEST, message)
            continue
        try:
            check_name(name, known, removed)
            settings = new_settings(topic, release)
            assignment = new_assignment(topic, brokers, config, budget)
        except RefusedError as refused:
            outcomes[name] = CreatedTopic(refused.error, refused.message)
            continue
        known[name] = len(assignment)
        outcomes[name] = CreatedTopic(partitions=len(assignment), replication_factor=len(assignment[0]))
        plan.append(PlannedTopic(name, assignment, settings))
    return plan, outcomes


def new_assignment(
    topic: NewTopic, brokers: KnownBrokers, config: BrokerConfig, budget: RecordBudget
) -> Assignment:
    """Return the replicas of a new topic, whose records count for the *budget* of the request.

    Raises:
        RefusedError: Its numbers or its assignment are invalid, or there are too few brokers.
        ExcessiveRequestError: The request needs too many records.

    """
    own_records = 1 + len(topic.settings)
    if topic.assignment:
        assigned = _manual_assignment(topic, brokers)
        budget.spend(own_records + len(assigned))
        return assigned
    partitions, factor = topic.partitions, topic.replication_factor
    if factor < BROKER_DEFAULT or factor == 0:
        raise RefusedError(errors.INVALID_REPLICATION_FACTOR, "a topic needs at least one replica")
    if partitions < BROKER_DEFAULT or partitions == 0:
        raise RefusedError(errors.INVALID_PARTITIONS, "a topic needs at least one partition")
    factor = config.default_replication_factor if factor == BROKER_DEFAULT else factor
    partitions = config.default_partitions if partitions == BROKER_DEFAULT else partitions
    size = _active_replicas(factor, brokers)
    budget.spend(own_records + partitions)
    assigned = assign_replicas(brokers.active, partitions, size, brokers.racks)
    return _with_inactive(assigned, factor, brokers)


def added_assignment(
    existing: Sequence[Sequence[int]], requested: NewPartitions, brokers: KnownBrokers, budget: RecordBudget
) -> Assignment:
    """Return the replicas of the partitions that a topic gets, after the *existing* ones.

    Raises:
        RefusedError: The total is no increase, or the assignment is invalid.
        ExcessiveRequestError: The request needs too many records.

    """
    added = requested.total - len(existing)
    if added <= 0:
        raise RefusedError(errors.INVALID_PARTITIONS, f"the topic already has {len(existing)} partitions")
    budget.spend(added)
    factor = len(existing[0])
    if requested.assignment is not None:
        if len(requested.assignment) != added:
            message = f"there are replicas for {len(requested.assignment)} partitions instead of {added}"
            raise RefusedError(errors.INVALID_REPLICA_ASSIGNMENT, message)
        for replicas in requested.assignment:
            _check_replicas(replicas, factor, brokers)
        return requested.assignment
    size = _active_replicas(factor, brokers)
    assigned = assign_partitions(
        brokers.active, brokers.racks, existing[0][:size], len(existing), requested.total
    )
    return _with_inactive(assigned, factor, brokers)


def _manual_assignment(topic: NewTopic, brokers: KnownBrokers) -> Assignment:
    if topic.partitions != BROKER_DEFAULT or topic.replication_factor != BROKER_DEFAULT:
        message = "a request with replicas has neither a number of partitions nor a replication factor"
        raise RefusedError(errors.INVALID_REQUEST, message)
    assigned = dict(topic.assignment)
    numbers = range(len(topic.assignment))
    if assigned.keys() != set(numbers):
        message = "the partitions of an assignment are numbered from 0, without gaps"
        raise RefusedError(errors.INVALID_REPLICA_ASSIGNMENT, message)
    for replicas in assigned.values():
        _check_replicas(replicas, len(topic.assignment[0][1]), brokers)
    return tuple(assigned[number] for number in numbers)


def _check_replicas(replicas: tuple[int, ...], factor: int, brokers: KnownBrokers) -> None:
    """Check the replicas of a partition (``validateManualPartitionAssignment``)."""
    if not replicas:
        problem = "a partition needs a replica"
    elif len(set(replicas)) < len(replicas):
        problem = "a broker occurs twice among the replicas of a partition"
    elif not set(replicas) <= set(brokers.registered):
        problem = f"broker {min(set(replicas) - set(brokers.registered))} is not registered"
    elif len(replicas) != factor:
        problem = f"a partition has {len(replicas)} replicas, and another one {factor}"
    elif set(replicas).isdisjoint(brokers.active):
        problem = "no replica of a partition is on a broker that is active"
    else:
        return
    raise RefusedError(errors.INVALID_REPLICA_ASSIGNMENT, problem)


def _active_replicas(factor: int, brokers: KnownBrokers) -> int:
    """Return how many replicas of a partition go to active brokers: all, if there are enough."""
    if factor > len(brokers.registered) or not brokers.active:
        message = f"there are not enough brokers for {factor} replicas: {len(brokers.active)} of "
        message += f"{len(brokers.registered)} are active"
        raise RefusedError(errors.INVALID_REPLICATION_FACTOR, message)
    return min(factor, len(brokers.active))


def _with_inactive(assigned: Assignment, factor: int, brokers: KnownBrokers) -> Assignment:
    """Add replicas on brokers that are not active, where others do not suffice.

    Modelled on ``StripedReplicaPlacer``, which prefers unfenced brokers.
    """
    others = [broker for broker in brokers.registered if broker not in brokers.active]
    missing = factor - len(assigned[0])
    return tuple(
        (*replicas, *(others[(number + place) % len(others)] for place in range(missing)))
        for number, replicas in enumerate(assigned)
    )

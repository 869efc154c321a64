"""Estimates, before a plan runs, its memory and the number of faults that strike at once.

The estimates are arithmetic on the plan, so it costs nothing to refuse a plan. ``limits.events``
bounds the events while a run runs. This module bounds the objects that exist from the start of a
run, or that a single event can create. The sizes were measured with CPython 3.11 on clusters of 3
to 100 brokers with 500 to 10 000 partitions, 1 to 100 replicas, and up to 100 clients; the
estimates were within 50 % of the measured memory.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final

from harrow.campaigns.language.plan import MEMORY_DEFAULT_MIB, Plan, SamePlan, Swarm
from harrow.campaigns.language.spelling import counted
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.registry import derived_up_to
from harrow.cluster_model.settings import BROKER, SETTINGS
from harrow.cluster_model.topology import TopicSpec
from harrow.faults.actions import AddPartitions, Send

Path = tuple[str | int, ...]
"""A place in a campaign file."""

_REPLICA_BYTES: Final = 5_000
"""A replica: its log on the disk, and the state that its broker and the leader keep about it."""
_IN_SYNC_BYTES: Final = 180
"""What the trace records each time that an ISR grows by a replica, for each member of the ISR."""
_METADATA_BYTES: Final = 224
"""The metadata of one partition on one broker, whether the broker has a replica or not."""
_CLIENT_METADATA_BYTES: Final = 1_000
"""The metadata of one partition in one client, with its state for writing or reading."""
_RECORD_BYTES: Final = 2_000
"""A record that a script sends, which is in the history, in the trace and in logs."""
_STEP_BYTES: Final = 1_000
"""An action of a script, and what a run records about it."""
_MIB: Final = 1 << 20

_INTERNAL_TOPIC_SETTINGS: Final = tuple(
    name
    for scope, name in SETTINGS
    if scope == BROKER
    and name.endswith((".num.partitions", ".replication.factor"))
    and name != "default.replication.factor"
)
"""The settings that determine the size of internal topics. A swarm may draw them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """A part of the memory of a plan: what needs it, in words, and where that is in the file."""

    path: Path
    cause: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _Clients:
    """The largest number of clients, and the section of the file with the most clients."""

    count: int
    path: Path


def excess(plan: Plan, steps: Sequence[Path], entries: Sequence[Path]) -> tuple[Path, str] | None:
    """Return where in the file a plan exceeds its limits, and a message; None if it may run.

    *steps* and *entries* are the paths of the steps of its script, and of its entries of faults.
    """
    for path, strikes in _strikes_at_once(plan, entries):
        if strikes > plan.faults_limit:
            return path, (
                f"{strikes} faults may strike at once, and a run may have {plan.faults_limit}; "
                "`limits.faults` raises that"
            )
    shares = list(_shares(plan, steps))
    needed = sum(share.size_bytes for share in shares)
    if needed <= plan.memory_limit_mib * _MIB:
        return None
    largest = max(shares, key=lambda share: share.size_bytes)
    return largest.path, (
        f"a run would take about {_size_text(needed)} of memory, most of it for {largest.cause}, and may take "
        f"{_size_text(plan.memory_limit_mib * _MIB)}; `limits.memory` raises that"
    )


def refusal(plan: Plan) -> str | None:
    """Return the message for a plan that exceeds its limits; None if it may run."""
    return _refusal(SamePlan(plan))


@derived_up_to(4)  # A sweep runs several seeds of a plan in a row.
def _refusal(same: SamePlan) -> str | None:
    plan = same.plan
    problem = excess(plan, [()] * len(plan.script), [()] * len(plan.faults))
    return None if problem is None else problem[1]


def records_max(memory_limit_mib: int | None) -> int:
    """Return how many records a script may send, because each record becomes an action."""
    return (memory_limit_mib or MEMORY_DEFAULT_MIB) * _MIB // _RECORD_BYTES


def memory_bytes(plan: Plan) -> int:
    """Estimate the memory of a plan's cluster, clients and script, for the costliest seed."""
    return sum(share.size_bytes for share in _shares(plan, [()] * len(plan.script)))


def _shares(plan: Plan, steps: Sequence[Path]) -> Iterator[_Share]:
    """Yield the parts of the memory of a plan, for the costliest seed."""
    draws = list(_draws(plan.swarm))
    brokers = max([len(plan.cluster.brokers), *(draw.brokers[1] for draw in draws if draw.brokers)])
    clients = _clients(plan, draws)
    partitions_added = _partitions_after_additions(plan, draws)
    total = 0
    for index, topic in enumerate(_largest_topics(plan, draws, brokers)):
        path: Path = ("cluster", "topics", index) if index < len(plan.cluster.topics) else ("settings",)
        partitions = max(topic.partitions, partitions_added.get(topic.name, 0))
        factor = min(topic.replication_factor, brokers)
        total += partitions
        yield _Share(
            path=path,
            cause=f"{counted(partitions, 'partition')} of {topic.name} with {counted(factor, 'replica')} each",
            size_bytes=partitions * (factor * _REPLICA_BYTES + factor * factor * _IN_SYNC_BYTES),
        )
    yield _Share(
        path=("cluster", "brokers"),
        cause=f"{counted(brokers, 'broker')} that know {counted(total, 'partition')}",
        size_bytes=brokers * total * _METADATA_BYTES,
    )
    yield _Share(
        path=clients.path,
        cause=f"{counted(clients.count, 'client')} that know {counted(total, 'partition')}",
        size_bytes=clients.count * total * _CLIENT_METADATA_BYTES,
    )
    for path, step in zip(steps, plan.script, strict=True):
        records = sum(_records_of(action) for action in step.actions)
        yield _Share(
            path=path,
            cause=counted(records, "record"),
            size_bytes=records * _RECORD_BYTES + len(step.actions) * _STEP_BYTES,
        )
    for draw in draws:
        if draw.actions is not None:
            most = max((_records_of(kind) for kind in draw.actions.kinds), default=0)
            count = draw.actions.count[1]
            yield _Share(
                path=("swarm", "actions", "count"),
                cause=counted(count, "action"),
                size_bytes=count * (_STEP_BYTES + most * _RECORD_BYTES),
            )


def _strikes_at_once(plan: Plan, entries: Sequence[Path]) -> Iterator[tuple[Path, int]]:
    """Yield, for each entry of faults, its path and how many faults may strike at one moment."""
    for entry, injection in zip(entries, plan.faults, strict=True):
        strikes_per_round = len(injection.faults) if injection.serial else injection.together
        yield (
            (*entry, "together" if injection.together > 1 else "repeat"),
            strikes_per_round * injection.repeat,
        )
    for draw in _draws(plan.swarm):
        if draw.faults is not None:
            yield ("swarm", "faults", "together"), draw.faults.together[1]


def _draws(swarm: Swarm | None) -> Iterator[Swarm]:
    """Yield the choices of seeds without an aim, and of seeds with each of the aims."""
    if swarm is not None:
        yield swarm
        for aim in swarm.aims.kinds if swarm.aims else ():
            yield swarm.aimed(aim)


def _clients(plan: Plan, draws: list[Swarm]) -> _Clients:
    def most(fixed: int, *drawn: tuple[int, int] | None) -> int:
        return max([fixed, *(bounds[1] for bounds in drawn if bounds is not None)])

    counts = {
        "producers": most(len(plan.producers), *(draw.producers for draw in draws)),
        "consumers": most(len(plan.consumers), *(draw.consumers for draw in draws)),
        "applications": most(
            len(plan.applications), *(bounds for draw in draws for _, bounds in draw.applications)
        ),
    }
    largest = max(counts, key=counts.__getitem__)
    workers = sum(getattr(client, "workers", 1) - 1 for client in plan.applications)
    return _Clients(
        sum(counts.values()) + workers,
        ("workload", largest) if largest != "applications" else ("workload",),
    )


def _largest_topics(plan: Plan, draws: list[Swarm], brokers: int) -> tuple[TopicSpec, ...]:
    """Return the topics of the cluster, also internal ones, as large as a seed can draw them."""
    settings: dict[str, Any] = dict(plan.cluster.settings)
    for name, values in (pair for draw in draws for pair in draw.settings):
        if name in _INTERNAL_TOPIC_SETTINGS:
            settings[name] = max([*values, settings.get(name, 0)])
    topics = replace(plan, cluster=replace(plan.cluster, settings=settings)).running_cluster().topics
    partitions = max((draw.partitions[1] for draw in draws if draw.partitions), default=0)
    factor = max((draw.replication_factor[1] for draw in draws if draw.replication_factor), default=0)
    return tuple(
        replace(
            topic,
            partitions=max(topic.partitions, partitions),
            replication_factor=min(brokers, max(topic.replication_factor, factor)),
        )
        if index < len(plan.cluster.topics)
        else topic
        for index, topic in enumerate(topics)
    )


def _partitions_after_additions(plan: Plan, draws: list[Swarm]) -> dict[str, int]:
    """Return, by topic, the largest number of partitions to which an administrator may raise it."""
    counts: dict[str, int] = {}
    drawn = (kind for draw in draws if draw.actions is not None for kind in draw.actions.kinds)
    for action in chain((action for step in plan.script for action in step.actions), drawn):
        if isinstance(action, AddPartitions):
            counts[action.topic] = max(action.partitions, counts.get(action.topic, 0))
    return counts


def _records_of(action: object) -> int:
    return (action.count or 1) if isinstance(action, Send) else 0


def _size_text(size_bytes: int) -> str:
    mib = size_bytes / _MIB
    return f"{mib / 1024:.1f} GiB" if mib >= 1024 else f"{mib:.0f} MiB"

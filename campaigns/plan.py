"""A plan: a campaign that has been read and checked, as plain picklable data.

Importing this module, or `campaigns.runner`, needs the standard library alone: a
machine that only runs plans needs neither YAML nor pydantic.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Final

from cluster_model.invariants import INVARIANTS
from cluster_model.release import DEFAULT_RELEASE, RELEASES, Behaviours
from cluster_model.settings import Value
from cluster_model.topology import ClusterSpec, ConsumerSpec, ProducerSpec
from cluster_model.virtual_time import US_PER_SECOND
from faults.condition import Condition
from faults.fault import Fault
from faults.injection import Injection


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """A producer is handed a record, by default for a partition that the partitioner picks."""

    producer: str
    value: str
    partition: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartProducer:
    """A producer's application dies and is started again: a new session."""

    producer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectPreferredLeaders:
    """An administrator asks for preferred leader election (kafka-preferred-replica-election)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """A condition that has to hold at this moment."""

    condition: Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Nothing: the step only waits."""


Action = Send | RestartProducer | ElectPreferredLeaders | Expect | Wait | Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a script; steps are taken in order.

    A step waits until ``at_us`` of virtual time, until ``after_us`` have passed since
    the step before it, or until ``when`` holds; all that are given.
    """

    actions: tuple[Action, ...]
    at_us: int | None = None
    after_us: int | None = None
    when: Condition | None = None
    note: str = ""
    line: int = 0

    def __post_init__(self) -> None:
        """Let a step without actions be the same as one that only waits."""
        if not self.actions:
            object.__setattr__(self, "actions", (Wait(),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a campaign expects of its verdict, by its author's word.

    ``rules`` are statuses by rule; ``lost`` and ``duplicated`` are the exact values that
    are lost or doubled; ``final`` is a condition on the healed cluster. ``probes`` are rare
    states that have to be reached (see `campaigns.required_probes`).
    """

    verdict: str | None = None
    rules: tuple[tuple[str, str], ...] = ()
    lost: tuple[str, ...] | None = None
    duplicated: tuple[str, ...] | None = None
    final: Condition | None = None
    probes: tuple[str, ...] = ()

    def is_empty(self) -> bool:
        """Return whether the campaign expects nothing in particular to come out."""
        return replace(self, probes=()) == Expectation()


OPEN: Final = "open"
"""A failure that still happens."""
FIXED: Final = "fixed"
"""A failure that must not happen any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The failure that a regression is of: which version found it, which rule it broke, with which seed.

    ``status`` is `OPEN` or `FIXED`.
    """

    version: str
    rule: str
    status: str = OPEN
    seed: int = 0
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """After the faults a sufficient core of the brokers is healed first, and has to serve.

    Brokers are healed in ``order``, those that it does not name last, until every partition has one
    that can lead. Within ``within_us``, by default what Kafka's timeouts add up to, all has to be
    well (`campaigns.core_recovery`).
    """

    order: tuple[int, ...] = ()
    within_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmFaults:
    """Which faults a swarm may have: bounds are inclusive, times in microseconds.

    Of ``kinds`` so many are ``in_play``; one of them strikes once in a time of which the mean is
    drawn from ``mean_us``, and each time ``together`` with so many others.
    """

    kinds: tuple[Fault, ...]
    in_play: tuple[int, int]
    mean_us: tuple[int, int]
    together: tuple[int, int] = (1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swarm:
    """What a campaign leaves open, for each seed to draw; what is empty or None is not open.

    Bounds are inclusive, times in microseconds; ``settings`` are values by Kafka's name. With
    ``core`` a core is healed first, in an order that is drawn.
    """

    releases: tuple[str, ...] = ()
    brokers: tuple[int, int] | None = None
    racks: tuple[int, int] | None = None
    partitions: tuple[int, int] | None = None
    replication_factor: tuple[int, int] | None = None
    settings: tuple[tuple[str, tuple[Value, ...]], ...] = ()
    latencies: tuple[tuple[int, int], ...] = ()
    writebacks_us: tuple[int | None, ...] = ()
    duration_us: tuple[int, int] | None = None
    producers: tuple[int, int] | None = None
    intervals_us: tuple[int, ...] = ()
    consumers: tuple[int, int] | None = None
    faults: SwarmFaults | None = None
    core: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything a run depends on beside its choices.

    With a ``swarm`` some of it is drawn from the seed first (`campaigns.swarm`). ``survivable``
    keeps power losses from taking more copies of a committed record than its partition can spare.
    Without a ``core`` everything is healed at once.
    """

    campaign: str
    cluster: ClusterSpec
    variant: str | None = None
    description: str = ""
    kafka: str = DEFAULT_RELEASE
    behaviours: Mapping[str, Value] = field(default_factory=dict)
    producers: tuple[ProducerSpec, ...] = ()
    consumers: tuple[ConsumerSpec, ...] = ()
    script: tuple[Step, ...] = ()
    faults: tuple[Injection, ...] = ()
    duration_us: int = 0
    script_limit_us: int = 600 * US_PER_SECOND
    recovery_limit_us: int = 600 * US_PER_SECOND
    events_limit: int = 20_000_000
    invariants: tuple[str, ...] = tuple(INVARIANTS)
    demand: tuple[str, ...] = ()
    swarm: Swarm | None = None
    survivable: bool = False
    core: Core | None = None
    expect: Expectation = Expectation()
    found: Found | None = None

    def behaviour_switches(self) -> Behaviours:
        """Return the release's behaviours with the campaign's switches applied."""
        base = RELEASES[self.kafka].behaviours
        values = {item.name: getattr(base, item.name) for item in fields(base)}
        return Behaviours(**{**values, **self.behaviours})

    def digest(self) -> str:
        """Return the digest (SHA-256, hex, 16 digits) of what the plan does.

        Words for the reader (description, notes, line numbers, the variant's name, where a failure
        was found) do not count.
        """
        text = json.dumps(_plain(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


_WORDS_ONLY = frozenset({"description", "note", "line", "variant", "found"})


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        parts = {
            item.name: _plain(getattr(value, item.name))
            for item in fields(value)
            if item.name not in _WORDS_ONLY
        }
        return {"": getattr(value, "name", None) or type(value).__name__, **parts}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value

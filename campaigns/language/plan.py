"""Defines a plan: a campaign that has been read and checked, as plain data that can be pickled.

This module and `harrow.campaigns.run.runner` import only the standard library and the packages of
harrow that run plans. So a machine that only runs plans needs neither YAML nor pydantic.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from functools import cache, lru_cache
from typing import Annotated, Any, ClassVar, Final, Literal

from harrow.cluster_model import fields as markers
from harrow.cluster_model import topology
from harrow.cluster_model.coordinators.internal_topics import internal_topic
from harrow.cluster_model.fields import described, with_fields
from harrow.cluster_model.invariants.catalogue import INVARIANTS
from harrow.cluster_model.lazy_dataclass import dataclass, is_dataclass_type, replace
from harrow.cluster_model.release.profiles import RELEASES, Behaviours, behaviours_with
from harrow.cluster_model.release.switch import DEFAULT_RELEASE, Mutant
from harrow.cluster_model.settings import Value, broker_config
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.faults.action import Action
from harrow.faults.actions import Wait
from harrow.faults.condition import ConditionField
from harrow.faults.fault import Fault
from harrow.faults.injection import Injection

CLUSTER: Final = "cluster"
"""The key of a campaign for its cluster. Its value may be the name of a file."""


class ActionMarker(markers.Marker):
    """An action by its name, with its fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of the script. It waits for all of its conditions, and then takes its actions."""

    note: str = described("A comment for readers.", default="")
    at_us: markers.Duration | None = described("Wait until this virtual time.", default=None, key="at")
    after_us: markers.Duration | None = described(
        "Wait this long after the previous step.", default=None, key="after"
    )
    when: ConditionField | None = described("Wait until this holds.", default=None)
    actions: tuple[Annotated[Action, ActionMarker], ...] = described(
        "The actions to take then.", key="do", implied=True
    )
    line: int = described("The line in the file.", default=0, key="")

    def __post_init__(self) -> None:
        """Split actions into single actions. A step without any action gets the action `Wait`."""
        actions = tuple(single for action in self.actions for single in action.single_actions())
        object.__setattr__(self, "actions", actions or (Wait(),))


class BehavioursMarker(markers.Marker):
    """Single switches of a release (`harrow list behaviours`)."""


class StatusMarker(markers.Marker):
    """The result of a run: ``held``, ``permitted``, ``violated`` or ``inconclusive``."""


class StatusesMarker(markers.Marker):
    """The expected statuses of rules, by rule."""


class RuleMarker(markers.Marker):
    """A rule (`harrow list rules`)."""


class InvariantMarker(markers.Marker):
    """An invariant (`harrow list invariants`)."""


class ProbeMarker(markers.Marker):
    """A rare state (`harrow list probes`)."""


class VersionMarker(markers.Marker):
    """A version of harrow."""


class OpenSettingsMarker(markers.Marker):
    """Settings under Kafka's names, each with a list of values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceExpectation:
    """Bounds on how well clients are served (`harrow.checks.service.levels`)."""

    outage: markers.DurationBound | None = described(
        "The longest time that a partition acked nothing while a producer was sending to it.", default=None
    )
    ack_p50: markers.DurationBound | None = described("The median time to an ack.", default=None)
    ack_p99: markers.DurationBound | None = described(
        "The 99th percentile of the time to an ack.", default=None
    )
    ack_max: markers.DurationBound | None = described("The longest time to an ack.", default=None)
    end_to_end_p50: markers.DurationBound | None = described(
        "The median time from a send to the poll that returned its record.", default=None
    )
    end_to_end_p99: markers.DurationBound | None = described(
        "The 99th percentile of that time.", default=None
    )
    end_to_end_max: markers.DurationBound | None = described("The longest such time.", default=None)
    transaction_p50: markers.DurationBound | None = described(
        "The median time from the first send of a committed transaction to the response to its commit.",
        default=None,
    )
    transaction_p99: markers.DurationBound | None = described(
        "The 99th percentile of that time.", default=None
    )
    transaction_max: markers.DurationBound | None = described("The longest such time.", default=None)
    rebalance: markers.DurationBound | None = described(
        "The longest rebalance of a group: from the start of its preparation until all members have their partitions.",
        default=None,
    )
    unread: markers.DurationBound | None = described(
        "The longest time that no consumer read a partition although it had unread acked records.",
        default=None,
    )
    acked: markers.ShareBound | None = described("The share of sends that were acked.", default=None)
    failed: markers.CountBound | None = described(
        "The number of failed sends: their records are in no log.", default=None
    )
    unknown: markers.CountBound | None = described(
        "The number of sends whose outcome the producer does not know.", default=None
    )
    lag: markers.CountBound | None = described(
        "The largest number of acked records that a consumer of the workload had not read yet.", default=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """The expected outcome."""

    verdict: Annotated[str, StatusMarker] | None = described("The verdict.", default=None)
    rules: Annotated[tuple[tuple[str, str], ...], StatusesMarker] = described(
        "Statuses by rule (`harrow list rules`).", default=()
    )
    lost: tuple[str, ...] | None = described("Exactly these values are lost.", default=None)
    duplicated: tuple[str, ...] | None = described("Exactly these values are duplicated.", default=None)
    probes: tuple[Annotated[str, ProbeMarker], ...] = described(
        "Rare states that at least one of the seeds has to reach (`harrow list probes`); "
        "otherwise the verdict is inconclusive.",
        default=(),
    )
    service: ServiceExpectation | None = described("How well clients are served.", default=None)
    final: ConditionField | None = described("A condition that holds on the healed cluster.", default=None)

    def is_empty(self) -> bool:
        """Return whether no particular outcome is expected; required probes do not count."""
        return with_fields(self, {"probes": ()}) == Expectation()


EVENTS_MAX: Final = 1_000_000_000
"""The highest limit of events. The model would need more than a day on one processor for them."""
MEMORY_MAX_MIB: Final = 1 << 20
MEMORY_DEFAULT_MIB: Final = 1_024

OPEN: Final = "open"
"""The status of a failure that still happens."""
FIXED: Final = "fixed"
"""The status of a failure that must not happen again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The origin of a failure; it makes a campaign an entry of a corpus (`harrow regress`)."""

    version: Annotated[str, VersionMarker] = described("The version of harrow that found it.")
    rule: Annotated[str, RuleMarker] = described("The rule that it broke (`harrow list rules`).")
    seed: markers.Skip = described("The seed to run it with; by default 0.", default=0)
    status: Literal["open", "fixed"] = described(
        "`open`: it still happens, and `expect` says how; `fixed`: it must never happen again."
    )
    line: int = described("The line in the file.", default=0, key="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """The core: brokers that are healed first, as many as suffice, while others stay broken."""

    # `harrow.campaigns.run.core_recovery` reads this.
    order: tuple[markers.BrokerId, ...] = described(
        "The order in which brokers are healed; unnamed brokers come last.", default=(), unique=True
    )
    within_us: markers.Duration | None = described(
        "The time in which the core has to serve clients; by default the sum of Kafka's timeouts.",
        default=None,
        key="within",
        minimum=1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BlastRadius:
    """A limit on how much of the cluster all faults together may take out of service at once.

    A broker is out of service while it is down, stopping, paused, or cut off from ZooKeeper, from
    the quorum or from most other brokers. The same goes for a ZooKeeper server or a KRaft
    controller among its peers.
    """

    brokers: markers.Count | None = described("The most brokers that may be out of service.", default=None)
    keep_in_sync: markers.Skip = described(
        "The members of each ISR that stay in service: with 1 the last one is never struck.", default=1
    )
    keep_majority: bool = described(
        "Whether a majority of the brokers, and of the ZooKeeper servers or KRaft controllers, stays in service.",
        default=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmFaults:
    """The faults of a swarm: which may be in play, how many of them, and how often they strike."""

    in_play: markers.NumberRange = described(
        "The number of faults in play, such as `1..4`; by default any number.", implied=True
    )
    mean_us: markers.RateRange = described(
        "The rate at which faults in play strike, such as `1/m..30/m`.", key="rate", implied=True
    )
    together: markers.NumberRange = described(
        "The number of faults that strike at once, such as `1..3`; by default 1.", default=(1, 1), minimum=1
    )
    kinds: tuple[Annotated[Fault, markers.FaultMarker], ...] = described(
        "The faults that may be in play.", key="any_of", implied=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmActions:
    """Actions on the cluster besides faults, each at a time that the seed draws."""

    count: markers.NumberRange = described("The number of actions, such as `0..3`.", implied=True)
    kinds: tuple[Annotated[Action, ActionMarker], ...] = described(
        "The actions; one of them is chosen at random each time.", key="any_of", implied=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """A rare state, and choices with which a seed aims at it; they replace those of the swarm."""

    probe: Annotated[str, ProbeMarker] = described("The rare state (`harrow list probes`).")
    # In a campaign the keys of these choices are beside `probe`. The swarm makes the choices that
    # the aim does not name.
    instead: "Swarm" = described("The choices of a seed with this aim.", key="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aims:
    """Rare states that some of the seeds aim at."""

    share: markers.Probability = described("The share of seeds that have an aim, from 0 to 1.")
    kinds: tuple[Aim, ...] = described("The aims; each such seed draws one.", key="any_of", implied=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swarm:
    """The choices that each seed draws. Ranges include both ends; of a list one value is drawn."""

    # If a field is empty or None, the swarm does not draw it. `values` has the choices for the
    # fields of plans that are declared as open, by key.
    releases: tuple[markers.Release, ...] = described(
        "The releases.", default=(), key="kafka", closed_by=("kafka",)
    )
    brokers: markers.NumberRange | None = described(
        "The number of brokers, such as `3..5`.",
        default=None,
        minimum=1,
        maximum=topology.BROKERS_MAX,
        # An assignment names brokers. If their number is drawn, the assignment is dropped.
        closed_by=("cluster.brokers", "cluster.topics.assignment"),
    )
    racks: markers.NumberRange | None = described(
        "The number of racks, which brokers are assigned to in turn; 0 for none.",
        default=None,
        closed_by=("cluster.brokers",),
    )
    partitions: markers.NumberRange | None = described(
        "The number of partitions of each topic.",
        default=None,
        minimum=1,
        maximum=topology.PARTITIONS_MAX,
        closed_by=("cluster.topics.partitions", "cluster.topics.assignment"),
    )
    replication_factor: markers.NumberRange | None = described(
        "The number of replicas, at most the number of brokers.",
        default=None,
        minimum=1,
        closed_by=("cluster.topics.replication_factor", "cluster.topics.assignment"),
    )
    settings: Annotated[tuple[tuple[str, tuple[Value, ...]], ...], OpenSettingsMarker] = described(
        "Settings under Kafka's names, each with a list of values.", default=()
    )
    values: tuple[tuple[str, tuple[Any, ...]], ...] = described("Values by key.", default=(), key="")
    duration_us: markers.DurationRange | None = described(
        "The duration of the workload.", default=None, key="duration", closed_by=("workload.duration",)
    )
    producers: markers.NumberRange | None = described(
        "The number of producers.",
        default=None,
        minimum=1,
        maximum=topology.CLIENTS_MAX,
        closed_by=("workload.producers.name",),
    )
    consumers: markers.NumberRange | None = described(
        "The number of consumers.",
        default=None,
        maximum=topology.CLIENTS_MAX,
        closed_by=("workload.consumers",),
    )
    applications: tuple[tuple[str, tuple[int, int]], ...] = described(
        "The number of clients of each other kind, by its key.", default=(), key=""
    )
    faults: SwarmFaults | None = described("The faults.", default=None)
    actions: SwarmActions | None = described(
        "Actions of administrators and applications.", default=None, counts_if_set=True
    )
    aims: Aims | None = described("Rare states that some seeds aim at.", default=None, counts_if_set=True)
    core: bool = described(
        "Whether a core (`core`) is healed first, in an order that the seed draws; by default false.",
        default=False,
        closed_by=("core.order",),
    )

    def aimed(self, aim: Aim) -> "Swarm":
        """Return the choices of a seed with an aim, which override the choices of the swarm."""
        changes = {
            item.name: value
            for item in fields(Swarm)
            if (value := getattr(aim.instead, item.name)) != item.default
        }
        for name in ("settings", "values", "applications"):
            if name in changes:
                changes[name] = tuple({**dict(getattr(self, name)), **dict(changes[name])}.items())
        return replace(self, **changes)

    def all_actions(self) -> tuple[Action, ...]:
        """Return all faults and actions that a seed may draw."""
        own = (*(self.faults.kinds if self.faults else ()), *(self.actions.kinds if self.actions else ()))
        aims = self.aims.kinds if self.aims else ()
        return (*own, *(action for aim in aims for action in aim.instead.all_actions()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The content of a campaign or a variant: all that determines a run, except its seed."""

    SECTIONS: ClassVar[Mapping[str, str]] = {
        "workload": "The clients, and how long they work.",
        "limits": "Limits on the time and the memory of a run.",
    }

    campaign: str = described("The campaign's name.", key="")
    variant: str | None = described("The variant's name.", default=None, key="")
    title: str = described("The campaign in a few words.", default="", shrinks=False)
    description: str = described("What happens and why.", default="", shrinks=False)
    # The expectations are written for this release, so a run on another release may miss them.
    written_for: str | None = described(
        "The release that the campaign names, if an option names another one.",
        default=None,
        key="",
        shrinks=False,
    )
    written_release: str | None = described(
        "The name of that release, without a control plane.", default=None, key="", shrinks=False
    )
    kafka: markers.Release = described(
        f"The release, by default {DEFAULT_RELEASE}; `latest` is the newest one in the model.",
        default=DEFAULT_RELEASE,
        shrinks=False,
        instead_of=("inter.broker.protocol.version", "metadata.version"),
    )
    behaviours: Annotated[Mapping[str, Value], BehavioursMarker] = described(
        "Single switches of the release (`harrow list releases`).", factory=dict, shrinks=False
    )
    cluster: topology.ClusterSpec = described("The servers.", implied=True)
    duration_us: markers.Duration = described(
        "How long clients generate records and faults are drawn; by default 0s.",
        default=0,
        key="workload.duration",
        shrinks=False,
    )
    producers: tuple[topology.ProducerSpec, ...] = described(
        "The producers.", default=(), key="workload.producers"
    )
    consumers: tuple[topology.ConsumerSpec, ...] = described(
        "The consumers; by default none.", default=(), key="workload.consumers"
    )
    applications: tuple[Any, ...] = described(
        "Clients of other kinds (`harrow.campaigns.clients.clients`).", default=(), key=""
    )
    script: tuple[Step, ...] = described("The steps, taken in order.", default=(), shrinks=False)
    faults: tuple[Injection, ...] = described("Faults, each with its own timing.", default=(), shrinks=False)
    # Each seed draws these choices before its run (`harrow.campaigns.run.swarm`).
    swarm: Swarm | None = described(
        "Choices that each seed draws; they override the rest of the campaign.",
        default=None,
        shrinks=False,
    )
    survivable: bool = described(
        "Whether power losses leave at least `min.insync.replicas` copies of each committed record in the ISR, which leaders are elected from; by default false.",
        default=False,
    )
    blast_radius: BlastRadius | None = described(
        "How much of the cluster faults may take out of service at once; a fault that would exceed it does not strike.",
        default=None,
        emptiable=True,
        counts_if_set=True,
    )
    core: Core | None = described(
        "Heal a core of the brokers first, and check that it serves clients (the rule `unavailable`).",
        default=None,
        emptiable=True,
    )
    script_limit_us: markers.Duration = described(
        "The time limit of the script; by default 10m.",
        default=600 * US_PER_SECOND,
        key="limits.script",
        minimum=1,
    )
    step_limit_us: markers.Duration | None = described(
        "How long a step of the script waits for its condition before it acts without it; by default the limit of the script.",
        default=None,
        key="limits.step",
        minimum=1,
        counts_if_set=True,
    )
    recovery_limit_us: markers.Duration = described(
        "The time limit for the recovery of the healed cluster; by default 10m.",
        default=600 * US_PER_SECOND,
        key="limits.recovery",
        minimum=1,
    )
    events_limit: markers.Count = described(
        "The most events of the simulator in a run; by default 20000000.",
        default=20_000_000,
        key="limits.events",
        maximum=EVENTS_MAX,
    )
    faults_limit: markers.Count = described(
        "The most faults that may strike in a run; by default 200000.",
        default=200_000,
        key="limits.faults",
        maximum=EVENTS_MAX,
        shrinks=False,
        counts_if_set=True,
    )
    memory_limit_mib: markers.Count = described(
        "The most memory, in MiB, that the cluster and its clients may take; harrow estimates it before a run. By default 1024.",
        default=MEMORY_DEFAULT_MIB,
        key="limits.memory",
        maximum=MEMORY_MAX_MIB,
        shrinks=False,
        counts_if_set=True,
    )
    invariants: tuple[Annotated[str, InvariantMarker], ...] = described(
        "The invariants to check: a list of names, `all` (the default) or `none`.",
        default=tuple(INVARIANTS),
    )
    demand: tuple[Annotated[str, RuleMarker], ...] = described(
        "Rules whose anomalies count as violations even if the settings permit them: a list of names, or `all`.",
        default=(),
    )
    found: Origin | None = described(
        "The failure that this is a regression of (`harrow regress`).", default=None, shrinks=False
    )
    expect: Expectation = described("The expected outcome.", default=Expectation(), shrinks=False)

    def clients(self) -> tuple[Any, ...]:
        return (*self.producers, *self.consumers, *self.applications)

    def running_cluster(self) -> topology.ClusterSpec:
        """Return the cluster with the internal topics that its clients need.

        Brokers create them when a client first looks for a coordinator. In the model they exist
        from the start. A campaign can also define an internal topic among its topics.
        """
        cluster = self.cluster
        needed = [
            name
            for client in self.clients()
            if isinstance(client, topology.Coordinated)
            for name in client.internal_topics()
        ]
        if not needed:
            return cluster
        defined = {topic.name for topic in cluster.topics}
        config = broker_config(self.kafka, cluster.settings)
        missing = (name for name in dict.fromkeys(needed) if name not in defined)
        created = tuple(internal_topic(name, config) for name in missing)
        return replace(cluster, topics=(*cluster.topics, *created))

    def behaviour_switches(self) -> Behaviours:
        """Return the release's behaviours with the campaign's switches applied."""
        return behaviours_with(self.kafka, self.behaviours)

    def flawed(self, mutant: Mutant) -> "Plan":
        """Return the plan with the flaw of a mutant, on the release of the mutant."""
        kafka = self.kafka if mutant.kafka == DEFAULT_RELEASE else mutant.kafka
        return replace(self, kafka=kafka, behaviours={**self.behaviours, mutant.switch: mutant.value})

    @property
    def metadata(self) -> str:
        """Where brokers keep their metadata: ``zookeeper`` or ``kraft``."""
        return self.cluster.metadata or RELEASES[self.kafka].metadata

    def digest(self) -> str:
        """Return a digest of everything that affects runs of the plan (SHA-256, 16 hex digits).

        Text for readers does not count: the description, notes, line numbers, the variant's name,
        the origin of a failure, and the release that the campaign was written for.
        """
        return _digest(SamePlan(self))


class SamePlan:
    """A plan as a cache key. It is compared by identity, because not all its fields have a hash."""

    __slots__ = ("plan",)

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def __hash__(self) -> int:
        return id(self.plan)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SamePlan) and other.plan is self.plan


@lru_cache(maxsize=64)  # The files of a run name its plan in several places.
def _digest(same: SamePlan) -> str:
    text = json.dumps(_plain(same.plan), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


_TEXTS_FOR_READERS = frozenset(
    {"title", "description", "note", "line", "variant", "found", "written_for", "written_release"}
)


@cache
def _digest_fields(kind: type[Any]) -> tuple[str, ...]:
    return tuple(item.name for item in fields(kind) if item.name not in _TEXTS_FOR_READERS)


_WITH_FIELDS_COUNTED_IF_SET: Final = (
    *(Plan, Injection, Swarm, topology.ClusterSpec, topology.BrokerSpec),
    *(topology.ProducerSpec, topology.ConsumerSpec),
)


def _unset(value: Any) -> frozenset[str]:
    """Return the fields that a digest leaves out because they have their defaults.

    So a field that is added to harrow does not change the digests of plans that do not use it.
    """
    if not isinstance(value, _WITH_FIELDS_COUNTED_IF_SET):
        return frozenset()
    counted = markers.counted_if_set(type(value))
    return frozenset(name for name, default in counted.items() if getattr(value, name) == default)


_ATOMS = frozenset({bool, float, int, str, type(None)})


def _plain(value: Any) -> Any:
    if type(value) in _ATOMS:
        return value
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if is_dataclass_type(type(value)):
        unset = _unset(value)
        names = _digest_fields(type(value))  # type: ignore[arg-type]  # to mypy, `type[Any]` has no hash
        parts = {name: _plain(getattr(value, name)) for name in names if name not in unset}
        return {"": getattr(value, "name", None) or type(value).__name__, **parts}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return value

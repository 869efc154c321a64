"""A plan: a campaign that has been read and checked, as plain picklable data.

Importing this module, or `harrow.campaigns.run.runner`, needs the standard library alone: a
machine that only runs plans needs neither YAML nor pydantic.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final, Literal

from harrow.cluster_model import fields as markers
from harrow.cluster_model import topology
from harrow.cluster_model.coordinators.internal_topics import internal_topic
from harrow.cluster_model.fields import described
from harrow.cluster_model.invariants.catalogue import INVARIANTS
from harrow.cluster_model.release.profiles import RELEASES, Behaviours
from harrow.cluster_model.release.switch import DEFAULT_RELEASE, Mutant
from harrow.cluster_model.settings import Value, broker_config
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.faults.action import Action
from harrow.faults.actions import Wait
from harrow.faults.condition import ConditionField
from harrow.faults.fault import Fault
from harrow.faults.injection import Injection


class ActionMarker(markers.Marker):
    """An action by its name, with its fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of the script: it waits for all that is given, then acts."""

    note: str = described("What happens, for the reader.", default="")
    at_us: markers.Duration | None = described("Wait until this virtual time.", default=None, key="at")
    after_us: markers.Duration | None = described(
        "Wait this long after the step before.", default=None, key="after"
    )
    when: ConditionField | None = described("Wait until this holds.", default=None)
    actions: tuple[Annotated[Action, ActionMarker], ...] = described(
        "What is done then.", key="do", implied=True
    )
    line: int = described("Where it stands in the file.", default=0, key="")

    def __post_init__(self) -> None:
        """Have an action for each single one, and let a step without any be the same as one that only waits."""
        actions = tuple(single for action in self.actions for single in action.single_actions())
        object.__setattr__(self, "actions", actions or (Wait(),))


class BehavioursMarker(markers.Marker):
    """Single switches of a release (`harrow list behaviours`)."""


class StatusMarker(markers.Marker):
    """What came of a run: ``held``, ``permitted``, ``violated`` or ``inconclusive``."""


class StatusesMarker(markers.Marker):
    """Statuses by rule."""


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
    """How well clients have to be served, as bounds (`harrow.checks.service.levels`)."""

    outage: markers.DurationBound | None = described(
        "The longest time for which no producer that sent to a partition got an ack.", default=None
    )
    ack_p50: markers.DurationBound | None = described(
        "The time to an ack of half of all sends.", default=None
    )
    ack_p99: markers.DurationBound | None = described("The same of 99 in 100.", default=None)
    ack_max: markers.DurationBound | None = described("The longest time to an ack.", default=None)
    end_to_end_p50: markers.DurationBound | None = described(
        "The time from a send to the poll that returned its record, of half of all.", default=None
    )
    end_to_end_p99: markers.DurationBound | None = described("The same of 99 in 100.", default=None)
    end_to_end_max: markers.DurationBound | None = described("The longest.", default=None)
    transaction_p50: markers.DurationBound | None = described(
        "The time from the first send of a transaction to the answer that it is committed, of half of those that are.",
        default=None,
    )
    transaction_p99: markers.DurationBound | None = described("The same of 99 in 100.", default=None)
    transaction_max: markers.DurationBound | None = described("The longest.", default=None)
    rebalance: markers.DurationBound | None = described(
        "The longest rebalance of a group: from the preparation of a generation until all members have their partitions.",
        default=None,
    )
    unread: markers.DurationBound | None = described(
        "The longest time for which no consumer read a partition although it had unread acked records.",
        default=None,
    )
    acked: markers.ShareBound | None = described("Which part of the sends was acked.", default=None)
    failed: markers.CountBound | None = described(
        "How many sends failed: their records are in no log.", default=None
    )
    unknown: markers.CountBound | None = described(
        "Of how many sends producers do not know what became of them.", default=None
    )
    lag: markers.CountBound | None = described(
        "How many acked records a consumer of the workload had not read yet, at the worst.", default=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What is expected at the end."""

    verdict: Annotated[str, StatusMarker] | None = described("The verdict.", default=None)
    rules: Annotated[tuple[tuple[str, str], ...], StatusesMarker] = described(
        "Statuses by rule (`harrow list rules`).", default=()
    )
    lost: tuple[str, ...] | None = described("Exactly the values that are lost.", default=None)
    duplicated: tuple[str, ...] | None = described("Exactly the values that are there twice.", default=None)
    probes: tuple[Annotated[str, ProbeMarker], ...] = described(
        "Rare states that have to be reached (`harrow list probes`), by one seed of several at least; "
        "otherwise the verdict is inconclusive.",
        default=(),
    )
    service: ServiceExpectation | None = described("How well clients are served.", default=None)
    final: ConditionField | None = described("What holds on the healed cluster.", default=None)

    def is_empty(self) -> bool:
        """Return whether the campaign expects nothing in particular to come out."""
        return replace(self, probes=()) == Expectation()


EVENTS_MAX: Final = 1_000_000_000
MEMORY_MAX_MIB: Final = 1 << 20
MEMORY_DEFAULT_MIB: Final = 1_024
"""More than a day of a core."""

OPEN: Final = "open"
"""A failure that still happens."""
FIXED: Final = "fixed"
"""A failure that must not happen any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Where a failure comes from; a campaign with it can be an entry of a corpus (`harrow regress`)."""

    version: Annotated[str, VersionMarker] = described("The version of harrow that found it.")
    rule: Annotated[str, RuleMarker] = described("The rule that it broke (`harrow list rules`).")
    seed: markers.Skip = described("The seed that it is run with; by default 0.", default=0)
    status: Literal["open", "fixed"] = described(
        "`open`: it still happens, and `expect` says how; `fixed`: it must never happen again."
    )
    line: int = described("Where it stands in the file.", default=0, key="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """Which brokers are healed first after the faults: as many as suffice, while the others stay as they are."""

    # Brokers that `order` does not name are healed last (`harrow.campaigns.run.core_recovery`).
    order: tuple[markers.BrokerId, ...] = described(
        "In which order brokers are healed; those that are not named come last.", default=(), unique=True
    )
    within_us: markers.Duration | None = described(
        "How long until all has to be well; by default what Kafka's timeouts add up to.",
        default=None,
        key="within",
        minimum=1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BlastRadius:
    """How much of the cluster faults may take out of service at once, wherever they stand.

    A broker is out of service while it is down, stops, is paused, or is cut off from ZooKeeper, from the quorum or from most of
    the other brokers. So is a server of ZooKeeper, or a controller of KRaft, among its like.
    """

    brokers: markers.Count | None = described("At most so many brokers are out of service.", default=None)
    keep_in_sync: markers.Skip = described(
        "At least so many members of each ISR stay in service: with 1 the last one is never struck.",
        default=1,
    )
    keep_majority: bool = described(
        "Whether a majority of the brokers stays in service, and of the ZooKeeper servers or the controllers of KRaft.",
        default=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmFaults:
    """Faults of a swarm: which may be in play, how many of them, how often they strike."""

    in_play: markers.NumberRange = described(
        "How many of them are, as `1..4`; by default any number.", implied=True
    )
    mean_us: markers.RateRange = described(
        "How often one of those in play strikes, as `1/m..30/m`.", key="rate", implied=True
    )
    together: markers.NumberRange = described(
        "How many strike at once, as `1..3`; by default 1.", default=(1, 1), minimum=1
    )
    kinds: tuple[Annotated[Fault, markers.FaultMarker], ...] = described(
        "The faults that may be in play.", key="any_of", implied=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmActions:
    """What is done to the cluster beside faults, each action at a time that is drawn."""

    count: markers.NumberRange = described("How many, as `0..3`.", implied=True)
    kinds: tuple[Annotated[Action, ActionMarker], ...] = described(
        "The actions of which one is drawn each time.", key="any_of", implied=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """A rare state, and what a seed that aims at it draws from in place of what the swarm says."""

    probe: Annotated[str, ProbeMarker] = described("The rare state (`harrow list probes`).")
    # What it says of itself stands beside the probe in a campaign; all else is as in the swarm.
    instead: "Swarm" = described("What is drawn from instead.", key="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aims:
    """Rare states that some of the seeds aim at."""

    share: markers.Probability = described("Which share of the seeds aims at one of them, from 0 to 1.")
    kinds: tuple[Aim, ...] = described(
        "The aims, of which each such seed has one.", key="any_of", implied=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Swarm:
    """What each seed draws. Ranges include both ends; of lists one value is drawn."""

    # What is empty or None is not open. `values` are those of fields that are declared as open, by key.
    releases: tuple[markers.Release, ...] = described(
        "The releases.", default=(), key="kafka", closed_by=("kafka",)
    )
    brokers: markers.NumberRange | None = described(
        "How many brokers, as `3..5`.",
        default=None,
        minimum=1,
        maximum=topology.BROKERS_MAX,
        # An assignment names brokers, and is dropped where a number of them is drawn.
        closed_by=("cluster.brokers", "cluster.topics.assignment"),
    )
    racks: markers.NumberRange | None = described(
        "How many racks they stand in, one after the other; 0 for none.",
        default=None,
        closed_by=("cluster.brokers",),
    )
    partitions: markers.NumberRange | None = described(
        "How many partitions each topic has.",
        default=None,
        minimum=1,
        maximum=topology.PARTITIONS_MAX,
        closed_by=("cluster.topics.partitions", "cluster.topics.assignment"),
    )
    replication_factor: markers.NumberRange | None = described(
        "How many replicas, at most as many as there are brokers.",
        default=None,
        minimum=1,
        closed_by=("cluster.topics.replication_factor", "cluster.topics.assignment"),
    )
    settings: Annotated[tuple[tuple[str, tuple[Value, ...]], ...], OpenSettingsMarker] = described(
        "Settings under Kafka's names, each with a list of values.", default=()
    )
    values: tuple[tuple[str, tuple[Any, ...]], ...] = described("Values by key.", default=(), key="")
    duration_us: markers.DurationRange | None = described(
        "How long the workload lasts.", default=None, key="duration", closed_by=("workload.duration",)
    )
    producers: markers.NumberRange | None = described(
        "How many producers.",
        default=None,
        minimum=1,
        maximum=topology.CLIENTS_MAX,
        closed_by=("workload.producers.name",),
    )
    consumers: markers.NumberRange | None = described(
        "How many consumers.", default=None, maximum=topology.CLIENTS_MAX, closed_by=("workload.consumers",)
    )
    applications: tuple[tuple[str, tuple[int, int]], ...] = described(
        "How many clients of each other kind, by its key.", default=(), key=""
    )
    faults: SwarmFaults | None = described("The faults.", default=None)
    actions: SwarmActions | None = described(
        "What administrators and applications do beside.", default=None, counts_if_set=True
    )
    aims: Aims | None = described(
        "Rare states that some of the seeds aim at.", default=None, counts_if_set=True
    )
    core: bool = described(
        "Whether a core is healed first (`core`), in an order that is drawn; by default false.",
        default=False,
        closed_by=("core.order",),
    )

    def aimed(self, aim: Aim) -> "Swarm":
        """Return what a seed with an aim draws from: of settings and single values what the aim says, and all others."""
        said = {
            item.name: value
            for item in fields(Swarm)
            if (value := getattr(aim.instead, item.name)) != item.default
        }
        for name in ("settings", "values", "applications"):
            if name in said:
                said[name] = tuple({**dict(getattr(self, name)), **dict(said[name])}.items())
        return replace(self, **said)

    def struck(self) -> tuple[Action, ...]:
        """Return all faults and actions that a seed may draw."""
        own = (*(self.faults.kinds if self.faults else ()), *(self.actions.kinds if self.actions else ()))
        aims = self.aims.kinds if self.aims else ()
        return (*own, *(action for aim in aims for action in aim.instead.struck()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a campaign and its variants can say: everything a run depends on beside its choices."""

    SECTIONS: ClassVar[Mapping[str, str]] = {
        "workload": "The clients, and how long they work.",
        "limits": "When a run is given up, and how much it may ask for.",
    }

    campaign: str = described("The campaign's name.", key="")
    variant: str | None = described("The variant's name.", default=None, key="")
    description: str = described("What happens and why.", default="", shrinks=False)
    # Its expectations are not those of the release that it is run as of, so they accuse nobody.
    written_for: str | None = described(
        "The release that the campaign names, where an option names another one.",
        default=None,
        key="",
        shrinks=False,
    )
    written_release: str | None = described(
        "The same as a release's name alone, without a control plane.", default=None, key="", shrinks=False
    )
    kafka: markers.Release = described(
        f"The release, by default {DEFAULT_RELEASE}; `latest` is the newest one of the model.",
        default=DEFAULT_RELEASE,
        shrinks=False,
        instead_of=("inter.broker.protocol.version", "metadata.version"),
    )
    behaviours: Annotated[Mapping[str, Value], BehavioursMarker] = described(
        "Single switches of the release (`harrow list releases`).", factory=dict, shrinks=False
    )
    cluster: topology.ClusterSpec = described("The servers.", implied=True)
    duration_us: markers.Duration = described(
        "How long records are generated and faults are drawn; by default 0s.",
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
    script: tuple[Step, ...] = described("Steps, taken in order.", default=(), shrinks=False)
    faults: tuple[Injection, ...] = described("Faults, each on its own.", default=(), shrinks=False)
    # Some of the plan is drawn from the seed first (`harrow.campaigns.run.swarm`).
    swarm: Swarm | None = described(
        "What is left open, for each seed to draw (overrides what is given elsewhere).",
        default=None,
        shrinks=False,
    )
    survivable: bool = described(
        "Whether power losses leave at least `min.insync.replicas` copies of each committed record in the ISR, from which a leader comes; by default false.",
        default=False,
    )
    blast_radius: BlastRadius | None = described(
        "How much of the cluster faults may take out of service at once; one that would take more does not strike.",
        default=None,
        emptiable=True,
        counts_if_set=True,
    )
    core: Core | None = described(
        "Heal a sufficient core of the brokers first, and see whether it serves (the rule `unavailable`).",
        default=None,
        emptiable=True,
    )
    script_limit_us: markers.Duration = described(
        "For the script; by default 10m.", default=600 * US_PER_SECOND, key="limits.script", minimum=1
    )
    step_limit_us: markers.Duration | None = described(
        "How long a step of the script waits for its condition before it is taken without; by default as long as the script may.",
        default=None,
        key="limits.step",
        minimum=1,
        counts_if_set=True,
    )
    recovery_limit_us: markers.Duration = described(
        "For the healed cluster; by default 10m.",
        default=600 * US_PER_SECOND,
        key="limits.recovery",
        minimum=1,
    )
    events_limit: markers.Count = described(
        "How many events of the simulator a run may take; by default 20000000.",
        default=20_000_000,
        key="limits.events",
        maximum=EVENTS_MAX,
    )
    faults_limit: markers.Count = described(
        "How many faults may strike in a run; by default 200000.",
        default=200_000,
        key="limits.faults",
        maximum=EVENTS_MAX,
        shrinks=False,
        counts_if_set=True,
    )
    memory_limit_mib: markers.Count = described(
        "How many MiB of memory the cluster and its clients may take, as worked out before a run; by default 1024.",
        default=MEMORY_DEFAULT_MIB,
        key="limits.memory",
        maximum=MEMORY_MAX_MIB,
        shrinks=False,
        counts_if_set=True,
    )
    invariants: tuple[Annotated[str, InvariantMarker], ...] = described(
        "The invariants that are watched: a list of them, `all` (the default) or `none`.",
        default=tuple(INVARIANTS),
    )
    demand: tuple[Annotated[str, RuleMarker], ...] = described(
        "Rules whose anomalies are violations whatever Kafka promises with these settings: a list of them, or `all`.",
        default=(),
    )
    found: Found | None = described(
        "The failure that this is a regression of (`harrow regress`).", default=None, shrinks=False
    )
    expect: Expectation = described("What is expected at the end.", default=Expectation(), shrinks=False)

    def clients(self) -> tuple[Any, ...]:
        return (*self.producers, *self.consumers, *self.applications)

    def running_cluster(self) -> topology.ClusterSpec:
        """Return the servers with the internal topics that brokers create when clients first look for a coordinator.

        Here they are there from the beginning. One that the campaign has among its topics is as it says.
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
        known = {topic.name for topic in cluster.topics}
        config = broker_config(self.kafka, cluster.settings)
        missing = (name for name in dict.fromkeys(needed) if name not in known)
        created = tuple(internal_topic(name, config) for name in missing)
        return replace(cluster, topics=(*cluster.topics, *created))

    def behaviour_switches(self) -> Behaviours:
        """Return the release's behaviours with the campaign's switches applied."""
        return RELEASES[self.kafka].behaviours.with_switches(**self.behaviours)

    def flawed(self, mutant: Mutant) -> "Plan":
        """Return the plan with a known flaw, as of the release that the flaw is about."""
        kafka = self.kafka if mutant.kafka == DEFAULT_RELEASE else mutant.kafka
        return replace(self, kafka=kafka, behaviours={**self.behaviours, mutant.switch: mutant.value})

    @property
    def metadata(self) -> str:
        """Where brokers keep their metadata: ``zookeeper`` or ``kraft``."""
        return self.cluster.metadata or RELEASES[self.kafka].metadata

    def digest(self) -> str:
        """Return the digest (SHA-256, hex, 16 digits) of what the plan does.

        Words for the reader (description, notes, line numbers, the variant's name, where a failure
        was found, which release the campaign was written for) do not count.
        """
        return _digest(_Same(self))


class _Same:
    """A plan for a cache that knows it by identity: some of what a plan holds has no hash."""

    __slots__ = ("plan",)

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def __hash__(self) -> int:
        return id(self.plan)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.plan is self.plan


@lru_cache(maxsize=64)  # What is written of a run names its plan in several places.
def _digest(same: _Same) -> str:
    text = json.dumps(_plain(same.plan), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


_WORDS_ONLY = frozenset({"description", "note", "line", "variant", "found", "written_for", "written_release"})


def _unset(value: Any) -> frozenset[str]:
    """Return the fields that do not count in the digest of a value, for they are as by default."""
    counting = (
        *(Plan, Injection, Swarm, topology.ClusterSpec, topology.BrokerSpec),
        *(topology.ProducerSpec, topology.ConsumerSpec),
    )
    if not isinstance(value, counting):
        return frozenset()
    counted = markers.counted_if_set(type(value))
    return frozenset(name for name, default in counted.items() if getattr(value, name) == default)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        unset = _unset(value)
        parts = {
            item.name: _plain(getattr(value, item.name))
            for item in fields(value)
            if item.name not in _WORDS_ONLY and item.name not in unset
        }
        return {"": getattr(value, "name", None) or type(value).__name__, **parts}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value

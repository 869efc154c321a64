"""Strategies for all plans that a campaign file can express, for tests that write and read them."""

from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st

from harrow.campaigns.language.plan import EVENTS_MAX, BlastRadius, Core, Expectation, Plan, Step
from harrow.campaigns.language.readers.judgement import RuleScope
from harrow.campaigns.search import strategies
from harrow.checks.finding import STATUSES
from harrow.cluster_model import fields as markers
from harrow.cluster_model.events import EVENTS, FieldKind, FieldTrait, event_fields, fields_with
from harrow.cluster_model.invariants.catalogue import INVARIANTS
from harrow.cluster_model.release.profiles import RELEASES, SWITCHES
from harrow.cluster_model.settings import CONSUMER
from harrow.cluster_model.topology import CONTROL_PLANES, KRAFT, ClusterSpec, ConsumerSpec
from harrow.faults import link_ends
from harrow.faults.action import Action
from harrow.faults.actions import ElectPreferredLeaders, Expect, RestartProducer, Send, Wait
from harrow.faults.catalogue import FAULTS
from harrow.faults.condition import Condition
from harrow.faults.event_pattern import EventPattern
from harrow.faults.facts import ReplicaIs
from harrow.faults.fault import Fault
from harrow.faults.injection import At, Every, Injection, Rate, Timing, When
from harrow.faults.messages import Message, Release
from tests.conditions import condition
from tests.properties.drawn_clusters import (
    DAY_US,
    VALUES,
    clusters,
    intervals,
    producers,
    texts,
    times,
)

RESTRICTING_SWITCHES: Final = frozenset({"idempotence", "idempotent_in_flight_max"})
"""Switches that make Kafka refuse settings. The settings are drawn without regard to them."""


class Names:
    """The names to which a plan's parts can refer."""

    def __init__(
        self, cluster: ClusterSpec, metadata: str, producers: Sequence[str], consumers: Sequence[str]
    ) -> None:
        self.metadata = metadata
        self.brokers = [broker.id for broker in cluster.brokers]
        self.controllers = list(cluster.controller_ids()) if metadata == KRAFT else self.brokers
        self.partitions = list(cluster.partition_names())
        self.topics = [topic.name for topic in cluster.topics]
        racks = {broker.rack for broker in cluster.brokers if broker.rack}
        # The words of a reference are separated by single spaces.
        self.racks = sorted(rack for rack in racks if " ".join(rack.split()) == rack)
        self.producers = list(producers)
        self.clients = [*producers, *consumers]
        self.replicas = {
            f"{topic.name}-{number}": list(topic.assignment[number]) if topic.assignment else self.brokers
            for topic in cluster.topics
            for number in range(topic.partitions)
        }

    def values(self) -> dict[Any, st.SearchStrategy[Any]]:
        """Return values for kinds of fields for which campaign files accept more than runs need."""
        references = [*self.brokers, "any", "controller"]
        references += [
            f"{role} of {name}" for role in ("leader", "follower", "followers") for name in self.partitions
        ]
        references += [
            *(f"leaders of {name}" for name in self.topics),
            *(f"rack {rack}" for rack in self.racks),
        ]
        references += ["random 2", "50%", "all"]
        brokers = st.sampled_from(references)
        ends = [*references, *self.clients, *link_ends.GROUPS, link_ends.ZOOKEEPER]
        return {
            **VALUES,
            markers.BrokerMarker: brokers | st.lists(brokers, min_size=1, max_size=3).map(tuple),
            markers.LinkEndMarker: st.sampled_from(ends),
            markers.ProbabilityMarker: st.floats(0, 1).map(abs),
            markers.MessageRuleNameMarker: texts,
            markers.MessageRuleMarker: texts,
        }


def _ranges(longest_us: int) -> st.SearchStrategy[tuple[int, int]]:
    times = st.integers(0, longest_us)
    return st.one_of(times.map(lambda us: (us, us)), st.tuples(times, times).map(sorted).map(tuple))


def faults(names: Names) -> st.SearchStrategy[Any]:
    """Return faults of every kind in the catalogue, with every field."""
    return strategies.faults(
        kinds=FAULTS,
        brokers=names.brokers,
        partitions=names.partitions,
        clients=names.clients,
        values=names.values(),
    )


def _some(strategy: st.SearchStrategy[Any], size: int = 3) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=size).map(tuple)


def _keyed(keys: Sequence[Any], value: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    pairs = st.tuples(st.sampled_from(keys), value)
    return st.lists(pairs, max_size=2, unique_by=lambda pair: pair[0]).map(tuple)


_TEXT: Final = {
    *(FieldKind.TEXT, FieldKind.TEXTS, FieldKind.VALUES, FieldKind.CLIENT, FieldKind.PROCESS),
}
_MIXED: Final = {FieldKind.FLAG, FieldKind.PAIRS, FieldKind.RECORDS, FieldKind.OBJECT}


def _event_value(kind: FieldKind, names: Names) -> st.SearchStrategy[Any]:
    if kind is FieldKind.PARTITION:
        return st.sampled_from(names.partitions)
    if kind is FieldKind.BROKER:
        return st.sampled_from(names.brokers)
    number = st.integers(-(2**62), 2**62)
    single: st.SearchStrategy[Any] = texts if kind in _TEXT else number
    if kind in _MIXED:
        single = st.one_of(texts, number, st.booleans())
    return st.one_of(single, st.none(), _some(single), _some(_some(single)))


@st.composite
def events(draw: st.DrawFn, names: Names) -> EventPattern:
    """Draw an event, with fields in any order."""
    # A campaign may not wait for an event of the other control plane.
    names_of_events = [
        name for name, kind in EVENTS.items() if kind.subsystem not in {*CONTROL_PLANES} - {names.metadata}
    ]
    event = draw(st.sampled_from(names_of_events))
    kinds = event_fields(event)
    values = {name: _event_value(kind, names) for name, kind in kinds.items()}
    values |= dict.fromkeys(
        fields_with(event, FieldTrait.NAMES_CONTROLLER), st.sampled_from(names.controllers)
    )
    fields = draw(st.lists(st.sampled_from(list(kinds)), unique=True, max_size=3)) if kinds else []
    return EventPattern(event=event, fields=tuple((name, draw(values[name])) for name in fields))


@st.composite
def rows(draw: st.DrawFn, names: Names) -> ReplicaIs:
    """Draw a row of a table of replicas."""
    partition = draw(st.sampled_from(names.partitions))
    replicas = names.replicas[partition]
    offset, number = st.integers(0, 2**62), st.integers(-1, 9)
    options: dict[str, st.SearchStrategy[Any]] = {
        "role": st.sampled_from(["leader", "follower"]),
        **dict.fromkeys(("leo", "hw", "flushed"), offset),
        "leader_epoch": number,
        "remote": _keyed(replicas, number),
        "epochs": _some(st.tuples(number, number)),
        "log": _some(texts, 40),
    }
    facts: dict[str, Any] = {name: draw(st.none() | option) for name, option in options.items()}
    return ReplicaIs(partition=partition, broker=draw(st.sampled_from(replicas)), **facts)


@st.composite
def conditions(draw: st.DrawFn, names: Names) -> Condition:
    """Draw a condition with at least one fact."""
    partition = draw(st.sampled_from(names.partitions))
    replica = st.sampled_from(names.replicas[partition])
    facts: dict[str, Any] = {
        "replicas": draw(_some(rows(names))),
        "leader": draw(_keyed([partition], st.just(-1) | replica)),
        "leader_epoch": draw(_keyed(names.partitions, st.integers(-1, 5))),
        "isr": draw(_keyed([partition], _some(replica))),
        "controller": draw(_some(st.sampled_from(names.controllers), 1)),
        "brokers": draw(_keyed(names.brokers, st.sampled_from(["up", "down", "paused"]))),
        "registered": draw(_keyed(names.brokers, st.booleans())),
        **{key: draw(_some(texts)) for key in ("acked", "not_acked", "failed", "consumed", "not_consumed")},
        "event": draw(_some(events(names))),
        "no_event": draw(_some(events(names), 1)),
    }
    keys = draw(st.sets(st.sampled_from(list(facts)), max_size=4))
    result = condition(**{key: facts[key] for key in keys})
    return result if result.facts else condition(acked=("m0",))


@st.composite
def series(draw: st.DrawFn, names: Names) -> list[Action]:
    """Draw sends of numbered values, sometimes with numbers out of order."""
    stem, producer = draw(texts), draw(st.sampled_from(names.producers))
    partition = draw(st.none() | st.sampled_from(names.partitions))
    numbers = list(range(draw(st.integers(0, 5))))
    numbers += draw(st.lists(st.integers(0, 6), max_size=2))
    return [Send(producer=producer, partition=partition, value=f"{stem}-{n}") for n in numbers]


@st.composite
def scripts(draw: st.DrawFn, names: Names) -> tuple[Step, ...]:
    """Draw steps of every kind."""
    singles: list[st.SearchStrategy[Any]] = [
        st.just(ElectPreferredLeaders()),
        st.just(Wait()),
        st.builds(Expect, condition=conditions(names)),
        faults(names),
    ]
    if names.producers:
        producer = st.sampled_from(names.producers)
        partition = st.none() | st.sampled_from(names.partitions)
        singles += [st.builds(RestartProducer, producer=producer)]
        singles += [st.builds(Send, producer=producer, value=texts, partition=partition)]
    actions = st.lists(st.one_of(singles), max_size=3)
    if names.producers:
        actions |= series(names)
    steps = st.builds(
        Step,
        actions=actions.map(tuple),
        at_us=st.none() | times,
        after_us=st.none() | times,
        when=st.none() | conditions(names),
        note=texts,
    )
    candidates: list[Step] = draw(st.lists(steps, max_size=4))
    last_us = 0
    script = []
    for step in candidates:
        # Steps run in order.
        if step.at_us is None or step.at_us >= last_us:
            script.append(step)
            last_us = step.at_us or last_us
    return tuple(script)


@st.composite
def injections(draw: st.DrawFn, names: Names, duration_us: int) -> Injection:
    """Draw an entry of ``faults`` that can strike."""
    start_us, length_us = draw(times.filter(lambda us: us < DAY_US // 2)), draw(st.integers(2, DAY_US // 2))
    stop_us = start_us + length_us
    if draw(st.booleans()) and duration_us > start_us + 1:
        stop_us = duration_us
    timings: list[st.SearchStrategy[Timing]] = [
        st.builds(When, condition=conditions(names), times=st.integers(1, 5)),
        st.builds(At, at_us=_ranges(duration_us)),
        st.integers(1, stop_us - start_us - 1).map(
            lambda us: Every(period_us=us, start_us=start_us, stop_us=stop_us)
        ),
        intervals.map(lambda us: Rate(mean_us=us, start_us=start_us, stop_us=stop_us)),
    ]
    injected = draw(st.lists(faults(names), min_size=1, max_size=3))
    serial, repeat = draw(st.booleans()), draw(st.integers(1, 3))
    return Injection(
        timing=draw(st.one_of(timings)),
        faults=tuple(injected),
        serial=serial,
        repeat=repeat,
        pause=draw(_ranges(DAY_US)) if serial or repeat > 1 else (0, 0),
        stop_when=draw(st.none() | conditions(names)),
    )


_WITHOUT_GROUP: dict[str, Any] = {"topics": (), "commit": "auto", "stop_us": None}
"""Values for fields of group members, for consumers without a group."""


@st.composite
def written_plans(draw: st.DrawFn) -> Plan:
    """Draw a plan of any kind."""
    release = draw(st.sampled_from(list(RELEASES)))
    cluster = draw(clusters(release))
    duration_us = draw(st.just(0) | times)
    names = draw(
        st.lists(st.sampled_from(["producer-0", "p1", "1e3", "null", "yes"]), unique=True, max_size=3)
    )
    drawn_producers = tuple(draw(producers(name, release, cluster, duration_us)) for name in names)
    consumers = tuple(
        draw(
            strategies.specs(
                ConsumerSpec,
                VALUES,
                name=f"c{number}",
                settings=strategies.settings(CONSUMER, kafka=release),
                partitions=st.lists(st.sampled_from(cluster.partition_names()), unique=True).map(tuple),
                **_WITHOUT_GROUP,
            )
        )
        for number in range(draw(st.integers(0, 2)))
    )
    metadata = cluster.metadata or RELEASES[release].metadata
    all_names = Names(cluster, metadata, names, [consumer.name for consumer in consumers])
    script = draw(scripts(all_names))
    entries = draw(st.lists(injections(all_names, duration_us), max_size=3))
    script, injected = _with_rules(script, tuple(entries))
    watched = draw(st.just(list(INVARIANTS)) | st.lists(st.sampled_from(list(INVARIANTS)), unique=True))
    invariants = tuple(name for name in INVARIANTS if name in watched)
    order = st.lists(st.sampled_from([broker.id for broker in cluster.brokers]), unique=True).map(tuple)
    core = draw(st.none() | strategies.specs(Core, VALUES, order=order))
    judged = sorted(RuleScope(invariants=invariants, has_core=core is not None).rules())
    demand = draw(st.just(judged) | st.lists(st.sampled_from(judged), unique=True, max_size=3))
    rules = draw(_keyed(judged, st.sampled_from(STATUSES)))
    return Plan(
        campaign=draw(st.sampled_from(["drawn", "1.0", "null", "yes"])),
        description=draw(texts),
        cluster=cluster,
        kafka=release,
        behaviours=draw(
            st.fixed_dictionaries(
                {},
                optional={
                    name: st.sampled_from(switch.choices)
                    for name, switch in SWITCHES.items()
                    if name not in RESTRICTING_SWITCHES
                },
            )
        ),
        producers=drawn_producers,
        consumers=consumers,
        script=script,
        faults=injected,
        duration_us=duration_us,
        script_limit_us=draw(st.just(600_000_000) | times.filter(bool)),
        recovery_limit_us=draw(st.just(600_000_000) | times.filter(bool)),
        events_limit=draw(st.just(20_000_000) | st.integers(1, EVENTS_MAX)),
        invariants=invariants,
        core=core,
        blast_radius=draw(st.none() | strategies.specs(BlastRadius, VALUES)),
        demand=tuple(sorted(demand)),
        expect=Expectation(
            verdict=draw(st.none() | st.sampled_from(STATUSES)),
            rules=tuple(sorted(rules)),
            lost=draw(st.none() | _some(texts, 30)),
            duplicated=draw(st.none() | _some(texts)),
            final=draw(st.none() | conditions(all_names)),
        ),
    )


def _with_rules(
    script: tuple[Step, ...], injected: tuple[Injection, ...]
) -> tuple[tuple[Step, ...], tuple[Injection, ...]]:
    """Return the script and the injections of a valid plan.

    The script gets a hold for each message that is released, and a step if the faults need a
    script.
    """
    actions: list[Any] = [action for step in script for action in step.actions]
    actions += [fault for injection in injected for fault in injection.faults]
    released = dict.fromkeys(action.id for action in actions if isinstance(action, Release))
    holds: tuple[Fault, ...] = tuple(Message(action="hold", id=rule) for rule in released)
    needs_script = not script and any(isinstance(injection.timing, (At, When)) for injection in injected)
    if holds or needs_script:
        script = (*script, Step(actions=holds or (Wait(),)))
    return script, injected

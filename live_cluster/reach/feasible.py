"""Finds the obstacles for campaigns on real brokers, and the behaviours that real brokers have."""

from collections.abc import Iterator, Mapping
from typing import Final

from harrow.campaigns.clients.clients import CLIENTS
from harrow.campaigns.language.literals import name_in
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.awaited import awaited_events, conditions_of
from harrow.cluster_model.controller.control_plane import CREATE_PARTITIONS_API, REASSIGNMENT_API
from harrow.cluster_model.events import Sight, events_seen_by
from harrow.cluster_model.fields import BrokerMarker, EndpointMarker, LinkEndMarker, all_fields_of
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.log.unified_log import DELETE_RECORDS
from harrow.cluster_model.release.profiles import RELEASES, SWITCHES, behaviours_in
from harrow.cluster_model.release.switch import version_of
from harrow.cluster_model.settings import (
    ASSIGNMENT_STRATEGY,
    CONSUMER,
    CONTROL_PLANE,
    CONTROL_PLANE_LISTENER,
    LONG_MAX,
    PRODUCER,
    Value,
    broker_config,
    topic_config,
)
from harrow.cluster_model.sim import message_rule
from harrow.cluster_model.topology import (
    CONFLUENT_KAFKA,
    FIRST_ZOOKEEPER_ID,
    INTERNAL_TOPICS,
    ZOOKEEPER,
    ApplicationSpec,
    ConsumerSpec,
    ProducerSpec,
    TopicSpec,
)
from harrow.faults.actions import AddPartitions, Send, ThrottleReplication, UnthrottleReplication
from harrow.faults.brokers import BrokerCrash
from harrow.faults.clients import ALL, ANY, ClientZombie
from harrow.faults.effects import ExpireSession, LoseDisk
from harrow.faults.facts import ControllerIs, ReplicaIs
from harrow.faults.fault import Fault
from harrow.faults.messages import Message
from harrow.live_cluster.clients.client_settings import LIBRARIES
from harrow.live_cluster.clients.live_kinds import LIVE
from harrow.live_cluster.links.frame import API_NAMES
from harrow.live_cluster.reach.rehearsal import (
    WhyImpossible,
    actions_of,
    applications_of,
    faults_of,
    reasons_against,
    rehearse,
)
from harrow.live_cluster.reach.small_segments import has_broker_with_small_segments, refuses_small_segments
from harrow.live_cluster.releases.kafka_release import KRAFT, KafkaRelease

ADMINISTRATIVE_REQUESTS: Final = frozenset({DELETE_RECORDS, CREATE_PARTITIONS_API, REASSIGNMENT_API})
"""The requests that the `Administrator` can send."""
_QUORUM_LEADER: Final = f"leader of {ZOOKEEPER}"
NO_BROKERS_ADDED: Final = "no brokers join a running cluster of real brokers"
NO_THROTTLE: Final = "replication is not throttled on real brokers"
_THROTTLE_SETTINGS: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
_DEFAULT_RECORD_BYTES: Final = ProducerSpec(name="any").record_bytes
_STICKY: Final = "sticky"
_TRANSACTIONS_V2: Final = "transactions_v2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What a campaign can do to a cluster of a *release*, and what harrow can observe of it.

    ``metadata`` is the store of the cluster's metadata (ZooKeeper or KRaft). ``sight`` determines
    the events in the trace of a run, and ``unobservable`` are the fields of `ReplicaIs` that harrow
    cannot observe. ``why_impossible`` returns the reason if an effect is impossible on the cluster.
    With ``has_controllers``, faults can strike KRaft controllers. ``requests`` are the
    administrative requests that harrow can send.
    """

    release: KafkaRelease
    metadata: str
    sight: Sight
    unobservable: frozenset[str]
    why_impossible: WhyImpossible
    has_controllers: bool = False
    log_dirs_max: int = 1
    requests: frozenset[str] = frozenset()


def obstacles(plan: Plan, reach: Reach) -> Iterator[str]:
    """Yield the reasons why a campaign cannot run; only one if it is for another release."""
    release = reach.release.model_release
    if plan.kafka != release:
        yield f"the campaign is for Kafka {plan.kafka}: --set kafka={release} runs it on {reach.release.name}"
        return
    yield from obstacles_within(plan, reach)


def obstacles_within(plan: Plan, reach: Reach) -> Iterator[str]:
    """Yield the reasons why a campaign cannot run on brokers of its own release."""
    yield from _obstacles_of_metadata(plan, reach)
    yield from _obstacles_of_observation(plan, reach)
    if plan.cluster.disk.log_dirs > reach.log_dirs_max:
        yield "real brokers have one log directory"
    if len(plan.cluster.initial_brokers()) < len(plan.cluster.brokers):
        yield NO_BROKERS_ADDED
    yield from _obstacles_of_settings(plan)
    for switch, value in plan.behaviours.items():
        if not _is_acceptable(switch, value, reach.release):
            yield f"no setting of a broker makes {switch} {str(value).lower()}"
    yield from _obstacles_of_actions(plan, reach)
    yield from _obstacles_of_clients(plan)
    if any(isinstance(action, AddPartitions) for action in actions_of(plan)):
        yield from _obstacles_of_added_partitions(plan)
    yield from reasons_against(plan, reach.why_impossible)
    faults = list(faults_of(plan))
    applications = {spec.name for spec in applications_of(plan)}
    # A fault that chooses its client (ANY, ALL) strikes an application, if there is one.
    zombie_clients = {fault.client for fault in faults if isinstance(fault, ClientZombie)}
    if any(
        client not in applications and not (applications and client in (ANY, ALL))
        for client in zombie_clients
    ):
        yield "client_zombie: on real brokers only an application can have two processes, not a producer or another consumer"
    for fault in faults:
        if isinstance(fault, Message):
            yield from _obstacles_of_message(fault)
    if any(isinstance(fault, BrokerCrash) and fault.kind == "power_loss" for fault in faults):
        yield from _obstacles_of_power_loss(plan)


@dataclass(frozen=True, slots=True)
class UnsetSwitch:
    """A switch that a campaign sets to a value that real brokers do not have, with its meaning.

    ``exists_later`` says whether a later release of Kafka has the value. If no release has it, the
    brokers have a flaw that the campaign excludes.
    """

    switch: str
    meaning: str
    exists_later: bool

    def __str__(self) -> str:
        if self.exists_later:
            return f"{self.switch} cannot be set on real brokers of this release"
        return (
            f"{self.switch} cannot be set on real brokers of any release. "
            f"A finding may be due to this, because the campaign assumes: {self.meaning}"
        )


def as_run_on_brokers(plan: Plan, release: KafkaRelease) -> tuple[Plan, tuple[UnsetSwitch, ...]]:
    """Return a plan with the behaviours of a release's brokers, and the switches that they lack.

    The returned plan switches on the brokers' behaviours that are newer than the model's release.
    Transactions v2 (KIP-890) stay off, because harrow's client libraries do not support them: newer
    brokers treat such clients as before. If the plan repairs a flaw that no release repairs, the
    returned plan has the flaw, so that findings propose to repair it.
    """
    modelled, actual = RELEASES[plan.kafka].behaviours, behaviours_in(release.name)
    unset_switches = tuple(
        UnsetSwitch(switch, SWITCHES[switch].meaning, _is_in_a_later_release(switch, value, release))
        for switch, value in plan.behaviours.items()
        if value != actual.value(switch)
    )
    unrepaired = {unset.switch for unset in unset_switches if not unset.exists_later}
    stated_behaviours = {
        switch: actual.value(switch)
        for switch in SWITCHES
        if actual.value(switch) != modelled.value(switch) or switch in unrepaired
    }
    writers: tuple[ProducerSpec | ApplicationSpec, ...] = (*plan.producers, *applications_of(plan))
    if actual.transactions.transactions_v2 and any(writer.transactional_id for writer in writers):
        stated_behaviours[_TRANSACTIONS_V2] = False
    return replace(plan, behaviours=stated_behaviours), unset_switches


def _is_acceptable(switch: str, value: object, release: KafkaRelease) -> bool:
    """Return whether a campaign with this value may run on a release's brokers.

    The brokers have the value, or lack the safe value, or a later release has the value.
    """
    acceptable = (SWITCHES[switch].value_in(release.name), SWITCHES[switch].safe)
    return value in acceptable or _is_in_a_later_release(switch, value, release)


def _is_in_a_later_release(switch: str, value: object, release: KafkaRelease) -> bool:
    return any(
        value_since == value
        for first, value_since in SWITCHES[switch].history()
        if first and version_of(first) > version_of(release.name)
    )


def _obstacles_of_settings(plan: Plan) -> Iterator[str]:
    all_settings = [plan.cluster.settings, *(broker.settings for broker in plan.cluster.brokers)]
    if any(settings.get(CONTROL_PLANE_LISTENER) == CONTROL_PLANE for settings in all_settings):
        yield f"{CONTROL_PLANE_LISTENER}: harrow starts real brokers with a single listener"
    if refuses_small_segments(plan.kafka) and has_broker_with_small_segments(plan.cluster):
        yield "since 4.0 only topics can have segments of less than 1 MiB: give all brokers the same log.segment.bytes"
    if any(topic.name not in INTERNAL_TOPICS and _compacts(plan, topic) for topic in plan.cluster.topics):
        yield "harrow cannot observe what compaction removes"
    if plan.cluster.quotas:
        yield "harrow sets no client quotas on real brokers"
    if any(name in settings for settings in all_settings for name in _THROTTLE_SETTINGS):
        # Throttles exist only as dynamic configurations.
        yield NO_THROTTLE


def _compacts(plan: Plan, topic: TopicSpec) -> bool:
    config = broker_config(plan.kafka, plan.cluster.settings)
    return topic_config(topic.settings, config).compacts


def _obstacles_of_actions(plan: Plan, reach: Reach) -> Iterator[str]:
    for request in dict.fromkeys(action.request for action in actions_of(plan) if action.request):
        if request.api not in reach.requests:
            yield f"harrow does not send {request.api} to these brokers"
        elif version_of(reach.release.name) < version_of(request.since):
            yield f"brokers of {reach.release.name} have no {request.api}, which came with Kafka {request.since}"
    if any(isinstance(action, (ThrottleReplication, UnthrottleReplication)) for action in actions_of(plan)):
        yield NO_THROTTLE
    sends = [action for action in actions_of(plan) if isinstance(action, Send)]
    if any(producer.tombstone_every for producer in plan.producers) or any(send.tombstone for send in sends):
        yield "harrow cannot distinguish tombstones on real brokers, so it sends none"
    keyed_producers = {send.producer for send in sends if send.record_key is not None}
    keyed_producers |= {producer.name for producer in plan.producers if producer.keys}
    if any(
        spec.name in keyed_producers and spec.record_bytes != _DEFAULT_RECORD_BYTES for spec in plan.producers
    ):
        yield "record_bytes does not apply to records with keys on real brokers"


def _obstacles_of_clients(plan: Plan) -> Iterator[str]:
    supported = {kind.spec for kind in CLIENTS.values() if LIVE in kind.made_on}
    for spec in plan.clients():
        if type(spec) not in supported:
            yield f"{spec.name} is a kind of client that exists only on the model"
    clients: list[tuple[str, ProducerSpec | ConsumerSpec]] = [
        *((PRODUCER, producer) for producer in plan.producers),
        *((CONSUMER, consumer) for consumer in plan.consumers),
    ]
    for consumer in plan.consumers:
        if consumer.group and consumer.library != CONFLUENT_KAFKA:
            yield f"{consumer.name} is a member of a group, and needs {CONFLUENT_KAFKA} on real brokers"
        elif consumer.group:
            yield from _obstacles_of_assignor(consumer.name, consumer.settings)
    for application in applications_of(plan):
        yield from _obstacles_of_assignor(application.name, application.consumer)
        lacking = LIBRARIES[CONFLUENT_KAFKA].lacking
        for setting in (*lacking(PRODUCER, application.producer), *lacking(CONSUMER, application.consumer)):
            yield f"{application.name} uses {CONFLUENT_KAFKA}, which has no setting {setting}"
    for scope, client in clients:
        for setting in LIBRARIES[client.library].lacking(scope, client.settings):
            yield f"{client.name} uses {client.library}, which has no setting {setting}"


def _obstacles_of_added_partitions(plan: Plan) -> Iterator[str]:
    for consumer in plan.consumers:
        if not consumer.group:
            yield f"{consumer.name} is not a member of a group, so it does not read partitions that are added"
    for producer in plan.producers:
        if producer.library != CONFLUENT_KAFKA:
            yield f"{producer.name} uses {producer.library}, and does not write to partitions that are added"
        elif producer.keys and not producer.partitions:
            yield f"{producer.name} keeps the partition of each key when partitions are added"


def _obstacles_of_assignor(client: str, settings: Mapping[str, Value]) -> Iterator[str]:
    if str(settings.get(ASSIGNMENT_STRATEGY, "")).partition(",")[0] == _STICKY:
        yield f"{client} uses {CONFLUENT_KAFKA}, which has no assignor {_STICKY}"


def _obstacles_of_observation(plan: Plan, reach: Reach) -> Iterator[str]:
    for name in sorted(awaited_events(plan) - events_seen_by(reach.sight)):
        yield f"harrow cannot observe the event {name}"
    needed = {
        column
        for condition in conditions_of(plan)
        for fact in condition.facts
        if isinstance(fact, ReplicaIs)
        for column in fact.compared_fields()
    }
    for column in sorted(needed & reach.unobservable):
        yield f"harrow cannot observe {column} of a replica"


def _obstacles_of_metadata(plan: Plan, reach: Reach) -> Iterator[str]:
    if plan.cluster.metadata not in (None, reach.metadata):
        yield f"the campaign is for {plan.cluster.metadata}, and the brokers keep their metadata in {reach.metadata}"
    if reach.metadata == KRAFT:
        yield from _obstacles_of_kraft(plan, reach)
        return
    if reach.has_controllers and plan.cluster.zookeeper_servers > 1:
        yield f"the campaign has {plan.cluster.zookeeper_servers} ZooKeeper servers, and harrow starts one"
    for fault in faults_of(plan):
        if _strikes_zookeeper(fault):
            yield f"{fault.name} strikes a ZooKeeper server, and harrow does not control its process"


def _obstacles_of_kraft(plan: Plan, reach: Reach) -> Iterator[str]:
    for fault in faults_of(plan):
        effects = {type(effect) for effect in rehearse(fault, plan)}
        strikes_controller = _strikes_controller(fault)
        if ExpireSession in effects and not strikes_controller:
            yield f"{fault.name} ends a broker's session with ZooKeeper, which KRaft does not have"
        elif LoseDisk in effects and strikes_controller:
            yield f"{fault.name} strikes a broker's disk, and the controller is not a broker"
        elif strikes_controller and not reach.has_controllers:
            yield f"{fault.name} strikes a broker, and the controller is not a broker"
    for condition in conditions_of(plan):
        if any(isinstance(fact, ControllerIs) for fact in condition.facts):
            yield "the controller is not a broker"


def voters_of(plan: Plan) -> int:
    """Return how many controllers a plan needs with KRaft: one if no fault strikes them."""
    may_be_struck = plan.swarm is not None or any(
        _strikes_controller(fault) or _strikes_zookeeper(fault) or fault.parts_control_plane
        for fault in faults_of(plan)
    )
    return plan.cluster.voters if may_be_struck else 1


def _strikes_controller(fault: Fault) -> bool:
    """Return whether a fault strikes the controller, or the quorum's leader."""
    for item in all_fields_of(type(fault)):
        if issubclass(item.kind, (BrokerMarker, LinkEndMarker)):
            value = item.value_in(fault)
            if {"controller", _QUORUM_LEADER}.intersection(value if isinstance(value, tuple) else (value,)):
                return True
    return False


def _strikes_zookeeper(fault: Fault) -> bool:
    """Return whether a fault names single servers of ZooKeeper."""
    for item in all_fields_of(type(fault)):
        if issubclass(item.kind, (BrokerMarker, EndpointMarker)):
            value = item.value_in(fault)
            for end in value if isinstance(value, tuple) else (value,):
                if (isinstance(end, int) and end >= FIRST_ZOOKEEPER_ID) or (
                    isinstance(end, str) and name_in(end)[0] == ZOOKEEPER
                ):
                    return True
    return False


def _obstacles_of_message(fault: Message) -> Iterator[str]:
    if fault.znode is not None:
        yield "harrow cannot tell messages about a znode from others"
    elif fault.api is not None and fault.api not in API_NAMES.values():
        yield f"harrow cannot tell {fault.api} requests from others"
    elif fault.action == message_rule.DUPLICATE and fault.kind != message_rule.REQUEST:
        yield "a client that gets a response twice breaks its connection"


def _obstacles_of_power_loss(plan: Plan) -> Iterator[str]:
    spec = plan.cluster
    for broker in spec.brokers:
        config = broker_config(plan.kafka, {**spec.settings, **broker.settings})
        for topic in spec.topics:
            if topic_config(topic.settings, config).flush_messages not in (1, LONG_MAX):
                yield f"harrow cannot observe how much of {topic.name} is flushed"
                return

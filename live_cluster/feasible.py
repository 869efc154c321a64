"""What a campaign asks for that real brokers cannot do or show, and what they are without."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.awaited import awaited_events, conditions_of
from harrow.campaigns.run.clients import application_kinds
from harrow.cluster_model import events
from harrow.cluster_model.release import version_of
from harrow.cluster_model.repairs import REPAIRS
from harrow.cluster_model.settings import LONG_MAX, broker_config, topic_config
from harrow.cluster_model.sim import message_rule
from harrow.faults.broker_crash import BrokerCrash
from harrow.faults.conditions.broker import ControllerIs
from harrow.faults.conditions.replica import ReplicaIs
from harrow.faults.controller_failover import ControllerFailover
from harrow.faults.fault import Fault
from harrow.faults.message import Message
from harrow.faults.session_expiry import SessionExpiry
from harrow.live_cluster.clients.live_clients import LIVE
from harrow.live_cluster.getting.kafka_release import KRAFT, KafkaRelease
from harrow.live_cluster.links.frame import API_NAMES

SEEN: Final = frozenset(
    kind.name
    for kind in (
        *(events.BrokerStarted, events.BrokerStopped, events.BrokerStopping, events.BrokerPaused),
        *(
            events.BrokerResumed,
            events.BrokerRegistered,
            events.SessionExpired,
            events.SessionClosed,
            events.ClientStopped,
        ),
        *(events.FaultStruck, events.FaultEnded, events.Healed, events.MessageDelivered),
        *(events.MessageRuleApplied, events.ControllerElected, events.ControllerChanged),
        *(events.ControllerZnodeDeleted, events.LeaderElected, events.IsrReduced, events.BecameLeader),
        *(events.BecameFollower, events.BatchAppended, events.BatchReplicated, events.BatchDeduplicated),
        *(events.HighWatermarkSet, events.IsrChanged, events.IsrWritten, events.LogTruncated),
        *(
            events.UnflushedLost,
            events.LogFlushed,
            events.LogOpened,
            events.CheckpointWritten,
            events.EpochEndAnswered,
        ),
        *(events.FollowerFetched, events.FetchDelayed, events.BatchAcknowledged, events.RequestRejected),
    )
)
"""The events that a run on real brokers has in its trace."""

UNSEEN_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    events.LogTruncated.name: frozenset({"reason"}),
    events.LeaderElected.name: frozenset({"reason"}),
}
"""What cannot be told of an event that is seen otherwise."""
_FIRST_WITH_EPOCHS: Final = (2, 1)
"""Since KIP-320 a broker compares the leader epoch of a request with its own."""


def obstacles(plan: Plan, release: KafkaRelease, metadata: str) -> Iterator[str]:
    """Yield what a campaign asks for that cannot be had on brokers of a release with such metadata, in words."""
    if metadata == KRAFT:
        yield from _obstacles_of_kraft(plan)
    yield from _obstacles_of_observation(plan, release)
    if plan.core is not None:
        yield "a core of the brokers cannot be healed alone"
    for switch, value in plan.behaviours.items():
        if not _is_repair(switch, value):
            yield f"no setting of a broker makes {switch} {str(value).lower()}"
    yield from _obstacles_of_clients(plan)
    faults = list(_faults(plan))
    for fault in faults:
        if isinstance(fault, Message):
            yield from _obstacles_of_message(fault)
    if any(isinstance(fault, BrokerCrash) and fault.kind == "power_loss" for fault in faults):
        yield from _obstacles_of_power_loss(plan)


def as_real(plan: Plan) -> tuple[Plan, tuple[str, ...]]:
    """Return a plan without the repairs that it switches on, and which these are: real brokers are as they are."""
    return replace(plan, behaviours={}), tuple(plan.behaviours)


def _is_repair(switch: str, value: object) -> bool:
    return any(repair.switch == switch and repair.value() == value for repair in REPAIRS.values())


def _faults(plan: Plan) -> Iterator[Fault]:
    for step in plan.script:
        yield from (action for action in step.actions if isinstance(action, Fault))
    for injection in plan.faults:
        yield from injection.faults


def _obstacles_of_clients(plan: Plan) -> Iterator[str]:
    known = {kind.spec for _, kind in application_kinds() if LIVE in kind.made_on}
    for spec in plan.applications:
        if type(spec) not in known:
            yield f"{spec.name} is of a kind that has no processes"


def _obstacles_of_observation(plan: Plan, release: KafkaRelease) -> Iterator[str]:
    for name in sorted(awaited_events(plan) - SEEN):
        yield f"the event {name} cannot be seen"
    if version_of(release.name) < _FIRST_WITH_EPOCHS and any(
        isinstance(fact, ReplicaIs) and fact.leader_epoch is not None
        for condition in conditions_of(plan)
        for fact in condition.facts
    ):
        yield "which leader epoch a replica knows cannot be seen before 2.1"


def _obstacles_of_kraft(plan: Plan) -> Iterator[str]:
    for fault in _faults(plan):
        if isinstance(fault, (SessionExpiry, ControllerFailover)):
            yield f"{fault.name} is about ZooKeeper, and there is none"
        elif getattr(fault, "broker", None) == "controller":
            yield f"{fault.name} strikes a broker, and the controller is none"
    for condition in conditions_of(plan):
        if any(isinstance(fact, ControllerIs) for fact in condition.facts):
            yield "the controller is no broker"


def _obstacles_of_message(fault: Message) -> Iterator[str]:
    if fault.znode is not None:
        yield "messages about a znode cannot be told from others"
    elif fault.api is not None and fault.api not in API_NAMES.values():
        yield f"{fault.api} requests cannot be told from others"
    elif fault.action == message_rule.DUPLICATE and fault.kind != message_rule.REQUEST:
        yield "a client that gets an answer twice breaks its connection"


def _obstacles_of_power_loss(plan: Plan) -> Iterator[str]:
    spec = plan.cluster
    for broker in spec.brokers:
        config = broker_config(plan.kafka, {**spec.settings, **broker.settings})
        for topic in spec.topics:
            if topic_config(topic.settings, config).flush_messages not in (1, LONG_MAX):
                yield f"how much of {topic.name} is flushed cannot be seen"
                return

"""What a campaign asks for that a user's cluster cannot do or show."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.spelling import listed
from harrow.cluster_model.events import Sight
from harrow.cluster_model.release import version_of
from harrow.cluster_model.settings import Value
from harrow.cluster_model.topology import CONFLUENT_KAFKA, ConsumerSpec, ProducerSpec
from harrow.faults.actions import ElectPreferredLeaders
from harrow.faults.fault import Fault
from harrow.live_cluster.clients.client_settings import LIBRARIES
from harrow.live_cluster.reach.feasible import Reach, obstacles
from harrow.live_cluster.reach.rehearsal import Deed, Rehearsed, applications_of, faults_of, rehearsed
from harrow.live_cluster.releases.kafka_release import ZOOKEEPER
from harrow.live_cluster.users.cluster_file import COMMANDS, HEALED_BY, TOPICS, ClusterFile
from harrow.live_cluster.users.user_cluster import OF_TOPICS, mapped_brokers
from harrow.live_cluster.wire.survey import Survey

OLDEST: Final = (2, 1)
"""From here on brokers tell leader epochs (KIP-320)."""
_FIRST_WITH_ELECTIONS: Final = (2, 4)

UNOBSERVABLE_COLUMNS: Final = frozenset({"flushed", "remote", "epochs", "log"})

_CLIENT_DEEDS: Final = frozenset(
    {
        *(Deed.KILL_CLIENT, Deed.PAUSE_CLIENT, Deed.DOUBLE_CLIENT),
        *(Deed.HOLD_CLIENT, Deed.SLOW_CLIENT, Deed.CLOSE_CLIENT),
    }
)
"""Clients are processes of harrow's own, whatever the cluster is."""

Settings = Mapping[int, Mapping[str, str]]
"""The settings that brokers have, by their ids on the cluster."""

_NOT_AT_HAND: Final = {
    Deed.LOSE_POWER: "no command cuts the power, and what is on disk is not seen",
    Deed.TEAR_WRITE: "no command cuts the power, and what is on disk is not seen",
    Deed.LOSE_DISK: "the disks are not at hand",
    Deed.SLOW_DISK: "the disks are not at hand",
    Deed.FAIL_LOG_DIR: "the disks are not at hand",
    Deed.DAMAGE_BATCH: "the disks are not at hand",
    Deed.REVERT_CHECKPOINT: "the disks are not at hand",
    Deed.REMOVE_CHECKPOINT: "the disks are not at hand",
    Deed.STEP_CLOCK: "no command sets a clock",
    Deed.EXPIRE_SESSION: "ZooKeeper is not at hand",
    Deed.DELETE_CONTROLLER: "ZooKeeper is not at hand",
    Deed.DEGRADE: "no command makes a link slow",
    Deed.RESET: "no command breaks connections",
    Deed.RULE_MESSAGES: "messages do not pass harrow on a cluster that it has not started",
}


def obstacles_on(plan: Plan, file: ClusterFile, seen: Survey, settings: Settings) -> Iterator[str]:
    """Yield what a campaign asks for that cannot be had on a cluster, in words."""
    if version_of(seen.release.name) < OLDEST:
        yield f"brokers of {seen.release.name} do not tell leader epochs: it takes 2.1 or newer"
        return
    present = [each.id for each in seen.brokers if each.id in (file.brokers or {each.id})]
    brokers = mapped_brokers(plan, present)
    if brokers is None:
        yield f"it has {len(plan.cluster.brokers)} brokers, and the cluster {len(present)}"
        return
    reach = Reach(
        release=seen.release,
        metadata=seen.metadata,
        sight=Sight.ANY_BROKERS,
        unseen=UNOBSERVABLE_COLUMNS,
        lack=partial(_lack, file, brokers),
    )
    yield from obstacles(plan, reach)
    if plan.cluster.controller is not None and seen.metadata == ZOOKEEPER:
        yield "which broker is the controller cannot be chosen"
    elects = any(isinstance(action, ElectPreferredLeaders) for step in plan.script for action in step.actions)
    if elects and version_of(seen.release.name) < _FIRST_WITH_ELECTIONS:
        yield "clients cannot ask for preferred leaders before 2.4 (KIP-460)"
    clients: list[ProducerSpec | ConsumerSpec] = [*plan.producers, *plan.consumers]
    for client in clients:
        for name in LIBRARIES[client.library].lacking_security(file.security.settings):
            yield f"{client.library}, which {client.name} is, cannot be told {name}"
    for application in applications_of(plan):
        for name in LIBRARIES[CONFLUENT_KAFKA].lacking_security(file.security.settings):
            yield f"{CONFLUENT_KAFKA}, which {application.name} is, cannot be told {name}"
    yield from _obstacles_of_settings(plan, brokers, seen, settings)


def deeds_of(plan: Plan) -> frozenset[str]:
    """Return what a campaign does to a cluster that asks for consent."""
    faults = [
        *faults_of(plan),
        *(action for action in (plan.swarm.struck() if plan.swarm else ()) if isinstance(action, Fault)),
    ]
    done = {each.deed for fault in faults for each in rehearsed(fault, plan)}
    return frozenset({TOPICS, *(deed for deed in HEALED_BY if deed in done)})


def impossible(done: Rehearsed) -> str | None:
    """Return why something cannot be done to a cluster of a user's, whatever commands there are; None where it can."""
    if done.deed in _CLIENT_DEEDS:
        return None
    if done.deed not in COMMANDS:
        return _NOT_AT_HAND[done.deed]
    stranger = next((end for end in done.ends if isinstance(end, str)), None)
    return None if stranger is None else f"no command cuts a link with {stranger}"


def _lack(file: ClusterFile, brokers: Mapping[int, int], done: Rehearsed) -> str | None:
    if (reason := impossible(done)) is not None:
        return reason
    if done.deed in _CLIENT_DEEDS:
        return None
    # A link is cut and restored where it ends.
    broker = done.ends[-1]
    assert isinstance(broker, int)
    if broker not in brokers:
        return "there are no commands for servers of the control plane"
    if file.command(done.deed, brokers[broker]) is None:
        return f"there is no command that does {done.deed}"
    return None


def _obstacles_of_settings(
    plan: Plan, brokers: Mapping[int, int], seen: Survey, settings: Settings
) -> Iterator[str]:
    """Yield where brokers have other settings than the campaign gives them; what topics can have is set there."""
    wrong: dict[str, list[int]] = {}
    for broker in plan.cluster.brokers:
        own = sorted(OF_TOPICS & broker.settings.keys())
        if own:
            yield f"broker {broker.id} alone cannot be given {', '.join(own)}"
        given = {**plan.cluster.settings, **broker.settings}
        found = settings[brokers[broker.id]]
        for name, value in given.items():
            is_about_zookeeper = name.startswith("zookeeper.")
            if name in OF_TOPICS or (is_about_zookeeper and seen.metadata != ZOOKEEPER):
                continue
            here = f"{name} is {found[name]}" if name in found else f"{name} is not told"
            if found.get(name, "").lower() != _text(value):
                wrong.setdefault(f"{here}, the campaign has {_text(value)}", []).append(brokers[broker.id])
    for difference, where in wrong.items():
        # What all brokers have is said of the cluster.
        yield (difference if len(where) == len(brokers) else f"{difference} (on broker {listed(where)})")


def _text(value: Value) -> str:
    return str(value).lower()

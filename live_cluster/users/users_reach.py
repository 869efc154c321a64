"""Finds the obstacles for a campaign on the user's own cluster."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.spelling import counted, listed
from harrow.cluster_model.events import Sight
from harrow.cluster_model.release.switch import version_of
from harrow.cluster_model.settings import Value
from harrow.cluster_model.topology import CONFLUENT_KAFKA
from harrow.faults import effects
from harrow.faults.actions import ElectPreferredLeaders
from harrow.faults.effects import FaultEffect
from harrow.faults.fault import Fault
from harrow.faults.handlers import Handlers
from harrow.live_cluster.clients.client_settings import LIBRARIES
from harrow.live_cluster.reach.feasible import Reach, obstacles
from harrow.live_cluster.reach.rehearsal import applications_of, faults_of, rehearse
from harrow.live_cluster.releases.kafka_release import ZOOKEEPER
from harrow.live_cluster.target.live_effects import LIVE_EFFECTS
from harrow.live_cluster.target.live_environment import LiveEnvironment
from harrow.live_cluster.users.command import CommandName
from harrow.live_cluster.users.target_file import HEALED_BY, TOPICS, TargetFile
from harrow.live_cluster.users.user_cluster import OVERRIDABLE_BY_TOPICS, map_brokers
from harrow.live_cluster.wire.survey import Survey

FIRST_WITH_LEADER_EPOCHS: Final = (2, 1)
"""The first release whose brokers report leader epochs (KIP-320)."""
_FIRST_WITH_ELECT_LEADERS_REQUEST: Final = (2, 4)
"""The first release in which clients can request an election of preferred leaders (KIP-460)."""

UNOBSERVABLE_COLUMNS: Final = frozenset({"flushed", "remote", "epochs", "log"})
"""The columns of a replica's state that harrow cannot observe on a user's cluster."""

Settings = Mapping[int, Mapping[str, str]]
"""Maps the id of each broker on the cluster to its settings."""

_COMMANDS: Final[Mapping[type[FaultEffect], CommandName]] = {
    effects.Kill: CommandName.KILL,
    effects.Stop: CommandName.STOP,
    effects.Pause: CommandName.PAUSE,
    effects.Cut: CommandName.CUT,
    effects.Start: CommandName.START,
    effects.Resume: CommandName.RESUME,
    effects.Restore: CommandName.RESTORE,
}


def _reason_against_link(effect: effects.LinkEffect) -> str | None:
    """Return why no command can cut or restore a link, None if it is between brokers."""
    other = next((end for end in (effect.sender, effect.receiver) if isinstance(end, str)), None)
    return None if other is None else f"no command cuts a link with {other}"


USER_CLUSTER_EFFECTS: Final[Handlers[LiveEnvironment]] = Handlers(LIVE_EFFECTS)
"""The handlers of effects on a user's cluster, whose target file may lack their commands."""
USER_CLUSTER_EFFECTS.restrict(effects.Cut, _reason_against_link)
USER_CLUSTER_EFFECTS.restrict(effects.Restore, _reason_against_link)
USER_CLUSTER_EFFECTS.register_impossible(
    "no command cuts the power, and harrow cannot see the disks", effects.LosePower, effects.TearWrite
)
USER_CLUSTER_EFFECTS.register_impossible(
    "harrow has no access to the disks",
    *(effects.LoseDisk, effects.SlowDisk, effects.FailLogDir),
    *(effects.DamageBatch, effects.RevertCheckpoint, effects.RemoveCheckpoint),
)
USER_CLUSTER_EFFECTS.register_impossible("no command sets a clock", effects.StepClock)
USER_CLUSTER_EFFECTS.register_impossible(
    "harrow has no access to ZooKeeper", effects.ExpireSession, effects.DeleteController
)
USER_CLUSTER_EFFECTS.register_impossible("no command makes a link slow", effects.SlowBroker, effects.SlowLink)
USER_CLUSTER_EFFECTS.register_impossible("no command breaks connections", effects.ResetLink)
USER_CLUSTER_EFFECTS.register_impossible(
    "messages go through harrow only on clusters that it started",
    effects.RuleMessages,
    effects.ReleaseMessages,
)


def obstacles_on(plan: Plan, file: TargetFile, survey: Survey, settings: Settings) -> Iterator[str]:
    """Yield the reasons why a campaign cannot run on a cluster."""
    release = survey.release
    if version_of(release.name) < FIRST_WITH_LEADER_EPOCHS:
        yield f"brokers of {release.name} do not report leader epochs: harrow needs 2.1 or newer"
        return
    present = [node.id for node in survey.brokers if file.has_broker(node.id)]
    brokers = map_brokers(plan, present)
    if brokers is None:
        yield f"the campaign has {counted(len(plan.cluster.brokers), 'broker')}, and may use {len(present)} of the cluster's"
        return
    reach = Reach(
        release=release,
        metadata=survey.metadata,
        sight=Sight.ANY_BROKERS,
        unobservable=UNOBSERVABLE_COLUMNS,
        why_impossible=partial(_why_impossible, file, brokers),
    )
    yield from obstacles(plan, reach)
    if plan.cluster.controller is not None and survey.metadata == ZOOKEEPER:
        yield "harrow cannot choose the controller"
    elects = any(isinstance(action, ElectPreferredLeaders) for step in plan.script for action in step.actions)
    if elects and version_of(release.name) < _FIRST_WITH_ELECT_LEADERS_REQUEST:
        yield "clients cannot ask for preferred leaders before 2.4 (KIP-460)"
    clients: list[tuple[str, str]] = [
        *((producer.library, producer.name) for producer in plan.producers),
        *((consumer.library, consumer.name) for consumer in plan.consumers),
        *((CONFLUENT_KAFKA, application.name) for application in applications_of(plan)),
    ]
    for library, client in clients:
        for name in LIBRARIES[library].lacking_security(file.security.settings):
            yield f"{client} uses {library}, which has no setting {name}"
    yield from _differing_settings(plan, brokers, survey, settings)


def permissions_for(plan: Plan) -> frozenset[str]:
    """Return the permissions that a campaign needs."""
    faults = [
        *faults_of(plan),
        *(action for action in (plan.swarm.all_actions() if plan.swarm else ()) if isinstance(action, Fault)),
    ]
    commands = {_COMMANDS.get(type(effect)) for fault in faults for effect in rehearse(fault, plan)}
    return frozenset({TOPICS, *(command for command in HEALED_BY if command in commands)})


def _why_impossible(file: TargetFile, brokers: Mapping[int, int], effect: FaultEffect) -> str | None:
    reason = USER_CLUSTER_EFFECTS.lack(effect)
    command = _COMMANDS.get(type(effect))
    if reason is not None or command is None:
        return reason
    assert isinstance(effect, effects.BrokerEffect | effects.LinkEffect)
    # The command that cuts or restores a link runs for the receiving broker.
    broker = effect.broker if isinstance(effect, effects.BrokerEffect) else effect.receiver
    assert isinstance(broker, int)
    if broker not in brokers:
        return "there are no commands for servers of the control plane"
    if file.command(command, brokers[broker]) is None:
        return f"there is no command {command}"
    return None


def _differing_settings(
    plan: Plan, brokers: Mapping[int, int], survey: Survey, settings: Settings
) -> Iterator[str]:
    """Yield a message for each setting whose value on the brokers differs from the campaign's.

    Settings in `OVERRIDABLE_BY_TOPICS` are skipped, because the campaign's topics override them.
    But topics cannot override them for a single broker.
    """
    differences: dict[str, list[int]] = {}
    for broker in plan.cluster.brokers:
        broker_only = sorted(OVERRIDABLE_BY_TOPICS & broker.settings.keys())
        if broker_only:
            yield f"{', '.join(broker_only)} cannot differ on broker {broker.id}"
        actual = settings[brokers[broker.id]]
        for name, value in {**plan.cluster.settings, **broker.settings}.items():
            is_for_zookeeper = name.startswith("zookeeper.")
            if name in OVERRIDABLE_BY_TOPICS or (is_for_zookeeper and survey.metadata != ZOOKEEPER):
                continue
            actual_text = f"{name} is {actual[name]}" if name in actual else f"{name} is unknown"
            if actual.get(name, "").lower() != _text(value):
                difference = f"{actual_text}, the campaign has {_text(value)}"
                differences.setdefault(difference, []).append(brokers[broker.id])
    for difference, differing in differences.items():
        on_all_brokers = len(differing) == len(brokers)
        yield difference if on_all_brokers else f"{difference} (on broker {listed(differing)})"


def _text(value: Value) -> str:
    return str(value).lower()

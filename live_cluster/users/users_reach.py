"""Finds the obstacles for a campaign on the user's own cluster."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.spelling import listed
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
_FIRST_WITH_ELECTIONS: Final = (2, 4)

UNOBSERVABLE_COLUMNS: Final = frozenset({"flushed", "remote", "epochs", "log"})

Settings = Mapping[int, Mapping[str, str]]
"""Settings of brokers, by their ids on the cluster."""

_COMMANDS: Final[Mapping[type[FaultEffect], CommandName]] = {
    effects.Kill: CommandName.KILL,
    effects.Stop: CommandName.STOP,
    effects.Pause: CommandName.PAUSE,
    effects.Cut: CommandName.CUT,
    effects.Start: CommandName.START,
    effects.Resume: CommandName.RESUME,
    effects.Restore: CommandName.RESTORE,
}


def _is_between_brokers(effect: effects.LinkEffect) -> str | None:
    other = next((end for end in (effect.sender, effect.receiver) if isinstance(end, str)), None)
    return None if other is None else f"no command cuts a link with {other}"


USERS: Final[Handlers[LiveEnvironment]] = Handlers(LIVE_EFFECTS)
"""The effects that are possible on a user's cluster, if its file has the commands."""
USERS.restrict(effects.Cut, _is_between_brokers)
USERS.restrict(effects.Restore, _is_between_brokers)
USERS.register_impossible(
    "no command cuts the power, and harrow cannot see the disks", effects.LosePower, effects.TearWrite
)
USERS.register_impossible(
    "harrow has no access to the disks",
    *(effects.LoseDisk, effects.SlowDisk, effects.FailLogDir),
    *(effects.DamageBatch, effects.RevertCheckpoint, effects.RemoveCheckpoint),
)
USERS.register_impossible("no command sets a clock", effects.StepClock)
USERS.register_impossible(
    "harrow has no access to ZooKeeper", effects.ExpireSession, effects.DeleteController
)
USERS.register_impossible("no command makes a link slow", effects.SlowBroker, effects.SlowLink)
USERS.register_impossible("no command breaks connections", effects.ResetLink)
USERS.register_impossible(
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
        yield f"the campaign has {len(plan.cluster.brokers)} brokers, the cluster has {len(present)}"
        return
    reach = Reach(
        release=release,
        metadata=survey.metadata,
        sight=Sight.ANY_BROKERS,
        unobservable=UNOBSERVABLE_COLUMNS,
        lack=partial(_lack, file, brokers),
    )
    yield from obstacles(plan, reach)
    if plan.cluster.controller is not None and survey.metadata == ZOOKEEPER:
        yield "harrow cannot choose the controller"
    elects = any(isinstance(action, ElectPreferredLeaders) for step in plan.script for action in step.actions)
    if elects and version_of(release.name) < _FIRST_WITH_ELECTIONS:
        yield "clients cannot ask for preferred leaders before 2.4 (KIP-460)"
    clients: list[tuple[str, str]] = [
        *((producer.library, producer.name) for producer in plan.producers),
        *((consumer.library, consumer.name) for consumer in plan.consumers),
        *((CONFLUENT_KAFKA, application.name) for application in applications_of(plan)),
    ]
    for library, client in clients:
        for name in LIBRARIES[library].lacking_security(file.security.settings):
            yield f"{client} uses {library}, which has no setting {name}"
    yield from _obstacles_of_settings(plan, brokers, survey, settings)


def permissions_for(plan: Plan) -> frozenset[str]:
    """Return the permissions that a campaign needs."""
    faults = [
        *faults_of(plan),
        *(action for action in (plan.swarm.all_actions() if plan.swarm else ()) if isinstance(action, Fault)),
    ]
    commands = {_COMMANDS.get(type(effect)) for fault in faults for effect in rehearse(fault, plan)}
    return frozenset({TOPICS, *(command for command in HEALED_BY if command in commands)})


def _lack(file: TargetFile, brokers: Mapping[int, int], effect: FaultEffect) -> str | None:
    reason = USERS.lack(effect)
    command = _COMMANDS.get(type(effect))
    if reason is not None or command is None:
        return reason
    assert isinstance(effect, effects.BrokerEffect | effects.LinkEffect)
    # The receiver cuts and restores a link.
    broker = effect.broker if isinstance(effect, effects.BrokerEffect) else effect.receiver
    assert isinstance(broker, int)
    if broker not in brokers:
        return "there are no commands for servers of the control plane"
    if file.command(command, brokers[broker]) is None:
        return f"there is no command {command}"
    return None


def _obstacles_of_settings(
    plan: Plan, brokers: Mapping[int, int], survey: Survey, settings: Settings
) -> Iterator[str]:
    """Yield the campaign's settings that differ from the brokers'.

    Settings in `OVERRIDABLE_BY_TOPICS` are no obstacle.
    """
    differences: dict[str, list[int]] = {}
    for broker in plan.cluster.brokers:
        own = sorted(OVERRIDABLE_BY_TOPICS & broker.settings.keys())
        if own:
            yield f"{', '.join(own)} cannot differ on broker {broker.id}"
        actual = settings[brokers[broker.id]]
        for name, value in {**plan.cluster.settings, **broker.settings}.items():
            is_about_zookeeper = name.startswith("zookeeper.")
            if name in OVERRIDABLE_BY_TOPICS or (is_about_zookeeper and survey.metadata != ZOOKEEPER):
                continue
            here = f"{name} is {actual[name]}" if name in actual else f"{name} is unknown"
            if actual.get(name, "").lower() != _text(value):
                difference = f"{here}, the campaign has {_text(value)}"
                differences.setdefault(difference, []).append(brokers[broker.id])
    for difference, differing in differences.items():
        everywhere = len(differing) == len(brokers)
        yield difference if everywhere else f"{difference} (on broker {listed(differing)})"


def _text(value: Value) -> str:
    return str(value).lower()

"""What a campaign asks for that a user's cluster cannot do or show."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.spelling import listed
from harrow.cluster_model.events import Sight
from harrow.cluster_model.release.switch import version_of
from harrow.cluster_model.settings import Value
from harrow.cluster_model.topology import CONFLUENT_KAFKA, ConsumerSpec, ProducerSpec
from harrow.faults import effects
from harrow.faults.actions import ElectPreferredLeaders
from harrow.faults.effects import FaultEffect
from harrow.faults.fault import Fault
from harrow.faults.handlers import Handlers
from harrow.live_cluster.clients.client_settings import LIBRARIES
from harrow.live_cluster.reach.feasible import Reach, obstacles
from harrow.live_cluster.reach.rehearsal import applications_of, faults_of, rehearsed
from harrow.live_cluster.releases.kafka_release import ZOOKEEPER
from harrow.live_cluster.target.live_effects import LIVE_EFFECTS
from harrow.live_cluster.target.live_environment import LiveEnvironment
from harrow.live_cluster.users.cluster_file import HEALED_BY, TOPICS, ClusterFile
from harrow.live_cluster.users.command import CommandName
from harrow.live_cluster.users.user_cluster import OF_TOPICS, mapped_brokers
from harrow.live_cluster.wire.survey import Survey

OLDEST: Final = (2, 1)
"""From here on brokers tell leader epochs (KIP-320)."""
_FIRST_WITH_ELECTIONS: Final = (2, 4)

UNOBSERVABLE_COLUMNS: Final = frozenset({"flushed", "remote", "epochs", "log"})

Settings = Mapping[int, Mapping[str, str]]
"""The settings that brokers have, by their ids on the cluster."""

_COMMANDS: Final[Mapping[type[FaultEffect], CommandName]] = {
    effects.Kill: CommandName.KILL,
    effects.Stop: CommandName.STOP,
    effects.Pause: CommandName.PAUSE,
    effects.Cut: CommandName.CUT,
    effects.Start: CommandName.START,
    effects.Resume: CommandName.RESUME,
    effects.Restore: CommandName.RESTORE,
}


def _stranger(effect: effects.LinkEffect) -> str | None:
    stranger = next((end for end in (effect.sender, effect.receiver) if isinstance(end, str)), None)
    return None if stranger is None else f"no command cuts a link with {stranger}"


USERS: Final[Handlers[LiveEnvironment]] = Handlers(LIVE_EFFECTS)
"""The effects that a user's cluster may have, as far as there are commands for them."""
USERS.refuse(effects.Cut, _stranger)
USERS.refuse(effects.Restore, _stranger)
USERS.never(
    "no command cuts the power, and what is on disk is not seen", effects.LosePower, effects.TearWrite
)
USERS.never("the disks are not at hand", effects.LoseDisk, effects.SlowDisk, effects.FailLogDir)
USERS.never(
    "the disks are not at hand", effects.DamageBatch, effects.RevertCheckpoint, effects.RemoveCheckpoint
)
USERS.never("no command sets a clock", effects.StepClock)
USERS.never("ZooKeeper is not at hand", effects.ExpireSession, effects.DeleteController)
USERS.never("no command makes a link slow", effects.SlowBroker, effects.SlowLink)
USERS.never("no command breaks connections", effects.ResetLink)
USERS.never(
    "messages do not pass harrow on a cluster that it has not started",
    effects.RuleMessages,
    effects.ReleaseMessages,
)


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
    done = {_COMMANDS.get(type(effect)) for fault in faults for effect in rehearsed(fault, plan)}
    return frozenset({TOPICS, *(command for command in HEALED_BY if command in done)})


def _lack(file: ClusterFile, brokers: Mapping[int, int], effect: FaultEffect) -> str | None:
    reason = USERS.lack(effect)
    command = _COMMANDS.get(type(effect))
    if reason is not None or command is None:
        return reason
    assert isinstance(effect, effects.BrokerEffect | effects.LinkEffect)
    # A link is cut and restored where it ends.
    broker = effect.broker if isinstance(effect, effects.BrokerEffect) else effect.receiver
    assert isinstance(broker, int)
    if broker not in brokers:
        return "there are no commands for servers of the control plane"
    if file.command(command, brokers[broker]) is None:
        return f"there is no command that does {command}"
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

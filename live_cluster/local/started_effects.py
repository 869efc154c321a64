"""Declares the effects of faults on brokers that harrow has started.

harrow has access to their disks and their control plane, and their links go through proxies.
"""

from typing import Final, cast

from harrow.cluster_model.events import POWER_LOSS, ControllerZnodeDeleted, Sight
from harrow.cluster_model.topology import LOG_DIRS_MAX
from harrow.faults import effects
from harrow.faults.handlers import Handlers
from harrow.live_cluster.local.live_disk import LiveDisk
from harrow.live_cluster.local.local_control_plane import LocalControlPlane
from harrow.live_cluster.reach.feasible import ADMINISTRATIVE_REQUESTS, Reach
from harrow.live_cluster.releases.kafka_release import KafkaRelease
from harrow.live_cluster.target.live_effects import LIVE_EFFECTS
from harrow.live_cluster.target.live_environment import LiveEnvironment


def _disk(live: LiveEnvironment, broker: int) -> LiveDisk:
    return cast("LiveDisk", live.cluster.logs[broker])


def _control(live: LiveEnvironment) -> LocalControlPlane:
    return cast("LocalControlPlane", live.cluster.control)


def _lose_power(live: LiveEnvironment, effect: effects.LosePower) -> None:
    live.kill_broker(effect.broker, POWER_LOSS)
    if live.has_logs(effect.broker):
        _disk(live, effect.broker).lose_power(live.now_us())


def _delete_controller(live: LiveEnvironment, _: effects.DeleteController) -> None:
    controller = live.controller()
    _control(live).delete_controller()
    if controller is not None:
        live.trace.emit(ControllerZnodeDeleted, controller)


def _slow_broker(live: LiveEnvironment, effect: effects.SlowBroker) -> None:
    for link in live.slow_links_to(effect):
        live.perform(link)


def _recover_broker(live: LiveEnvironment, effect: effects.SlowBroker) -> None:
    for link in live.slow_links_to(effect):
        live.perform(effects.Undo(link))


STARTED: Final[Handlers[LiveEnvironment]] = Handlers(LIVE_EFFECTS)
"""The handlers of effects on brokers that harrow has started, or why an effect is impossible."""
STARTED.register(effects.LosePower, _lose_power)
STARTED.register_impossible(
    "harrow cannot know which pages the system has written back, so it cannot tear a batch realistically",
    effects.TearWrite,
)
STARTED.register(effects.LoseDisk, lambda live, effect: _disk(live, effect.broker).lose_disk())
STARTED.register_impossible(
    "all brokers share one disk, which is slow for all of them or for none", effects.SlowDisk
)
STARTED.register_impossible(
    "all brokers share one disk, which does not fail for only one of them", effects.FailLogDir
)
STARTED.register_impossible(
    "a running broker serves a batch from memory, so damage on disk has its effect at an unknown time",
    effects.DamageBatch,
)
STARTED.register(
    effects.RemoveCheckpoint, lambda live, effect: _disk(live, effect.broker).remove_checkpoint(effect.file)
)
STARTED.register_impossible("harrow does not keep older checkpoint files", effects.RevertCheckpoint)
STARTED.register_impossible(
    "all processes share the clock of this machine; a different time needs a library such as libfaketime",
    effects.StepClock,
)
STARTED.register(effects.ExpireSession, lambda live, effect: _control(live).expire_session(effect.broker))
STARTED.register(effects.DeleteController, _delete_controller)
STARTED.register(effects.SlowBroker, _slow_broker, undo=_recover_broker)


def started_reach(release: KafkaRelease, metadata: str) -> Reach:
    """Return what campaigns can do to brokers that harrow has started, and observe of them."""
    return Reach(
        release=release,
        metadata=metadata,
        sight=Sight.STARTED_BROKERS,
        unobservable=frozenset(),
        why_impossible=STARTED.lack,
        has_controllers=True,
        log_dirs_max=LOG_DIRS_MAX,
        requests=ADMINISTRATIVE_REQUESTS,
    )

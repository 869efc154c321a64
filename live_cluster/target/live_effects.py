"""Declares the effects that are possible on every cluster of real brokers."""

from typing import Final

from harrow.campaigns.run.targets.shared_environment import CLIENT_EFFECTS, LINK_EFFECTS
from harrow.faults import effects
from harrow.faults.handlers import Handlers
from harrow.live_cluster.target.live_environment import LiveEnvironment

LIVE_EFFECTS: Final[Handlers[LiveEnvironment]] = Handlers(CLIENT_EFFECTS, LINK_EFFECTS)
LIVE_EFFECTS.register(effects.Start, lambda live, effect: live.start_broker(effect.broker))
LIVE_EFFECTS.register(effects.Stop, lambda live, effect: live.stop_broker(effect.broker))
LIVE_EFFECTS.register(effects.Kill, lambda live, effect: live.kill_broker(effect.broker))
LIVE_EFFECTS.register(effects.Pause, lambda live, effect: live.pause_broker(effect.broker))
LIVE_EFFECTS.register(effects.Resume, lambda live, effect: live.resume_broker(effect.broker))

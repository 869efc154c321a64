"""The effects that every cluster of real brokers has, whoever has started it."""

from typing import Final

from harrow.campaigns.run.targets.shared_environment import CLIENT_EFFECTS, LINK_EFFECTS
from harrow.faults import effects
from harrow.faults.handlers import Handlers
from harrow.live_cluster.target.live_environment import LiveEnvironment

LIVE_EFFECTS: Final[Handlers[LiveEnvironment]] = Handlers(CLIENT_EFFECTS, LINK_EFFECTS)
LIVE_EFFECTS.on(effects.Start, lambda live, it: live.start_broker(it.broker))
LIVE_EFFECTS.on(effects.Stop, lambda live, it: live.stop_broker(it.broker))
LIVE_EFFECTS.on(effects.Kill, lambda live, it: live.kill_broker(it.broker))
LIVE_EFFECTS.on(effects.Pause, lambda live, it: live.pause_broker(it.broker))
LIVE_EFFECTS.on(effects.Resume, lambda live, it: live.resume_broker(it.broker))

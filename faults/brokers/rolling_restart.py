"""All brokers are restarted, one after the other."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from harrow.cluster_model.fields import DurationRange, described
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.faults.brokers.broker_stop import BrokerBounce
from harrow.faults.effects import FaultEffect, Start, Stop
from harrow.faults.fault import Environment, Fault, GradualFault

LOOK_US: Final = 100 * US_PER_MS
"""How often is looked whether a broker has stopped, or is in sync again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingRestart(GradualFault):
    """An upgrade, or a change of settings: each broker is stopped in good order and started again.

    A broker that is down when its turn comes is started. One that crashes while it stops is started too, and one
    that somebody else starts meanwhile is left alone.
    """

    name: ClassVar[str] = "rolling_restart"

    order: Literal["id", "controller_last"] = described(
        "By `id`, or by id with the `controller_last`: the broker that is controller when a broker is chosen, so that it moves "
        "only once.",
        default="id",
    )
    down_for: DurationRange = described(
        "How long each broker stays down, as while its software is replaced.", default=(0, 0)
    )
    pause: DurationRange = described(
        "How long between the start of a broker and the next one's turn.", default=(0, 0)
    )
    wait_for_isr: bool = described(
        "Whether the next one has to wait until no partition is under-replicated, after the pause.",
        default=True,
    )

    def applies(self, environment: Environment) -> bool:
        """Return whether a broker runs that is not being stopped by somebody else."""
        return any(
            environment.is_running(broker) and not environment.is_stopping(broker)
            for broker in environment.broker_ids()
        )

    def steps(self, environment: Environment) -> Iterator[FaultEffect | int]:
        """Restart one after the other."""
        remaining = list(environment.broker_ids())
        while remaining:
            while self.wait_for_isr and environment.under_replicated_partitions():
                yield LOOK_US
            broker = self._next(remaining, environment.controller())
            remaining.remove(broker)
            yield from self._restart(broker, environment)
            if remaining and self.pause[0]:
                yield self.pause[0]

    def _restart(self, broker: int, environment: Environment) -> Iterator[FaultEffect | int]:
        if environment.is_running(broker):
            yield Stop(broker)
            if not self.down_for[0]:
                yield Start(broker)
            while environment.is_stopping(broker):
                yield LOOK_US
            if not environment.is_running(broker) and self.down_for[0]:
                yield self.down_for[0]
        if not environment.is_running(broker):
            yield Start(broker)

    def _next(self, remaining: list[int], controller: int | None) -> int:
        others = [broker for broker in remaining if broker != controller]
        return others[0] if self.order == "controller_last" and others else remaining[0]

    def crashes(self, brokers: tuple[int, ...]) -> Iterator[Fault]:
        """Yield restarts of each broker alone."""
        for broker in brokers:
            yield BrokerBounce(broker=broker)

"""Predicts the state of a cluster after effects, without performing them on a target."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from harrow.faults.effects import FaultEffect, Forecast
from harrow.faults.fault import ClientApplication, Environment, Fault, GradualFault

_STEPS_MAX: Final = 10_000


class _AnyClient:
    """A running client that allows each effect (`harrow.faults.fault.ClientApplication`)."""

    def is_running(self) -> bool:
        return True

    can_become_zombie = can_be_slowed = is_member = is_running

    def is_paused(self) -> bool:
        return False

    def steps(self) -> tuple[str, ...]:
        return ()

    def held_at(self) -> str | None:
        return "a step"


ANY_CLIENT: Final = _AnyClient()


class ForecastEnvironment:
    """A cluster in the state that effects would produce (`harrow.faults.fault.Environment`).

    A gradual fault never waits here: each application is already held at its step, and each ISR is
    complete.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self.forecast = Forecast()
        self.broker_ids = environment.broker_ids
        self.client_names = environment.client_names
        self.controller = environment.controller
        self.has_logs = environment.has_logs
        self.log_dirs = environment.log_dirs
        self.has_batch = environment.has_batch
        self.may_lose_power = environment.may_lose_power
        self.may_lose_disk = environment.may_lose_disk
        self.message_rules = environment.message_rules

    def effects_of(self, fault: Fault) -> Iterator[FaultEffect]:
        """Yield the effects of a fault. The forecast includes each one before it is yielded."""
        steps = fault.steps(self) if isinstance(fault, GradualFault) else fault.effects(self)
        for step in islice(steps, _STEPS_MAX):
            if isinstance(step, FaultEffect):
                step.update_forecast(self.forecast)
                yield step

    def client(self, name: str) -> ClientApplication:
        return ANY_CLIENT

    def is_running(self, broker: int) -> bool:
        down = self.forecast.is_down.get(broker)
        return self._environment.is_running(broker) if down is None else not down

    def is_paused(self, broker: int) -> bool:
        paused = self.forecast.is_paused.get(broker)
        return self._environment.is_paused(broker) if paused is None else paused

    def is_stopping(self, broker: int) -> bool:
        return broker not in self.forecast.is_down and self._environment.is_stopping(broker)

    def is_link_cut(self, sender: int | str, receiver: int | str) -> bool:
        return (sender, receiver) in self.forecast.cut_links or self._environment.is_link_cut(
            sender, receiver
        )

    def under_replicated_partitions(self) -> tuple[str, ...]:
        return ()

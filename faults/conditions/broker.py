"""Brokers: their processes, their registrations, and which one is the controller."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from harrow.cluster_model.fields import BrokerId, ControllerId, described
from harrow.faults.conditions.fact import Fact, difference
from harrow.faults.observer import Observer


@dataclass(frozen=True, slots=True)
class BrokerIs(Fact):
    """The brokers' processes."""

    name: ClassVar[str] = "brokers"
    keyed_by: ClassVar[tuple[str, ...]] = ("broker",)

    broker: BrokerId = described("Which broker.")
    state: Literal["up", "down", "paused"] = described("What its process is.")

    def mismatches(self, observer: Observer) -> list[str]:
        return difference(f"broker {self.broker}", observer.broker_state(self.broker), self.state)


@dataclass(frozen=True, slots=True)
class IsRegistered(Fact):
    """Whether a broker is registered: /brokers/ids has it, or in KRaft a controller has and does not fence it."""

    name: ClassVar[str] = "registered"
    keyed_by: ClassVar[tuple[str, ...]] = ("broker",)

    broker: BrokerId = described("Which broker.")
    is_so: bool = described("Whether it is.")

    def mismatches(self, observer: Observer) -> list[str]:
        if observer.is_registered(self.broker) == self.is_so:
            return []
        return [f"broker {self.broker} is {'not ' if self.is_so else ''}registered"]


@dataclass(frozen=True, slots=True)
class ControllerIs(Fact):
    """The controller: the broker in /controller, or in KRaft the active controller."""

    name: ClassVar[str] = "controller"
    once: ClassVar[bool] = True

    broker: ControllerId = described("Which one.")

    def mismatches(self, observer: Observer) -> list[str]:
        return difference("controller", observer.controller(), self.broker)

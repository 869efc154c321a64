"""What instances of applications have in common, whatever target they are on."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Generic, Protocol, TypeVar

from harrow.campaigns.clients.client import GroupReader
from harrow.campaigns.clients.client_promises import (
    promised_to_application,
    promised_to_consumer_of,
    promised_to_producer,
)
from harrow.checks.evidence import ApplicationSettings, ConsumerSettings, ProducerSettings
from harrow.cluster_model.clients.programs import APPLICATIONS
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.settings import producer_config
from harrow.cluster_model.topology import ApplicationSpec


class ApplicationSession(Protocol):
    """A process of an instance."""

    processes: tuple[int, int]
    """Its consumer and its producer in the history; they are the same for one that writes no records."""

    @property
    def is_running(self) -> bool:
        """Whether the process exists."""

    @property
    def is_paused(self) -> bool:
        """Whether the process is paused."""

    @property
    def held_at(self) -> str | None:
        """The step at which it is held, None where it is not."""

    @property
    def reached(self) -> Mapping[str, int]:
        """Up to where it has read each of its partitions."""

    def unfinished(self) -> int:
        """Return how many records have no outcome yet, and 1 more while it does anything but wait for records."""

    def hold_at(self, step: str, passes: int) -> None:
        """Do not let it go on at a step, once it has passed there so many times more."""

    def let_go(self) -> None:
        """Let it go on where it is paused or held."""


_Session = TypeVar("_Session", bound=ApplicationSession)


class ApplicationInstance(GroupReader, Generic[_Session]):
    """An instance of an application: one process after the other, and those left behind beside them.

    What supervises it starts it again when it has ended by itself.
    """

    def __init__(self, spec: ApplicationSpec, release: str, behaviours: Behaviours) -> None:
        self.spec = spec
        self._release = release
        self._behaviours = behaviours
        self._sessions: list[_Session] = []
        self._written = 0
        self._slow_us = 0

    @abstractmethod
    def _partition_names(self) -> Iterable[str]:
        """Return all partitions that there are."""

    def next_number(self) -> int:
        """Return the number of what is written next: whichever process writes it, no value comes twice."""
        self._written += 1
        return self._written - 1

    # What faults do to it

    def is_running(self) -> bool:
        return bool(self._sessions) and self._sessions[-1].is_running

    def is_paused(self) -> bool:
        return self._sessions[-1].is_paused

    def resume(self) -> None:
        for session in self._sessions:
            session.let_go()

    def can_be_left_behind(self) -> bool:
        return True

    def leave_behind(self) -> None:
        self.pause()
        self.start_again()

    def steps(self) -> tuple[str, ...]:
        return APPLICATIONS[self.spec.delivery].steps

    def hold_at(self, step: str, passes: int) -> None:
        self._sessions[-1].hold_at(step, passes)

    def held_at(self) -> str | None:
        return self._sessions[-1].held_at if self.is_running() else None

    def can_be_slowed(self) -> bool:
        return True

    def is_member(self) -> bool:
        return True

    # What a run looks at

    def unfinished(self) -> int:
        return sum(session.unfinished() for session in self._sessions)

    def group(self) -> str:
        return self.spec.group

    def sources(self) -> tuple[str, ...]:
        return self.partitions_of(self.spec.source)

    def partitions_of(self, topic: str | None) -> tuple[str, ...]:
        return tuple(name for name in self._partition_names() if name.rpartition("-")[0] == topic)

    def reached(self) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for session in self._sessions:
            if session.is_running:
                found |= session.reached
        return found

    def producer_settings(self) -> dict[int, ProducerSettings]:
        if self.spec.target is None:
            return {}
        config = producer_config(self._release, self.spec.producer_settings(), self._behaviours)
        known = promised_to_producer(self.spec.name, config)
        return {session.processes[1]: known for session in self._sessions}

    def consumer_settings(self) -> dict[int, ConsumerSettings]:
        known = promised_to_consumer_of(self.spec, self._release)
        return {session.processes[0]: known for session in self._sessions}

    def application_settings(self) -> ApplicationSettings:
        return promised_to_application(self.spec, [session.processes for session in self._sessions])

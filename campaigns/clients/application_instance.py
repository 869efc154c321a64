"""Defines application instances, with the code that the model and real clusters share."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Generic, Protocol, TypeVar

from harrow.campaigns.clients.client import GroupReader
from harrow.campaigns.clients.client_promises import (
    application_consumer_promises,
    application_promises,
    producer_promises,
)
from harrow.checks.evidence import ApplicationSettings, ConsumerSettings, ProducerSettings
from harrow.cluster_model.clients.programs import APPLICATIONS
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.settings import producer_config
from harrow.cluster_model.topology import ApplicationSpec


class ApplicationSession(Protocol):
    """A process of an application instance."""

    processes: tuple[int, int]
    """The numbers of its consumer and its producer as processes of the history.

    If it has no producer, both are the number of the consumer.
    """

    @property
    def is_running(self) -> bool:
        """Whether the process exists."""

    @property
    def is_paused(self) -> bool:
        """Whether the process is paused."""

    @property
    def held_at(self) -> str | None:
        """The step at which it is held, or None."""

    @property
    def positions(self) -> Mapping[str, int]:
        """Its position in each of its partitions."""

    def unfinished(self) -> int:
        """Count the records without an outcome, plus 1 unless it is only waiting for records."""

    def hold_at(self, step: str, passes: int) -> None:
        """Hold it at *step* after it has passed that step *passes* more times."""

    def let_go(self) -> None:
        """Resume it if it is paused, and release it if it is held."""


_Session = TypeVar("_Session", bound=ApplicationSession)


class ApplicationInstance(GroupReader, Generic[_Session]):
    """An application instance: its processes in sequence, and zombies that run beside them.

    When a process ends by itself, a supervisor starts the next one.
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
        """Return the names of all partitions."""

    def next_number(self) -> int:
        """Return the number of the next record, unique across the processes of the instance."""
        self._written += 1
        return self._written - 1

    # Methods for faults

    def is_running(self) -> bool:
        return bool(self._sessions) and self._sessions[-1].is_running

    def is_paused(self) -> bool:
        return self._sessions[-1].is_paused

    def resume(self) -> None:
        for session in self._sessions:
            session.let_go()

    def can_become_zombie(self) -> bool:
        return True

    def make_zombie(self) -> None:
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

    # Queries by the run

    def unfinished(self) -> int:
        return sum(session.unfinished() for session in self._sessions)

    def group(self) -> str:
        return self.spec.group

    def sources(self) -> tuple[str, ...]:
        return self.partitions_of(self.spec.source)

    def partitions_of(self, topic: str | None) -> tuple[str, ...]:
        return tuple(name for name in self._partition_names() if name.rpartition("-")[0] == topic)

    def positions(self) -> Mapping[str, int]:
        positions: dict[str, int] = {}
        for session in self._sessions:
            if session.is_running:
                positions |= session.positions
        return positions

    def producer_settings(self) -> dict[int, ProducerSettings]:
        if self.spec.target is None:
            return {}
        config = producer_config(self._release, self.spec.producer_settings(), self._behaviours)
        settings = producer_promises(self.spec.name, config)
        return {session.processes[1]: settings for session in self._sessions}

    def consumer_settings(self) -> dict[int, ConsumerSettings]:
        settings = application_consumer_promises(self.spec, self._release)
        return {session.processes[0]: settings for session in self._sessions}

    def application_settings(self) -> ApplicationSettings:
        return application_promises(self.spec, [session.processes for session in self._sessions])

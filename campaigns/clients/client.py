"""The interface of a run's clients, of every kind and on every target."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from harrow.checks.evidence import ApplicationSettings, ConsumerSettings, ProducerSettings
from harrow.faults.action import RecordSender


class Client(ABC):
    """A client application of the workload."""

    @abstractmethod
    def start(self) -> None:
        """Start, at the time that the campaign sets."""

    @abstractmethod
    def stop(self) -> None:
        """Stop for good."""

    # Faults on its process (`harrow.faults.fault.ClientApplication`). A kind overrides those that
    # it supports.

    def is_running(self) -> bool:
        """Return whether it has a process that faults can act on."""
        return False

    def is_paused(self) -> bool:
        return False

    def crash(self) -> None:
        """End its process at once."""
        raise NotImplementedError(type(self).__name__)

    def start_again(self) -> None:
        """Start a new process."""
        raise NotImplementedError(type(self).__name__)

    def pause(self) -> None:
        raise NotImplementedError(type(self).__name__)

    def resume(self) -> None:  # noqa: B027 - most kinds are never paused
        """Resume its process, and all zombies."""

    def step_clock(self, by_us: int) -> None:  # noqa: B027 - most kinds read no clock
        """Make the clock of its machine jump."""

    def set_clock(self) -> None:  # noqa: B027 - as above
        """Set that clock to the true time again."""

    def can_be_left_behind(self) -> bool:
        """Return whether a second process can run beside the first."""
        return False

    def leave_behind(self) -> None:
        """Pause its process, which becomes a zombie, and start a new one."""
        raise NotImplementedError(type(self).__name__)

    # Faults on an application's loop. Other clients have no steps.

    def steps(self) -> tuple[str, ...]:
        """Return the steps between its calls in order; none if it has no loop to hold."""
        return ()

    def hold_at(self, step: str, passes: int) -> None:
        """Hold it at *step* after it has passed that step *passes* more times."""
        raise NotImplementedError(type(self).__name__)

    def held_at(self) -> str | None:
        """Return the step at which it is held, or None."""
        return None

    def can_be_slowed(self) -> bool:
        """Return whether it polls in a loop."""
        return False

    def slow_down(self, by_us: int) -> None:
        """Make it spend *by_us* more on each poll's records; a negative time takes that back."""
        raise NotImplementedError(type(self).__name__)

    def is_member(self) -> bool:
        """Return whether it is a member of a group, which can be closed and started again."""
        return False

    def close(self) -> None:
        """Close its clients, so that it leaves its group, and end its process."""
        raise NotImplementedError(type(self).__name__)

    def unfinished(self) -> int:
        """Count the records that it has accepted and not reported on."""
        return 0

    def has_consumed(self, value: str) -> bool:
        return False

    def producer_settings(self) -> Mapping[int, ProducerSettings]:
        """Return the promises to each session in which it sent records, by history process."""
        return {}

    def consumer_settings(self) -> Mapping[int, ConsumerSettings]:
        """Return the promises to each session in which it read, by history process."""
        return {}


class Sender(Client, RecordSender):
    """A client that sends the records of a script.

    Its kind overrides the transactional calls if it supports them.
    """

    def begin_transaction(self) -> None:
        raise NotImplementedError(type(self).__name__)

    def commit_transaction(self) -> None:
        raise NotImplementedError(type(self).__name__)

    def abort_transaction(self) -> None:
        raise NotImplementedError(type(self).__name__)


class Reader(Client):
    """A client that reads partitions from their beginning."""

    @abstractmethod
    def position(self, partition: str) -> int | None:
        """Return the offset that it reads next; None before it has started."""

    def is_held_up(self, partition: str) -> bool:
        """Return whether only an open transaction keeps it from reading on."""
        return False

    def skip_corrupt(self) -> None:
        """Skip batches with a bad CRC. Called before it starts."""

    @abstractmethod
    def has_read_to_end(self) -> bool:
        """Return whether its last polls found nothing more in any partition."""


class GroupReader(Client):
    """An application instance, whose group a run waits for until all input is processed."""

    @abstractmethod
    def group(self) -> str: ...

    @abstractmethod
    def sources(self) -> tuple[str, ...]:
        """Return the partitions that its group reads."""

    @abstractmethod
    def read_end(self) -> Mapping[str, int]:
        """Return its position in each of its own partitions."""

    @abstractmethod
    def application_settings(self) -> ApplicationSettings:
        """Return the promises to it."""

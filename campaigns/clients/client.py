"""Defines the interface of all clients of a run, whatever their kind and target."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping

from harrow.checks.evidence import ApplicationSettings, ConsumerSettings, ProducerSettings
from harrow.faults.action import RecordSender


class Client(ABC):
    """A client application of the workload."""

    @abstractmethod
    def start(self) -> None:
        """Start the client, at the time that the campaign sets."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the client for good."""

    # Methods for faults on the client's process (`harrow.faults.fault.ClientApplication`). A kind
    # of client overrides the methods of the faults that it supports.

    def is_running(self) -> bool:
        """Return whether the client has a process that faults can act on."""
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
        """Set the clock of its machine to the true time again."""

    def can_become_zombie(self) -> bool:
        """Return whether a second process can run beside the first."""
        return False

    def make_zombie(self) -> None:
        """Pause its process, which becomes a zombie, and start a new process."""
        raise NotImplementedError(type(self).__name__)

    # Methods for faults on an application's loop of polling, processing and committing. Other
    # clients have no such loop.

    def steps(self) -> tuple[str, ...]:
        """Return the steps of its loop at which it can be held, in order; none without a loop."""
        return ()

    def hold_at(self, step: str, passes: int) -> None:
        """Hold it at *step* after it has passed that step *passes* more times."""
        raise NotImplementedError(type(self).__name__)

    def held_at(self) -> str | None:
        """Return the step at which it is held, or None."""
        return None

    def can_be_slowed(self) -> bool:
        """Return whether it processes records in a loop, which a fault can slow down."""
        return False

    def slow_down(self, by_us: int) -> None:
        """Make it spend *by_us* more on each poll's records; a negative time takes that back."""
        raise NotImplementedError(type(self).__name__)

    def is_member(self) -> bool:
        """Return whether it is a member of a group. A member can be closed and started again."""
        return False

    def close(self) -> None:
        """Close its Kafka clients, so that it leaves its group, and end its process."""
        raise NotImplementedError(type(self).__name__)

    def unfinished(self) -> int:
        """Count the records that it has accepted and whose outcome it has not reported."""
        return 0

    def consumed(self) -> Collection[str]:
        """Return the values of the records that it has read."""
        return ()

    def producer_settings(self) -> Mapping[int, ProducerSettings]:
        """Return the settings of each of its producers, by the producer's history process.

        A history process is a number that all operations of one producer or consumer have in the
        history of the run. Each new process of the client has a new one.
        """
        return {}

    def consumer_settings(self) -> Mapping[int, ConsumerSettings]:
        """Return the settings of each of its consumers, by the consumer's history process."""
        return {}


class Sender(Client, RecordSender):
    """A client that sends the records of a script.

    A kind of sender overrides the methods for transactions if it supports them.
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
        """Return whether only an open transaction keeps it from reading further."""
        return False

    def skip_corrupt(self) -> None:
        """Make the reader skip batches with a bad CRC. Called before it starts."""

    @abstractmethod
    def has_read_to_end(self) -> bool:
        """Return whether its last polls found nothing more in any partition."""


class GroupReader(Client):
    """An application instance. A run waits until its group has processed all input."""

    @abstractmethod
    def group(self) -> str: ...

    @abstractmethod
    def sources(self) -> tuple[str, ...]:
        """Return the partitions that its group reads."""

    @abstractmethod
    def positions(self) -> Mapping[str, int]:
        """Return its position in each partition that is assigned to it."""

    @abstractmethod
    def application_settings(self) -> ApplicationSettings:
        """Return the settings that decide what the application is promised."""

"""What a client of a run is, whatever it does and on whatever target."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from harrow.checks.evidence import ApplicationSettings, ConsumerSettings, ProducerSettings
from harrow.faults.action import RecordSender


class Client(ABC):
    """A client application of the workload."""

    @abstractmethod
    def start(self) -> None:
        """Begin, at the time that the campaign says."""

    @abstractmethod
    def stop(self) -> None:
        """End for good."""

    # What faults do to its process (`harrow.faults.fault.ClientApplication`). Unless its kind says otherwise, nothing can be.

    def is_running(self) -> bool:
        """Return whether there is a process of it that faults can act on."""
        return False

    def is_paused(self) -> bool:
        """Return whether its process is paused."""
        return False

    def crash(self) -> None:
        """End its process at once."""
        raise NotImplementedError(type(self).__name__)

    def start_again(self) -> None:
        """Start a new process of it."""
        raise NotImplementedError(type(self).__name__)

    def pause(self) -> None:
        """Stop its process."""
        raise NotImplementedError(type(self).__name__)

    def resume(self) -> None:  # noqa: B027 - of most nothing stands still
        """Let its process go on, and all that were left behind."""

    def step_clock(self, by_us: int) -> None:  # noqa: B027 - most look at no clock
        """Have the clock of its machine jump."""

    def set_clock(self) -> None:  # noqa: B027 - as above
        """Have that clock show the true time again."""

    def can_be_left_behind(self) -> bool:
        """Return whether a second process of it can run beside the first."""
        return False

    def leave_behind(self) -> None:
        """Stop its process, and start a new one while that one still exists."""
        raise NotImplementedError(type(self).__name__)

    # What faults do to an application with a loop of its own. Others have no steps.

    def steps(self) -> tuple[str, ...]:
        """Return the steps between its calls, in the order in which it takes them; none where it has no loop that could be held."""
        return ()

    def hold_at(self, step: str, passes: int) -> None:
        """Do not let it go on at a step, once it has passed there so many times more."""
        raise NotImplementedError(type(self).__name__)

    def held_at(self) -> str | None:
        """Return the step at which it is held, None where it is not."""
        return None

    def can_be_slowed(self) -> bool:
        """Return whether it polls in a loop, so that there is something to slow down."""
        return False

    def slow_down(self, by_us: int) -> None:
        """Have it take so much longer from now on for what each poll returns; less than nothing undoes it."""
        raise NotImplementedError(type(self).__name__)

    def is_member(self) -> bool:
        """Return whether it is a member of a group, and can be closed and started again."""
        return False

    def close(self) -> None:
        """Have it close its clients, and so leave its group, and end."""
        raise NotImplementedError(type(self).__name__)

    def unfinished(self) -> int:
        """Return how many records it has been handed and not reported on."""
        return 0

    def has_consumed(self, value: str) -> bool:
        """Return whether it got a record."""
        return False

    def producer_settings(self) -> Mapping[int, ProducerSettings]:
        """Return what was promised to each session in which it sent records, by history process."""
        return {}

    def consumer_settings(self) -> Mapping[int, ConsumerSettings]:
        """Return what was promised to each session in which it read, by history process."""
        return {}


class Sender(Client, RecordSender):
    """A client that can be handed records, and restarted; unless its kind says otherwise it has no transactions."""

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
        """Return the offset that it reads next; None before it has begun."""

    def is_held_up(self, partition: str) -> bool:
        """Return whether nothing but a transaction that does not end keeps it from reading on."""
        return False

    def skip_corrupt(self) -> None:
        """Go on behind batches with a bad CRC; called before it begins."""

    @abstractmethod
    def has_read_to_end(self) -> bool:
        """Return whether there was nothing more to read, of any partition, when it last looked."""


class GroupReader(Client):
    """An instance of an application: a member of a group that a run waits for until it has processed all of its input."""

    @abstractmethod
    def group(self) -> str:
        """Return the group that it is a member of."""

    @abstractmethod
    def sources(self) -> tuple[str, ...]:
        """Return the partitions that its group reads."""

    @abstractmethod
    def reached(self) -> Mapping[str, int]:
        """Return up to where it has read those that are its own."""

    @abstractmethod
    def application_settings(self) -> ApplicationSettings:
        """Return what was promised to it."""

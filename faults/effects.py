"""What faults do to a cluster, as data.

A fault yields effects. A target has a handler for each type of effect that it can perform
(`harrow.faults.handlers`), and a reason why it has none for the others.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar, dataclass_transform

from harrow.cluster_model.sim.link_quality import LinkQuality
from harrow.cluster_model.sim.message_rule import MessageRule

End = int | str
"""An end of a link: a broker's id, a client's name, or ``zookeeper``."""


@dataclass(slots=True)
class Forecast:
    """What effects would change of a cluster, as far as it decides who is in service.

    ``down`` and ``paused`` have only the processes that effects touch. ``emptied`` are brokers that lose records,
    with their power or with their disks.
    """

    down: dict[int, bool] = field(default_factory=dict)
    paused: dict[int, bool] = field(default_factory=dict)
    expired: set[int] = field(default_factory=set)
    emptied: set[int] = field(default_factory=set)
    cut: set[tuple[End, End]] = field(default_factory=set)


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class FaultEffect:
    """One thing that a fault does: to a process, a machine, a disk, a link, a session or a client.

    Every class of effects is a frozen dataclass, as all that are derived from this one are. Effects hold ids and amounts,
    with nothing left to draw. No effect writes what Kafka keeps.
    """

    disables: ClassVar[bool] = False
    """Whether it takes a broker out of service at once."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(frozen=True)(cls)

    def undo(self) -> "FaultEffect | None":
        """Return the effect that takes this one back; None where nothing does."""
        return None

    def foresee(self, forecast: Forecast) -> None:
        """Put into a forecast what this changes of who is in service: by default nothing."""


Effects = Iterable[FaultEffect]
"""What a fault does, in order."""


class Undo(FaultEffect):
    """The end of an effect that was in force until now."""

    effect: FaultEffect


class LastingEffect(FaultEffect):
    """An effect that is in force until it is undone, and has no opposite of its own. Several of them add up."""

    def undo(self) -> FaultEffect | None:
        return Undo(self)


# Brokers, and processes of the control plane


class BrokerEffect(FaultEffect):
    """An effect on a broker or on a process of the control plane.

    Its class says what it leaves: whether the process is down or paused afterwards (None: as before), whether its
    session has expired, and whether its records are gone.
    """

    leaves_down: ClassVar[bool | None] = None
    leaves_paused: ClassVar[bool | None] = None
    expires: ClassVar[bool] = False
    empties: ClassVar[bool] = False

    broker: int

    def foresee(self, forecast: Forecast) -> None:
        if self.leaves_down is not None:
            forecast.down[self.broker] = self.leaves_down
        if self.leaves_paused is not None:
            forecast.paused[self.broker] = self.leaves_paused
        if self.expires:
            forecast.expired.add(self.broker)
        if self.empties:
            forecast.emptied.add(self.broker)


class Start(BrokerEffect):
    """A process that is down starts; one that is stopping starts as soon as it has ended."""

    leaves_down: ClassVar[bool | None] = False


class ProcessEnd(BrokerEffect):
    """A process ends in some way."""

    disables: ClassVar[bool] = True
    leaves_down: ClassVar[bool | None] = True

    def undo(self) -> FaultEffect | None:
        return Start(self.broker)


class Stop(ProcessEnd):
    """It is asked to stop (SIGTERM), and takes the time that it needs."""


class Kill(ProcessEnd):
    """It ends at once (SIGKILL). The operating system keeps what it has written."""


class LosePower(ProcessEnd):
    """Its machine loses its power, and with it whatever was not flushed."""

    empties: ClassVar[bool] = True


class TearWrite(LosePower):
    """Its machine loses its power while the disk writes: ``after`` unflushed batches of each log are whole, the next is torn."""

    after: int


class Resume(BrokerEffect):
    """A paused process goes on (SIGCONT)."""

    leaves_paused: ClassVar[bool | None] = False


class Pause(BrokerEffect):
    """A process stands still (SIGSTOP)."""

    disables: ClassVar[bool] = True
    leaves_paused: ClassVar[bool | None] = True

    def undo(self) -> FaultEffect | None:
        return Resume(self.broker)


class SlowBroker(LastingEffect, BrokerEffect):
    """Each request takes a broker longer."""

    request_us: int


class ExpireSession(BrokerEffect):
    """The control plane ends a broker's session."""

    disables: ClassVar[bool] = True
    expires: ClassVar[bool] = True


class DeleteController(FaultEffect):
    """``/controller`` is deleted, as ``rmr /controller`` does; in KRaft the controller's term ends."""


class StepClock(FaultEffect):
    """The clock of a broker's or a client's machine jumps; by less than nothing, backward."""

    end: End
    by_us: int

    def undo(self) -> FaultEffect | None:
        return StepClock(self.end, -self.by_us)


# Disks


class SlowDisk(LastingEffect, BrokerEffect):
    """Each append of a broker waits longer for its disk."""

    write_us: int


class FailLogDir(LastingEffect, BrokerEffect):
    """All writing to a log directory fails once ``room_bytes`` more are written.

    A running broker that has taken the directory offline does not look at it again when this is undone.
    """

    disables: ClassVar[bool] = True
    leaves_down: ClassVar[bool | None] = True

    log_dir: int
    room_bytes: int = 0


class LoseDisk(BrokerEffect):
    """The log directories of a broker that is down, or of a controller of KRaft, are empty."""

    empties: ClassVar[bool] = True


class DamageBatch(BrokerEffect):
    """Some bytes change of the stored batch that has an offset; of the last batch where that is None."""

    empties: ClassVar[bool] = True

    partition: str
    offset: int | None


class RemoveCheckpoint(BrokerEffect):
    """A checkpoint file of a broker that is down is missing."""

    file: str


class RevertCheckpoint(BrokerEffect):
    """A checkpoint file of a broker that is down is as it was ``age_us`` ago."""

    file: str
    age_us: int


# Links


class LinkEffect(FaultEffect):
    """An effect on what one end of a link sends to the other."""

    sender: End
    receiver: End


class Restore(LinkEffect):
    """One `Cut` of a link is over."""

    def foresee(self, forecast: Forecast) -> None:
        forecast.cut.discard((self.sender, self.receiver))


class Cut(LinkEffect):
    """No packet passes."""

    def undo(self) -> FaultEffect | None:
        return Restore(self.sender, self.receiver)

    def foresee(self, forecast: Forecast) -> None:
        forecast.cut.add((self.sender, self.receiver))


class SlowLink(LastingEffect, LinkEffect):
    """What passes takes longer."""

    quality: LinkQuality


class ResetLink(LinkEffect):
    """The connections between the two ends break (RST), whoever has opened them."""


class RuleMessages(LastingEffect):
    """A rule for single messages is in force.

    Its end takes the rules of the fault that ends out of force, and what they hold goes on its way.
    """

    rule: MessageRule


class ReleaseMessages(FaultEffect):
    """The rules of that name are out of force, and what they hold goes on its way."""

    rule: str


# Clients


class ClientEffect(FaultEffect):
    """An effect on a client, which is a process of harrow's own on every target."""

    client: str


class StartClient(ClientEffect):
    """A client that is down starts, in a new process that knows nothing of the one before."""


class KillClient(ClientEffect):
    """A client's process ends at once (SIGKILL)."""

    def undo(self) -> FaultEffect | None:
        return StartClient(self.client)


class CloseClient(ClientEffect):
    """A member of a group closes its clients, and so leaves its group, and ends."""


class ResumeClient(ClientEffect):
    """A client's process goes on (SIGCONT), and so do all that were left behind."""


class PauseClient(ClientEffect):
    """A client's process stands still (SIGSTOP)."""

    def undo(self) -> FaultEffect | None:
        return ResumeClient(self.client)


class DoubleClient(PauseClient):
    """A client's process stands still, and a new one starts beside it."""


class HoldClient(ClientEffect):
    """An application is held at a step of its loop, once it has passed there ``passes`` times more."""

    step: str
    passes: int


class SlowClient(ClientEffect):
    """Each poll takes an application so much longer; less than nothing takes that back."""

    by_us: int

    def undo(self) -> FaultEffect | None:
        return SlowClient(self.client, -self.by_us)

"""Defines the effects of faults on a cluster, as data.

A fault yields effects. A target, such as the model or real brokers, has a handler for each type of
effect that it can perform (`harrow.faults.handlers`), and a reason for each type that it cannot.
"""

from collections.abc import Iterable
from dataclasses import field
from typing import ClassVar, dataclass_transform

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.link_quality import LinkQuality
from harrow.cluster_model.sim.message_rule import MessageRule

End = int | str
"""An end of a link: a broker's id, a client's name, or ``zookeeper``."""


@dataclass(slots=True)
class Forecast:
    """The changes that effects would make to processes, disks and links.

    ``is_down`` and ``is_paused`` have only the processes whose state the effects change.
    ``emptied_disks`` has the brokers that lose records, because of their power or their disk.
    """

    is_down: dict[int, bool] = field(default_factory=dict)
    is_paused: dict[int, bool] = field(default_factory=dict)
    expired_sessions: set[int] = field(default_factory=set)
    emptied_disks: set[int] = field(default_factory=set)
    cut_links: set[tuple[End, End]] = field(default_factory=set)


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class FaultEffect:
    """One effect of a fault on a process, a machine, a disk, a link, a session or a client.

    Every subclass becomes a frozen dataclass. Its fields are ids and amounts, so nothing is left to
    draw. No effect writes Kafka's own state.
    """

    disables: ClassVar[bool] = False
    """Whether the effect takes a broker out of service at once."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(frozen=True)(cls)

    def undo(self) -> "FaultEffect | None":
        """Return the effect that undoes this one; None if no effect does."""
        return None

    def update_forecast(self, forecast: Forecast) -> None:
        """Enter the changes that this effect makes into a forecast. By default there are none."""


Effects = Iterable[FaultEffect]
"""The effects of a fault, in order."""


class Undo(FaultEffect):
    """A `LastingEffect` that is in force ends."""

    effect: FaultEffect


class LastingEffect(FaultEffect):
    """An effect that stays in force until an `Undo`, because no other effect is its opposite.

    Several effects of the same type add up.
    """

    def undo(self) -> FaultEffect | None:
        return Undo(self)


# Brokers, and processes of the control plane


class BrokerEffect(FaultEffect):
    """An effect on a broker or on a process of the control plane.

    A class of effects says whether they leave the process down or paused (None: as it was), whether
    they expire its session, and whether they lose records.
    """

    leaves_down: ClassVar[bool | None] = None
    leaves_paused: ClassVar[bool | None] = None
    expires_session: ClassVar[bool] = False
    loses_records: ClassVar[bool] = False

    broker: int

    def update_forecast(self, forecast: Forecast) -> None:
        if self.leaves_down is not None:
            forecast.is_down[self.broker] = self.leaves_down
        if self.leaves_paused is not None:
            forecast.is_paused[self.broker] = self.leaves_paused
        if self.expires_session:
            forecast.expired_sessions.add(self.broker)
        if self.loses_records:
            forecast.emptied_disks.add(self.broker)


class Start(BrokerEffect):
    """A process that is down starts. If it is still stopping, it starts as soon as it has ended."""

    leaves_down: ClassVar[bool | None] = False


class ProcessEnd(BrokerEffect):
    """A process ends."""

    disables: ClassVar[bool] = True
    leaves_down: ClassVar[bool | None] = True

    def undo(self) -> FaultEffect | None:
        return Start(self.broker)


class Stop(ProcessEnd):
    """A process shuts down cleanly (SIGTERM), which takes as long as it needs."""


class Kill(ProcessEnd):
    """A process ends at once (SIGKILL). What it has written stays in the page cache or on disk."""


class LosePower(ProcessEnd):
    """A machine loses power, and with it all data that was not flushed to disk."""

    loses_records: ClassVar[bool] = True


class TearWrite(LosePower):
    """A machine loses power during a write.

    The first ``complete_batches`` unflushed batches of each log are complete on disk, and the next
    batch is torn.
    """

    complete_batches: int


class Resume(BrokerEffect):
    """A paused process continues (SIGCONT)."""

    leaves_paused: ClassVar[bool | None] = False


class Pause(BrokerEffect):
    """A process pauses (SIGSTOP)."""

    disables: ClassVar[bool] = True
    leaves_paused: ClassVar[bool | None] = True

    def undo(self) -> FaultEffect | None:
        return Resume(self.broker)


class SlowBroker(LastingEffect, BrokerEffect):
    """A broker takes longer for each request."""

    request_us: int


class ExpireSession(BrokerEffect):
    """The control plane ends a broker's session."""

    disables: ClassVar[bool] = True
    expires_session: ClassVar[bool] = True


class DeleteController(FaultEffect):
    """``/controller`` is deleted, as with ``rmr /controller``. In KRaft the controller resigns."""


class StepClock(FaultEffect):
    """The clock of a broker's or client's machine jumps, backward if ``by_us`` is negative."""

    end: End
    by_us: int

    def undo(self) -> FaultEffect | None:
        return StepClock(self.end, -self.by_us)


# Disks


class SlowDisk(LastingEffect, BrokerEffect):
    """Each append waits longer for the broker's disk."""

    write_us: int


class FailLogDir(LastingEffect, BrokerEffect):
    """All writes to a log directory fail after ``room_bytes`` more.

    If a running broker has taken the directory offline, it stays offline after the undo.
    """

    disables: ClassVar[bool] = True
    leaves_down: ClassVar[bool | None] = True

    log_dir: int
    room_bytes: int = 0


class LoseDisk(BrokerEffect):
    """The log directories of a broker or a KRaft controller that is down become empty."""

    loses_records: ClassVar[bool] = True


class DamageBatch(BrokerEffect):
    """Bytes change in the stored batch that contains ``offset``, by default in the last batch."""

    loses_records: ClassVar[bool] = True

    partition: str
    offset: int | None


class RemoveCheckpoint(BrokerEffect):
    """A checkpoint file of a broker that is down disappears."""

    file: str


class RevertCheckpoint(BrokerEffect):
    """A checkpoint file of a broker that is down reverts to its content of ``age_us`` ago."""

    file: str
    age_us: int


# Links


class LinkEffect(FaultEffect):
    """An effect on one direction of a link."""

    sender: End
    receiver: End


class Restore(LinkEffect):
    """One `Cut` of a link ends. Other cuts of the link stay in force."""

    def update_forecast(self, forecast: Forecast) -> None:
        forecast.cut_links.discard((self.sender, self.receiver))


class Cut(LinkEffect):
    """No packet passes the link in this direction."""

    def undo(self) -> FaultEffect | None:
        return Restore(self.sender, self.receiver)

    def update_forecast(self, forecast: Forecast) -> None:
        forecast.cut_links.add((self.sender, self.receiver))


class SlowLink(LastingEffect, LinkEffect):
    """Messages over the link take longer."""

    quality: LinkQuality


class ResetLink(LinkEffect):
    """The connections between two ends break (RST), in both directions."""


class RuleMessages(LastingEffect):
    """A rule for single messages comes into force.

    The undo ends all rules of the same strike, and delivers the messages that they hold.
    """

    rule: MessageRule


class ReleaseMessages(FaultEffect):
    """All rules with the name ``rule`` end, and the messages that they hold are delivered."""

    rule: str


# Clients


class ClientEffect(FaultEffect):
    """An effect on a client. On every target, harrow itself starts the clients."""

    client: str


class StartClient(ClientEffect):
    """A client that is down starts as a new process, without the state of the old process."""


class KillClient(ClientEffect):
    """A client's process ends at once (SIGKILL)."""

    def undo(self) -> FaultEffect | None:
        return StartClient(self.client)


class CloseClient(ClientEffect):
    """A group member closes its consumer, so that it leaves its group, and exits."""


class ResumeClient(ClientEffect):
    """A client's process continues (SIGCONT), and so do earlier processes of the same client."""


class PauseClient(ClientEffect):
    """A client's process pauses (SIGSTOP)."""

    def undo(self) -> FaultEffect | None:
        return ResumeClient(self.client)


class DoubleClient(PauseClient):
    """A client's process pauses, and a second process of the client starts beside it."""


class HoldClient(ClientEffect):
    """An application is held at a step of its loop, after it has passed it ``passes`` times."""

    step: str
    passes: int


class SlowClient(ClientEffect):
    """An application takes longer for each poll. A negative amount undoes an earlier effect."""

    by_us: int

    def undo(self) -> FaultEffect | None:
        return SlowClient(self.client, -self.by_us)

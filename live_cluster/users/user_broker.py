"""Brokers and links of a user's cluster: what is done to them is done by the user's commands, and is in the journal before."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from harrow.live_cluster.target.control_plane import CannotBeDoneError
from harrow.live_cluster.users.cluster_file import HEALED_BY, ClusterFile
from harrow.live_cluster.users.command import CommandError, CommandName, FilledCommand, RunningCommand
from harrow.live_cluster.users.command_word import broker_words
from harrow.live_cluster.users.journal import Journal, JournalledFault
from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.survey import BrokerNode

_LOOK_S: Final = 0.5
_LOOK_TIMEOUT_S: Final = 1.0
_COMES_UP_S: Final = 30.0
"""A broker that does not answer so long after its start is started again."""


class Deeds:
    """What is done to the brokers of a cluster, with the commands of its *file*; of what can be undone all is *permitted*, or some.

    *brokers* are the cluster's by their ids there. What commands print goes to *log*.
    """

    def __init__(
        self,
        file: ClusterFile,
        brokers: Mapping[int, BrokerNode],
        journal: Journal,
        log: Path,
        permitted: frozenset[str],
    ) -> None:
        self._file = file
        self._brokers = brokers
        self._journal = journal
        self._log = log
        self._permitted = permitted

    def begin(self, deed: CommandName, broker: int, peer: int | None = None) -> RunningCommand:
        """Begin to do something to a broker, or to what a *peer* sends to it; by then the journal has it.

        Raises:
            CannotBeDoneError: there is no command that does it, or none that may.
            CommandError: the command does not start.

        """
        if deed not in self._permitted:
            raise CannotBeDoneError(f"{deed} is not allowed on this cluster")
        command = self._filled(deed, broker, peer)
        fault = self._strikes(deed, broker, peer)
        return command.begin(self._journal.folder, self._log, partial(self._journal.is_done_by, fault))

    def do(self, deed: CommandName, broker: int, peer: int | None = None) -> None:
        """Do something, and come back when it is done (`begin`).

        Raises:
            CannotBeDoneError: there is no command that does it, or none that may.
            CommandError: the command fails; the message says whether the broker is there.

        """
        with self._named(deed, broker):
            self.begin(deed, broker, peer).wait()

    def cure(self, deed: CommandName, broker: int, peer: int | None = None) -> None:
        """Run what undoes something; it stays in the journal.

        Raises:
            CannotBeDoneError: there is no command that does it.
            CommandError: the command fails; the message says whether the broker is there.

        """
        with self._named(HEALED_BY[deed], broker):
            self._filled(HEALED_BY[deed], broker, peer).run(self._journal.folder, self._log)

    def undo(self, deeds: tuple[CommandName, ...], broker: int, peer: int | None = None) -> None:
        """Undo what was done, and strike it out.

        Raises:
            CannotBeDoneError: there is no command that does it.
            CommandError: the command fails; what was done is in force still.

        """
        self.cure(deeds[0], broker, peer)
        self.is_over(deeds, broker, peer)

    def is_dead(self, broker: int) -> bool:
        """Return whether a broker that was paused is gone, and take note then that it has to be started.

        Nothing else tells: no command asks for the state of a process. Without a command that starts it what was done stays
        in the journal as it is, and healing says what to do.
        """
        if self.answers(broker) or self._file.command(CommandName.START, broker) is None:
            return False
        self._strikes(CommandName.KILL, broker)
        self.is_over((CommandName.PAUSE,), broker)
        return True

    def answers(self, broker: int) -> bool:
        """Return whether a broker answers where it listens."""
        with BrokerConnection(
            self.address(broker), timeout_s=_LOOK_TIMEOUT_S, security=self._file.security
        ) as connection:
            return connection.answers()

    def is_over(self, deeds: tuple[CommandName, ...], broker: int, peer: int | None = None) -> None:
        """Strike out what has come to its end by something else."""
        for fault in self._journal.in_force():
            if self._is_of(fault, deeds, broker, peer):
                self._journal.is_over(fault)

    def address(self, broker: int) -> tuple[str, int]:
        """Return where a broker listens."""
        seen = self._brokers[broker]
        return seen.host, seen.port

    def _strikes(self, deed: CommandName, broker: int, peer: int | None = None) -> JournalledFault:
        cure = self._filled(HEALED_BY[deed], broker, peer)
        has_start = self._file.command(CommandName.START, broker) is not None
        start = (
            self._filled(CommandName.START, broker, None) if deed is CommandName.PAUSE and has_start else None
        )
        return self._journal.strikes(deed, broker, self.address(broker), cure, peer, start=start)

    @contextmanager
    def _named(self, deed: CommandName, broker: int) -> Iterator[None]:
        """Say of a command that fails what it was for."""
        try:
            yield
        except CommandError as error:
            state = "" if self.answers(broker) else f"; broker {broker} does not answer"
            raise CommandError(f"{deed} of broker {broker}: {error}{state}") from error

    def _is_of(
        self, fault: JournalledFault, deeds: tuple[CommandName, ...], broker: int, peer: int | None
    ) -> bool:
        return fault.deed in deeds and (fault.broker, fault.peer) == (broker, peer)

    def _filled(self, deed: CommandName, broker: int, peer: int | None) -> FilledCommand:
        command = self._file.command(deed, broker)
        if command is None:
            raise CannotBeDoneError(f"no command does {deed} to broker {broker}")
        other = None if peer is None else self._brokers[peer]
        words = broker_words(self._brokers[broker], other, set(command.placeholders()))
        listed = self._file.brokers.get(broker)
        return command.filled({**({} if listed is None else listed.variables), **words})


class UserBroker:
    """A broker's process, as far as harrow knows of it: what it has done to it itself (`harrow.live_cluster.processes.node_process.NodeProcess`).

    ``id`` is the campaign's, *called* what the cluster calls it.
    """

    def __init__(self, broker: int, called: int, deeds: Deeds) -> None:
        self.id = broker
        self.is_paused = False
        self._called = called
        self._deeds = deeds
        self._is_up = True
        self._stopping: RunningCommand | None = None
        # When it was started and when it was looked at last, until it answers.
        self._started_s: float | None = None
        self._looked_s = 0.0

    @property
    def is_running(self) -> bool:
        """Return whether it is there. One that is told to stop is, until its command is back."""
        return self._is_up

    def look_after(self) -> None:
        """Take note of a stop that is done, and start a broker again that has not come up.

        With ZooKeeper a broker ends at once while its former life is registered, which nobody tells while no broker answers.

        Raises:
            CommandError: a command has failed.

        """
        if self._stopping is not None and self._stopping.has_ended():
            self._stopping = None
            self._is_up = False
        if self._started_s is None or time.monotonic() < self._looked_s + _LOOK_S:
            return
        self._looked_s = time.monotonic()
        if self._deeds.answers(self._called):
            self._started_s = None
            self._deeds.is_over((CommandName.KILL, CommandName.STOP), self._called)
        elif self._looked_s > self._started_s + _COMES_UP_S and not self.is_paused:
            self._deeds.cure(CommandName.KILL, self._called)
            self._started_s = time.monotonic()

    def start(self) -> None:
        if not self._is_up:
            self._deeds.cure(CommandName.KILL, self._called)
            self._is_up, self.is_paused = True, False
            self._started_s = time.monotonic()

    def kill(self) -> None:
        self._deeds.do(CommandName.KILL, self._called)
        # What stood still is gone as well.
        self._deeds.is_over((CommandName.PAUSE,), self._called)
        self._stopping = self._started_s = None
        self._is_up, self.is_paused = False, False

    def stop(self) -> None:
        self._started_s = None
        self._stopping = self._deeds.begin(CommandName.STOP, self._called)

    def pause(self) -> None:
        self._deeds.do(CommandName.PAUSE, self._called)
        self.is_paused = True

    def resume(self) -> None:
        """Let it go on; one that has died meanwhile is down from now on.

        Raises:
            CommandError: the command fails, and the broker answers or cannot be started.

        """
        try:
            self._deeds.undo((CommandName.PAUSE,), self._called)
        except CommandError:
            if not self._deeds.is_dead(self._called):
                raise
            self._is_up, self._started_s = False, None
        self.is_paused = False


class UserLinks:
    """The links between brokers, as far as the user's commands cut them (`harrow.live_cluster.target.real_cluster.Links`).

    What passes is not seen.
    """

    def __init__(self, deeds: Deeds, called: Callable[[int], int]) -> None:
        self._deeds = deeds
        self._called = called
        self._cuts: Counter[tuple[int, int]] = Counter()

    def cut(self, sender: int | str, receiver: int | str) -> None:
        link = _link(sender, receiver)
        self._cuts[link] += 1
        if self._cuts[link] == 1:
            self._deeds.do(CommandName.CUT, self._called(link[1]), self._called(link[0]))

    def restore(self, sender: int | str, receiver: int | str) -> None:
        link = _link(sender, receiver)
        if not self._cuts[link]:
            return
        self._cuts[link] -= 1
        if not self._cuts[link]:
            self._restore(link)

    def is_cut_one_way(self, sender: int | str, receiver: int | str) -> bool:
        return any(cuts and link == (sender, receiver) for link, cuts in self._cuts.items())

    def restore_all(self) -> None:
        self.restore_all_but(())

    def restore_all_but(self, outside: Collection[int]) -> None:
        for link in [link for link, cuts in self._cuts.items() if cuts]:
            if not set(link).intersection(outside):
                self._restore(link)

    def has_rule(self, name: str) -> bool:
        return False

    def are_disturbed(self, broker: int, control: Sequence[str]) -> bool:
        return any(cuts and broker in link for link, cuts in self._cuts.items())

    def remote_leo(self, leader: int, partition: str, replica: int) -> int:
        raise CannotBeDoneError(f"what {leader} knows of {partition} on {replica} is not seen")

    def forget(self, broker: int) -> None:
        """Do nothing: what passes is not seen."""

    def watch_messages(self) -> None:
        """Do nothing: see `forget`."""

    def watch_fetches(self) -> None:
        """Do nothing: see `forget`."""

    def _restore(self, link: tuple[int, int]) -> None:
        sender, receiver = link
        self._deeds.undo((CommandName.CUT,), self._called(receiver), self._called(sender))
        del self._cuts[link]


def _link(sender: int | str, receiver: int | str) -> tuple[int, int]:
    if isinstance(sender, str) or isinstance(receiver, str):
        raise CannotBeDoneError(f"no command cuts the link between {sender} and {receiver}")
    return sender, receiver

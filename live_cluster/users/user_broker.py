"""Controls brokers and links of the user's cluster. The journal records each fault beforehand."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from harrow.live_cluster.target.control_plane import CannotBeDoneError
from harrow.live_cluster.target.real_cluster import Links
from harrow.live_cluster.users.command import CommandError, CommandName, FilledCommand, RunningCommand
from harrow.live_cluster.users.command_word import broker_words
from harrow.live_cluster.users.journal import Journal, JournalledFault
from harrow.live_cluster.users.target_file import HEALED_BY, TargetFile
from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.survey import BrokerNode

_POLL_INTERVAL_S: Final = 0.5
_POLL_TIMEOUT_S: Final = 1.0
_START_MAX_S: Final = 30.0
"""A broker that does not answer for this long after its start is started again."""


class FaultCommands:
    """Runs the *permitted* commands of a *file*, and keeps the journal.

    *brokers* are the cluster's brokers, by the cluster's ids. The output of commands goes to *log*.
    """

    def __init__(
        self,
        file: TargetFile,
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

    def begin(self, name: CommandName, broker: int, peer: int | None = None) -> RunningCommand:
        """Write a journal entry, then start a command for a broker, or for its link from a *peer*.

        Raise `CannotBeDoneError` if there is no such command or it is not permitted.
        """
        if name not in self._permitted:
            raise CannotBeDoneError(f"{name} is not allowed on this cluster")
        command = self._filled_command(name, broker, peer)
        fault = self._record_fault(name, broker, peer)
        return command.begin(self._journal.folder, self._log, partial(self._journal.record_pid, fault))

    def do(self, name: CommandName, broker: int, peer: int | None = None) -> None:
        """Run a command to its end (`begin`)."""
        with self._explain_errors(name, broker):
            self.begin(name, broker, peer).wait()

    def cure(self, name: CommandName, broker: int, peer: int | None = None) -> None:
        """Run the command that undoes another; the journal keeps the fault."""
        with self._explain_errors(HEALED_BY[name], broker):
            self._filled_command(HEALED_BY[name], broker, peer).run(self._journal.folder, self._log)

    def undo(self, name: CommandName, broker: int, peer: int | None = None) -> None:
        """Undo a fault, and remove it from the journal."""
        self.cure(name, broker, peer)
        self.record_end((name,), broker, peer)

    def record_if_dead(self, broker: int) -> bool:
        """Return whether a paused broker is dead. If it is, record that healing must start it.

        No command asks for the state of a process, so a broker that does not answer counts as dead.
        Without a command that starts the broker, the pause stays in the journal, and healing tells
        the user what to do.
        """
        if self.answers(broker) or self._file.command(CommandName.START, broker) is None:
            return False
        self._record_fault(CommandName.KILL, broker)
        self.record_end((CommandName.PAUSE,), broker)
        return True

    def answers(self, broker: int) -> bool:
        with BrokerConnection(
            self.address(broker), timeout_s=_POLL_TIMEOUT_S, security=self._file.security
        ) as connection:
            return connection.answers()

    def record_end(self, names: tuple[CommandName, ...], broker: int, peer: int | None = None) -> None:
        """Remove faults of these commands from the journal."""
        for fault in self._journal.in_force():
            if fault.command in names and (fault.broker, fault.peer) == (broker, peer):
                self._journal.record_end(fault)

    def address(self, broker: int) -> tuple[str, int]:
        node = self._brokers[broker]
        return node.host, node.port

    def _record_fault(self, name: CommandName, broker: int, peer: int | None = None) -> JournalledFault:
        cure = self._filled_command(HEALED_BY[name], broker, peer)
        start = None
        if name is CommandName.PAUSE and self._file.command(CommandName.START, broker) is not None:
            start = self._filled_command(CommandName.START, broker, None)
        return self._journal.record_fault(name, broker, self.address(broker), cure, peer, start=start)

    @contextmanager
    def _explain_errors(self, name: CommandName, broker: int) -> Iterator[None]:
        """Add to the error of a failed command its purpose, and whether the broker answers."""
        try:
            yield
        except CommandError as error:
            state = "" if self.answers(broker) else f"; broker {broker} does not answer"
            raise CommandError(f"{name} of broker {broker}: {error}{state}") from error

    def _filled_command(self, name: CommandName, broker: int, peer: int | None) -> FilledCommand:
        command = self._file.command(name, broker)
        if command is None:
            raise CannotBeDoneError(f"there is no command {name} for broker {broker}")
        other = None if peer is None else self._brokers[peer]
        words = broker_words(self._brokers[broker], other, set(command.placeholders()))
        listed = self._file.brokers.get(broker)
        return command.filled({**({} if listed is None else listed.variables), **words})


class UserBroker:
    """The process of a broker, in the state after harrow's commands (a `NodeProcess`).

    ``id`` is the broker's id in the campaign, *cluster_id* its id on the cluster.
    """

    def __init__(self, broker: int, cluster_id: int, commands: FaultCommands) -> None:
        self.id = broker
        self.is_paused = False
        self._cluster_id = cluster_id
        self._commands = commands
        self._is_up = True
        self._stopping: RunningCommand | None = None
        # The times of the last start and of the last check, until the broker answers.
        self._started_s: float | None = None
        self._last_check_s = 0.0

    @property
    def is_running(self) -> bool:
        """Whether the broker runs. A broker that stops runs until its stop command has returned."""
        return self._is_up

    def poll(self) -> None:
        """Notice the end of a stop, and restart a broker that has not come up.

        With ZooKeeper a broker ends at once while its former process is registered. If no broker
        answers, harrow cannot see whether it is.
        """
        if self._stopping is not None and self._stopping.has_ended():
            self._stopping = None
            self._is_up = False
        if self._started_s is None or time.monotonic() < self._last_check_s + _POLL_INTERVAL_S:
            return
        self._last_check_s = time.monotonic()
        if self._commands.answers(self._cluster_id):
            self._started_s = None
            self._commands.record_end((CommandName.KILL, CommandName.STOP), self._cluster_id)
        elif self._last_check_s > self._started_s + _START_MAX_S and not self.is_paused:
            self._commands.cure(CommandName.KILL, self._cluster_id)
            self._started_s = time.monotonic()

    def start(self) -> None:
        if not self._is_up:
            self._commands.cure(CommandName.KILL, self._cluster_id)
            self._is_up, self.is_paused = True, False
            self._started_s = time.monotonic()

    def kill(self) -> None:
        self._commands.do(CommandName.KILL, self._cluster_id)
        # A paused process is dead now, too.
        self._commands.record_end((CommandName.PAUSE,), self._cluster_id)
        self._stopping = self._started_s = None
        self._is_up, self.is_paused = False, False

    def stop(self) -> None:
        self._started_s = None
        self._stopping = self._commands.begin(CommandName.STOP, self._cluster_id)

    def pause(self) -> None:
        self._commands.do(CommandName.PAUSE, self._cluster_id)
        self.is_paused = True

    def resume(self) -> None:
        """Resume the broker. If it has died while it was paused, treat it as down."""
        try:
            self._commands.undo(CommandName.PAUSE, self._cluster_id)
        except CommandError:
            if not self._commands.record_if_dead(self._cluster_id):
                raise
            self._is_up, self._started_s = False, None
        self.is_paused = False


class UserLinks(Links):
    """The links between brokers, which the user's commands cut. harrow sees no messages.

    *cluster_id* returns the id of a broker on the cluster.
    """

    def __init__(self, commands: FaultCommands, cluster_id: Callable[[int], int]) -> None:
        self._commands = commands
        self._cluster_id = cluster_id
        self._cuts: Counter[tuple[int, int]] = Counter()

    def cut(self, sender: int | str, receiver: int | str) -> None:
        link = _link(sender, receiver)
        self._cuts[link] += 1
        if self._cuts[link] == 1:
            self._commands.do(CommandName.CUT, self._cluster_id(link[1]), self._cluster_id(link[0]))

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

    def rules(self) -> tuple[()]:
        return ()

    def are_disturbed(self, broker: int, control: Sequence[str]) -> bool:
        return any(cuts and broker in link for link, cuts in self._cuts.items())

    def remote_leo(self, leader: int, partition: str, replica: int) -> int:
        raise CannotBeDoneError(f"broker {leader}'s view of {partition} on broker {replica} is not visible")

    def _restore(self, link: tuple[int, int]) -> None:
        sender, receiver = link
        self._commands.undo(CommandName.CUT, self._cluster_id(receiver), self._cluster_id(sender))
        del self._cuts[link]


def _link(sender: int | str, receiver: int | str) -> tuple[int, int]:
    if isinstance(sender, str) or isinstance(receiver, str):
        raise CannotBeDoneError(f"no command cuts the link between {sender} and {receiver}")
    return sender, receiver

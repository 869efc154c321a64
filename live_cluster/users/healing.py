"""Heals the user's cluster, at the end of a run or after harrow was killed."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.releases.kafka_release import KRAFT
from harrow.live_cluster.users.command import CommandError, CommandName, FilledCommand, is_running
from harrow.live_cluster.users.journal import Journal, JournalledFault
from harrow.live_cluster.users.target_file import Notify, TargetFile
from harrow.live_cluster.waiting import wait_until
from harrow.live_cluster.wire.administration import delete_topics
from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.security import PLAINTEXT
from harrow.live_cluster.wire.survey import Survey, survey_cluster

_POLL_INTERVAL_S: Final = 0.2
_REGISTRATION_MAX_S: Final = 45.0
"""How long the registration of a dead broker may last; ``zookeeper.session.timeout.ms`` is up to 18
s by default."""
_ANSWER_TIMEOUT_S: Final = 30.0
_START_ATTEMPTS: Final = 4
_SURVEY_TIMEOUT_S: Final = 2.0
_DELETION_MAX_S: Final = 60.0
_STAYS_DELETED_S: Final = 3.0


class HealingError(LiveError):
    """A fault is still in force; the message says which one."""


class Healing:
    """Undoes the faults in a *journal*.

    *file* is the target file; None if it is no longer readable.
    """

    def __init__(self, journal: Journal, file: TargetFile | None, log: Path, say: Notify) -> None:
        self._journal = journal
        self._file = file
        self._security = PLAINTEXT if file is None else file.security
        self._log = log
        self._say = say
        self._problems: list[str] = []

    def heal(self, end_clients: Callable[[], None] = lambda: None) -> None:
        """Restore links, resume paused brokers, start dead ones, end clients, delete the topics.

        Clients end before the topics go: a running client would make brokers create them again
        (``auto.create.topics.enable``). Raise `HealingError` if a fault cannot be undone.
        """
        faults = self._journal.in_force()
        down = {fault.broker for fault in faults if fault.command in (CommandName.KILL, CommandName.STOP)}
        for fault in faults:
            if fault.command is CommandName.CUT:
                self._undo(fault, self._run_cure)
        for fault in faults:
            if fault.command is CommandName.PAUSE:
                # If the broker was about to be killed too, its process may be gone.
                self._undo(fault, self._resume if fault.broker in down else self._resume_or_start)
        for fault in faults:
            if fault.command in (CommandName.KILL, CommandName.STOP):
                self._undo(fault, lambda fault: self._start(fault, fault.cure))
        end_clients()
        self._delete_topics()
        if self._problems:
            raise HealingError("; ".join(self._problems))

    def _undo(self, fault: JournalledFault, undo: Callable[[JournalledFault], None]) -> None:
        try:
            # Wait for this command only now, not for all commands first: a paused broker obeys a
            # stop command only after it is resumed.
            self._wait_for_command(fault)
            undo(fault)
        except LiveError as error:
            self._problems.append(f"{fault} is still in force: {error}")
        else:
            self._journal.record_end(fault)

    def _run_cure(self, fault: JournalledFault) -> None:
        self._say(f"undoing {fault}")
        fault.cure.run(self._journal.folder, self._log)

    def _resume(self, fault: JournalledFault) -> None:
        with suppress(CommandError):
            self._run_cure(fault)

    def _resume_or_start(self, fault: JournalledFault) -> None:
        """Resume a broker, or start it if it has died while it was paused."""
        try:
            self._run_cure(fault)
        except CommandError as error:
            if self._answers(fault):
                return
            if fault.start is None:
                host, port = fault.address
                raise HealingError(
                    f"{error}; broker {fault.broker} does not answer at {host}:{port}: start it, and heal again"
                ) from error
            try:
                self._start(fault, fault.start)
            except LiveError as failure:
                raise HealingError(f"{error}; {failure}") from failure

    def _start(self, fault: JournalledFault, start: FilledCommand) -> None:
        if self._answers(fault):
            return
        # With ZooKeeper a broker does not start while its former process is registered.
        _wait(lambda: not self._is_registered(fault.broker), _REGISTRATION_MAX_S)
        # Try again if the broker ended at once because its former process was still in the way.
        for _ in range(_START_ATTEMPTS):
            self._say(f"starting broker {fault.broker}")
            start.run(self._journal.folder, self._log)
            if _wait(lambda: self._answers(fault), _ANSWER_TIMEOUT_S):
                return
        raise HealingError(f"{start} succeeded, but the broker does not answer")

    def _answers(self, fault: JournalledFault) -> bool:
        with self._connect(fault.address, _SURVEY_TIMEOUT_S) as connection:
            return connection.answers()

    def _is_registered(self, broker: int) -> bool:
        """Return whether a dead broker is still registered; False if no broker answers."""
        cluster = next(self._surveys(), None)
        return (
            cluster is not None
            and cluster.metadata != KRAFT
            and broker in {node.id for node in cluster.brokers}
        )

    def _surveys(self) -> Iterator[Survey]:
        """Find the controller through each bootstrap server; yield its survey of the cluster."""
        for address in () if self._file is None else self._file.bootstrap:
            try:
                with self._connect(address, _SURVEY_TIMEOUT_S) as connection:
                    controller = survey_cluster(connection).controller_node
                if controller is not None:
                    with self._connect((controller.host, controller.port)) as connection:
                        yield survey_cluster(connection)
            except LiveError:
                continue

    def _connect(self, address: tuple[str, int], timeout_s: float = _DELETION_MAX_S) -> BrokerConnection:
        return BrokerConnection(address, timeout_s=timeout_s, security=self._security)

    def _wait_for_command(self, fault: JournalledFault) -> None:
        """Wait for the end of the command that caused a fault. The command may outlive harrow."""
        pid = fault.pid
        if pid is not None and not _wait(lambda: not is_running(pid), fault.cure.limit_s):
            raise HealingError(f"the command that caused it is still running (process {pid})")

    def _delete_topics(self) -> None:
        topics = self._journal.topics()
        if topics and not _wait(lambda: self._delete(topics) and self._stay_deleted(topics), _DELETION_MAX_S):
            self._problems.append(f"these topics were not deleted: {', '.join(topics)}")
            return
        for topic in topics:
            self._journal.record_deletion(topic)

    def _stay_deleted(self, topics: list[str]) -> bool:
        """Return whether deleted topics stay deleted for a while.

        A broker that was paused handles earlier requests of clients when it resumes, and may
        create the topic again (``auto.create.topics.enable``).
        """

        def came_back() -> bool:
            cluster = next(self._surveys(), None)
            return cluster is None or not cluster.assignments.keys().isdisjoint(topics)

        return not _wait(came_back, _STAYS_DELETED_S)

    def _delete(self, topics: list[str]) -> bool:
        cluster = next(self._surveys(), None)
        controller = None if cluster is None else cluster.controller_node
        if controller is None:
            return False
        try:
            with self._connect((controller.host, controller.port)) as connection:
                delete_topics(connection, topics)
        except LiveError:
            return False
        return True


def _wait(condition: Callable[[], bool], limit_s: float) -> bool:
    return wait_until(condition, limit_s, _POLL_INTERVAL_S)

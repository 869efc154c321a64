"""Undoing what is in force on a user's cluster, at the end of a run or after harrow was killed."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.releases.kafka_release import KRAFT
from harrow.live_cluster.users.cluster_file import ClusterFile, Notify
from harrow.live_cluster.users.command import CommandError, CommandName, FilledCommand, is_running
from harrow.live_cluster.users.journal import Journal, JournalledFault
from harrow.live_cluster.wire.administration import delete_topics
from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.security import PLAINTEXT
from harrow.live_cluster.wire.survey import Survey, survey

_LOOK_S: Final = 0.2
_REGISTERED_S: Final = 45.0
"""How long the registration of a broker that is gone may last: ``zookeeper.session.timeout.ms`` is 18 s at the most by default."""
_ANSWERS_S: Final = 30.0
_STARTS: Final = 4
_SURVEY_TIMEOUT_S: Final = 2.0
_DELETED_S: Final = 60.0
_AWAY_S: Final = 3.0


class HealingError(LiveError):
    """Something is still in force; the message says what."""


class Healing:
    """Undoes what a *journal* says is in force. *file* is the cluster's, None where it cannot be read any more."""

    def __init__(self, journal: Journal, file: ClusterFile | None, log: Path, say: Notify) -> None:
        self._journal = journal
        self._file = file
        self._security = PLAINTEXT if file is None else file.security
        self._log = log
        self._say = say
        self._problems: list[str] = []

    def heal(self, end_clients: Callable[[], None] = lambda: None) -> None:
        """Undo everything: links first, then pauses, then start what is down; end clients; and delete the topics.

        A client that still runs has brokers create a topic again that is deleted (``auto.create.topics.enable``).

        Raises:
            HealingError: something could not be undone.

        """
        faults = self._journal.in_force()
        down = {fault.broker for fault in faults if fault.deed in (CommandName.KILL, CommandName.STOP)}
        for fault in faults:
            if fault.deed is CommandName.CUT:
                self._try(fault, self._cure)
        for fault in faults:
            if fault.deed is CommandName.PAUSE:
                # Whether its process is there still is not known where it was about to be killed.
                self._try(fault, self._resume if fault.broker in down else self._resume_or_start)
        for fault in faults:
            if fault.deed in (CommandName.KILL, CommandName.STOP):
                self._try(fault, lambda fault: self._start(fault, fault.cure))
        end_clients()
        self._delete_topics()
        if self._problems:
            raise HealingError("; ".join(self._problems))

    def _try(self, fault: JournalledFault, undo: Callable[[JournalledFault], None]) -> None:
        try:
            # Not all of them at first: a broker that is paused does not stop before it is resumed.
            self._wait_for_command(fault)
            undo(fault)
        except LiveError as error:
            self._problems.append(f"{fault} is in force still: {error}")
        else:
            self._journal.is_over(fault)

    def _cure(self, fault: JournalledFault) -> None:
        self._say(f"undoing {fault}")
        fault.cure.run(self._journal.folder, self._log)

    def _resume(self, fault: JournalledFault) -> None:
        try:
            self._cure(fault)
        except CommandError:
            return

    def _resume_or_start(self, fault: JournalledFault) -> None:
        """Resume a broker; one that has died while it was paused is started."""
        try:
            self._cure(fault)
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
        # With ZooKeeper a broker does not start while its former life is registered.
        _wait(lambda: not self._is_registered(fault.broker), _REGISTERED_S)
        # Again where it has ended at once: a former life of it was still in the way.
        for _ in range(_STARTS):
            self._say(f"starting broker {fault.broker}")
            start.run(self._journal.folder, self._log)
            if _wait(lambda: self._answers(fault), _ANSWERS_S):
                return
        raise HealingError(f"{start} came back, and the broker does not answer")

    def _answers(self, fault: JournalledFault) -> bool:
        with BrokerConnection(
            fault.address, timeout_s=_SURVEY_TIMEOUT_S, security=self._security
        ) as connection:
            return connection.answers()

    def _is_registered(self, broker: int) -> bool:
        """Return whether a cluster with ZooKeeper still has a broker that does not answer; False where no broker answers."""
        cluster = next(self._surveys(), None)
        return (
            cluster is not None
            and cluster.metadata != KRAFT
            and broker in {each.id for each in cluster.brokers}
        )

    def _surveys(self) -> Iterator[Survey]:
        """Yield the cluster as each bootstrap server's controller describes it, for the controller knows best."""
        for address in () if self._file is None else self._file.bootstrap:
            try:
                with BrokerConnection(
                    address, timeout_s=_SURVEY_TIMEOUT_S, security=self._security
                ) as connection:
                    cluster = survey(connection)
                controller = next(each for each in cluster.brokers if each.id == cluster.controller)
                with self._connect((controller.host, controller.port)) as connection:
                    yield survey(connection)
            except (LiveError, StopIteration):
                continue

    def _connect(self, address: tuple[str, int]) -> BrokerConnection:
        return BrokerConnection(address, timeout_s=_DELETED_S, security=self._security)

    def _wait_for_command(self, fault: JournalledFault) -> None:
        """Wait until the command that did it has ended, which outlives harrow.

        Raises:
            HealingError: it does not end.

        """
        pid = fault.pid
        if pid is not None and not _wait(lambda: not is_running(pid), fault.cure.limit_s):
            raise HealingError(f"the command that did it is at work still (process {pid})")

    def _delete_topics(self) -> None:
        topics = self._journal.topics()
        if topics and not _wait(lambda: self._delete(topics) and self._stay_away(topics), _DELETED_S):
            self._problems.append(f"these topics were not deleted: {', '.join(topics)}")
            return
        for topic in topics:
            self._journal.has_deleted(topic)

    def _stay_away(self, topics: list[str]) -> bool:
        """Return whether topics that were deleted are not there for a while.

        A broker that was paused goes on with what clients asked it before, and creates the topic once more where it does so by
        itself (``auto.create.topics.enable``).
        """
        until_s = time.monotonic() + _AWAY_S
        while time.monotonic() < until_s:
            cluster = next(self._surveys(), None)
            if cluster is None or not cluster.assignments.keys().isdisjoint(topics):
                return False
            time.sleep(_LOOK_S)
        return True

    def _delete(self, topics: list[str]) -> bool:
        cluster = next(self._surveys(), None)
        brokers = () if cluster is None else cluster.brokers
        controller = next(
            (each for each in brokers if cluster is not None and each.id == cluster.controller), None
        )
        if controller is None:
            return False
        try:
            with self._connect((controller.host, controller.port)) as connection:
                delete_topics(connection, topics)
        except LiveError:
            return False
        return True


def _wait(holds: Callable[[], bool], limit_s: float) -> bool:
    until_s = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() >= until_s:
            return False
        time.sleep(_LOOK_S)
    return True

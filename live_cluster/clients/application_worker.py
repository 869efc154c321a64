"""An application under test, in its process: a loop of the steps that its kind has on the model, with the calls of a library between them.

The loops of `harrow.cluster_model.clients.application` make the model's clients and wait for the simulator's timers. These do the same in
the same order, in a thread that waits for each call as an application does. Where harrow says so, they are held at a step.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, Final

from harrow.cluster_model.clients.application import (
    ABORT,
    BEGIN,
    COMMIT,
    CONSUMER_FAILED,
    FLUSH,
    POLL,
    PROCESS,
    SEND,
    SEND_OFFSETS,
    STORE,
)
from harrow.cluster_model.history import FAIL, INFO, OK, effect_of
from harrow.cluster_model.topology import (
    AT_LEAST_ONCE,
    AT_MOST_ONCE,
    AUTO_COMMITTED,
    EXACTLY_ONCE,
    HIGHEST_FINISHED,
    IDEMPOTENT_SINK,
    WATERMARK,
)
from harrow.live_cluster.clients.channel import AskingChannel, Channel
from harrow.live_cluster.clients.client_library import ClientLibrary, MembershipError
from harrow.live_cluster.clients.member import GroupMembership, Records
from harrow.live_cluster.clients.senders import LibrarySender, TransactionalSender
from harrow.live_cluster.names import names_of

OF_PRODUCER: Final = "producer"
OF_CONSUMER: Final = "consumer"
"""Whose report it is (``of``); others are the application's own."""
_POLL_S: Final = 0.02
_OUTCOMES_S: Final = 5.0
"""How long one that is to be held waits at the most for what it has sent before."""
_NOWHERE: Final[Mapping[str, int]] = {}
_Record = tuple[str, int, str]


class ApplicationLoop(ABC):
    """A process of an application: its consumer, its producer if it has one, and its loop."""

    delivery: ClassVar[str]
    steps: ClassVar[tuple[str, ...]]

    def __init__(self, channel: Channel, client: dict[str, Any], library: ClientLibrary) -> None:
        self._channel = AskingChannel(channel)
        self._name: str = client["name"]
        self._source: str = client["source"]
        self._partitions: list[str] = client["partitions"]
        self._start_ns: int = client["start_ns"]
        self._stop_ns: int | None = client["stop_ns"]
        self._work_s: float = client["work_ns"] / 1e9
        self._slow_s: float = client["slow_ns"] / 1e9
        self._rewinds: bool = client["rewinds"]
        self._as_member: bool = client["group_metadata"]
        self._hold: tuple[str, int] | None = None
        if client["hold"] is not None:
            step, passes = client["hold"]
            self._hold = step, passes
        self._is_held = False
        self._is_closing = False
        self._is_over = False
        self._told: set[str] = set()
        self._waiting: dict[str, Any] = {}
        self._written = 0
        self._sender = self._make_sender(client, library)
        self._member = GroupMembership(
            partial(self._channel.report_now, of=OF_CONSUMER),
            library.make_member(client["consumer"]),
            names_of(client),
            client["max_poll_records"],
            begins_at_zero=client["begins_at_zero"],
            on_assigned=self._assigned,
            on_revoked=self._revoked,
        )

    def _make_sender(self, client: dict[str, Any], library: ClientLibrary) -> LibrarySender | None:
        if client["producer"] is None:
            return None
        report = partial(self._channel.report_now, of=OF_PRODUCER)
        return LibrarySender(report, library.make_producer(client["producer"]), names_of(client))

    def work(self, orders: list[dict[str, Any]]) -> None:
        """Run from the time that it was told until it ends by itself; then wait to be ended."""
        for order in orders:
            self._obey(order)
        while (left_s := (self._start_ns - time.monotonic_ns()) / 1e9) > 0:
            self._obey_all(left_s)
        if self._sender is not None:
            threading.Thread(target=self._serve, args=(self._sender,), daemon=True).start()
        try:
            error = self._run()
            self._channel.report_now(ended=error)
            while True:
                self._channel.orders(None)
        finally:
            self._is_over = True

    def _serve(self, sender: LibrarySender) -> None:
        """Hear of the outcomes of records while the loop is busy, waits or is held, as the Java client's sender does."""
        while not self._is_over:
            sender.poll(_POLL_S)

    # What it is told

    def _obey_all(self, timeout_s: float | None) -> None:
        for order in self._channel.orders(timeout_s):
            self._obey(order)

    def _obey(self, order: dict[str, Any]) -> None:
        if "hold" in order:
            step, passes = order["hold"]
            self._hold = step, passes
        elif "slow_ns" in order:
            self._slow_s = order["slow_ns"] / 1e9
        elif "close" in order:
            self._is_closing = True
        else:
            # It is let go.
            self._hold = None
            self._is_held = False

    # What loops are made of

    def _run(self) -> str | None:
        """Do again and again what is to be done with what a poll returns; return the error for which it ends, None for none."""
        try:
            self._member.subscribe([self._source])
            while True:
                self._step(POLL)
                records = self._poll()
                if self._is_closing and not records:
                    self._close()
                    return None
                error = self._handle(records) or self._producer_error()
                if error is not None:
                    return error
        except MembershipError:
            return CONSUMER_FAILED

    @abstractmethod
    def _handle(self, records: Records) -> str | None:
        """Do what is to be done with what a poll has returned; return an error after which nothing more can be done."""

    def _step(self, step: str) -> None:
        """Report a step, those that are taken for each record once for all that a poll has returned; and wait where it is held there."""
        self._obey_all(0)
        if step == POLL:
            self._told.clear()
        if step not in self._told:
            self._told.add(step)
            self._channel.report_now(step=step)
        if self._hold is None or self._hold[0] != step:
            return
        passes = self._hold[1]
        self._hold = (step, passes - 1) if passes else None
        self._channel.report_now(passed=step, hold=self._hold)
        if passes:
            return
        # The model's records leave when they are sent. A library's wait for a thread of its own, and would leave after a pause on a busy machine.
        if self._sender is not None:
            self._sender.wait(_OUTCOMES_S)
        self._is_held = True
        self._channel.report_now(held=step)
        while self._is_held:
            self._obey_all(None)

    def _poll(self) -> Records:
        """Wait until there is something to read, or it is to be closed."""
        invoked_ns = time.monotonic_ns()
        while True:
            if self._stop_ns is not None and time.monotonic_ns() >= self._stop_ns:
                self._is_closing = True
            if self._is_closing or self._returns_nothing():
                records: Records = {}
                break
            records = self._member.poll(invoked_ns, _POLL_S)
            if records:
                break
            self._tell_waiting(is_idle=self._member.is_settled and self._is_idle())
            self._obey_all(0)
        self._tell_waiting(is_idle=False)
        return records

    def _tell_waiting(self, *, is_idle: bool) -> None:
        waiting = {"idle": is_idle, "reached": self._member.reached()}
        if waiting != self._waiting:
            self._waiting = waiting
            self._channel.report_now(**waiting)

    def _is_idle(self) -> bool:
        """Return whether nothing is under way while it polls."""
        return True

    def _returns_nothing(self) -> bool:
        """Return whether a poll that waits is over."""
        return False

    def _close(self) -> None:
        if self._sender is not None:
            self._sender.flush()
        self._member.close()

    def _be_slow(self) -> None:
        if self._slow_s:
            time.sleep(self._slow_s)

    def _write_each(self, records: Records) -> None:
        """Process records one after the other, and write what comes of each."""
        self._be_slow()
        for _, _, value in _flat(records):
            self._step(PROCESS)
            if self._work_s:
                time.sleep(self._work_s)
            self._step(SEND)
            self._write(value)

    def _write(self, value: str) -> None:
        assert self._sender is not None, "it has something to write to"
        # All processes of an instance share the numbers.
        number: int = self._channel.ask(next=True)
        partition = self._partitions[self._written % len(self._partitions)]
        self._written += 1
        self._sender.send(partition, effect_of(self._name, number, value))

    def _producer_error(self) -> str | None:
        """Return the error after which its producer can do nothing any more: it has to begin again with another one."""
        return None if self._sender is None else self._sender.fatal_error()

    def _flush(self) -> bool:
        """Wait until all that was written has been acknowledged, or some of it not; return whether all was."""
        assert self._sender is not None, "it has something to write to"
        return self._sender.flush()

    def _rewind(self) -> None:
        if self._rewinds:
            self._member.rewind()

    def _assigned(self, _: list[str]) -> Mapping[str, int]:
        """Read these partitions, too; return from where on those that are not read from where the group has committed."""
        return _NOWHERE

    def _revoked(self, partitions: list[str]) -> None:  # noqa: B027 - most keep nothing of a partition
        """Read these partitions no more."""


class ExactlyOnceLoop(ApplicationLoop):
    """What it has written and what it has read are committed in one transaction."""

    delivery = EXACTLY_ONCE
    steps = (POLL, BEGIN, PROCESS, SEND, SEND_OFFSETS, COMMIT, ABORT)
    _sender: TransactionalSender

    def _make_sender(self, client: dict[str, Any], library: ClientLibrary) -> TransactionalSender:
        report = partial(self._channel.report_now, of=OF_PRODUCER)
        return TransactionalSender(report, library.make_transactions(client["producer"]), names_of(client))

    def _run(self) -> str | None:
        # First of all: it has the transaction ended that a former life has left open, on which the committed offsets hang.
        error = self._sender.init_transactions()
        return super()._run() if error is None else error

    def _handle(self, records: Records) -> str | None:
        sender = self._sender
        offsets: dict[str, int] = {}
        self._step(BEGIN)
        error = sender.begin()
        if error is None:
            self._write_each(records)
            self._step(SEND_OFFSETS)
            offsets = dict(self._member.consumed)
            metadata = self._member.group_metadata(as_member=self._as_member)
            self._note_commit(committing=offsets)
            error = sender.send_offsets(self._member.on_cluster(offsets), metadata)
        if error is None:
            self._step(COMMIT)
            error = sender.commit()
        if error is not None and not sender.has_failed:
            self._step(ABORT)
            sender.abort()
            self._rewind()
        if offsets:
            # Whether they count hangs on the transaction that they were sent in.
            outcome = OK if error is None else INFO if sender.has_failed else FAIL
            self._note_commit(committed=offsets, error=error, outcome=outcome)
        return error if sender.has_failed else None

    def _note_commit(self, **what: Any) -> None:
        self._channel.report_now(of=OF_CONSUMER, **what)


class AtLeastOnceLoop(ApplicationLoop):
    """What it has read it commits when all that it has made of it is acknowledged."""

    delivery = AT_LEAST_ONCE
    steps = (POLL, PROCESS, SEND, FLUSH, COMMIT)

    def _handle(self, records: Records) -> str | None:
        self._write_each(records)
        self._step(FLUSH)
        if self._flush():
            self._step(COMMIT)
            # What could not be committed is with the next commit, or is read again by who gets the partitions.
            self._member.commit(self._member.consumed)
        else:
            self._rewind()
        return None


class AtMostOnceLoop(ApplicationLoop):
    """It processes what it has committed, and nothing else."""

    delivery = AT_MOST_ONCE
    steps = (POLL, COMMIT, PROCESS, SEND)

    def _handle(self, records: Records) -> str | None:
        self._step(COMMIT)
        if self._member.commit(self._member.consumed) is None:
            self._write_each(records)
        return None


class AutoCommittedLoop(ApplicationLoop):
    """It processes what polls return, and its consumer commits that now and then, whatever has come of it."""

    delivery = AUTO_COMMITTED
    steps = (POLL, PROCESS, SEND)

    def _handle(self, records: Records) -> str | None:
        self._write_each(records)
        return None

    def _poll(self) -> Records:
        # The Java client commits in a poll what polls before have returned (``ConsumerCoordinator.maybeAutoCommitOffsetsAsync``).
        self._member.processed(self._member.consumed)
        return super()._poll()


class IdempotentSinkLoop(ApplicationLoop):
    """It stores each result together with the offset of its record, and begins where its store is: that harrow keeps for all its instances."""

    delivery = IDEMPOTENT_SINK
    steps = (POLL, PROCESS, STORE)

    def _assigned(self, partitions: list[str]) -> Mapping[str, int]:
        begins: Mapping[str, int] = self._channel.ask(stored=partitions)
        return begins

    def _handle(self, records: Records) -> str | None:
        self._be_slow()
        for partition, offset, value in _flat(records):
            self._step(PROCESS)
            if self._work_s:
                time.sleep(self._work_s)
            self._step(STORE)
            self._channel.ask(store=value, partition=partition, offset=offset)
        return None


class ParallelWorkersLoop(ApplicationLoop):
    """It hands records to workers, who finish in any order, and commits the lowest offset that is not finished."""

    delivery = WATERMARK
    steps = (POLL, PROCESS, FLUSH, COMMIT)

    def __init__(self, channel: Channel, client: dict[str, Any], library: ClientLibrary) -> None:
        self._changed = threading.Condition()
        self._to_do: deque[_Record] = deque()
        # Of each partition, from what a poll has returned on: what is not finished, up to where it was polled, and the highest that is.
        self._unfinished: dict[str, dict[int, None]] = {}
        self._highest: dict[str, int] = {}
        self._busy = 0
        # Whether all has been finished since it looked last what to commit.
        self._all_finished = False
        self._takes_ns: list[int] = client["takes_ns"]
        self._taken = 0
        super().__init__(channel, client, library)
        for _ in range(client["workers"]):
            threading.Thread(target=self._work_on, daemon=True).start()

    def _handle(self, records: Records) -> str | None:
        self._step(PROCESS)
        self._be_slow()
        with self._changed:
            for record in _flat(records):
                self._unfinished.setdefault(record[0], {})[record[1]] = None
                self._to_do.append(record)
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._to_do)
            self._all_finished = False
            offsets = self._to_commit()
        self._step(FLUSH)
        if not self._flush():
            with self._changed:
                self._forget(self._unfinished)
            self._rewind()
        elif offsets:
            self._step(COMMIT)
            self._member.commit(offsets)
        return None

    def _to_commit(self) -> dict[str, int]:
        """Return up to where each partition is finished: below the lowest record that is not."""
        consumed = self._member.consumed
        return {name: next(iter(self._unfinished.get(name, ())), offset) for name, offset in consumed.items()}

    def _work_on(self) -> None:
        """Be a worker."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._to_do)
                partition, offset, value = self._to_do.popleft()
                unfinished = self._unfinished.get(partition)
                takes_ns = self._takes_ns[self._taken % len(self._takes_ns)]
                self._taken += 1
                self._busy += 1
                self._changed.notify_all()
            _be_busy(takes_ns)
            self._write(value)
            with self._changed:
                self._busy -= 1
                if unfinished is not None and unfinished is self._unfinished.get(partition):
                    unfinished.pop(offset, None)
                    self._highest[partition] = max(offset, self._highest.get(partition, offset))
                self._all_finished = self._all_finished or not (self._busy or self._to_do)

    def _write(self, value: str) -> None:
        with self._changed:
            super()._write(value)

    def _is_idle(self) -> bool:
        with self._changed:
            return not self._busy and not self._to_do

    def _returns_nothing(self) -> bool:
        # A poll has a timeout, so that what has been finished meanwhile is committed although nothing more comes.
        with self._changed:
            return self._all_finished

    def _forget(self, partitions: Iterable[str]) -> None:
        for name in tuple(partitions):
            self._unfinished.pop(name, None)
            self._highest.pop(name, None)

    def _revoked(self, partitions: list[str]) -> None:
        """Leave to who gets the partitions what is not finished. All has been handed out while it polls: that workers finish."""
        with self._changed:
            self._forget(partitions)


class HighestFinishedLoop(ParallelWorkersLoop):
    """The same, but for what it commits: the highest offset that is finished, and with it all below that is not."""

    delivery = HIGHEST_FINISHED

    def _to_commit(self) -> dict[str, int]:
        return {name: offset + 1 for name, offset in self._highest.items()}


APPLICATIONS: Final[Mapping[str, type[ApplicationLoop]]] = {
    kind.delivery: kind
    for kind in (
        *(ExactlyOnceLoop, AtLeastOnceLoop, AtMostOnceLoop, AutoCommittedLoop, IdempotentSinkLoop),
        *(ParallelWorkersLoop, HighestFinishedLoop),
    )
}
"""The loops by what a campaign calls them."""


def make_application(channel: Channel, client: dict[str, Any], library: ClientLibrary) -> ApplicationLoop:
    """Return the application that a process was told to be."""
    return APPLICATIONS[client["delivery"]](channel, client, library)


def _be_busy(takes_ns: int) -> None:
    """Work on a record, as a worker."""
    time.sleep(takes_ns / 1e9)


def _flat(records: Records) -> Iterator[_Record]:
    for partition, pairs in records.items():
        for offset, value in pairs:
            yield partition, offset, value

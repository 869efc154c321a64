"""A consumer that is a member of a group, or commits for one, and the application that polls it (``KafkaConsumer.java``).

The application has one thread: it polls, processes what it was given, commits if it does that itself, and polls again. A
poll waits until there is something. What the group wants of a member is done within polls; only heartbeats go on beside them.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.clients import programs
from harrow.cluster_model.clients.consumer import EARLIEST, LATEST, NO_POSITION, Consumer
from harrow.cluster_model.clients.consumer_coordinator import ConsumerCoordinator
from harrow.cluster_model.clients.consumer_membership import ConsumerMembership
from harrow.cluster_model.clients.group_member import GroupMember, GroupMetadata, OnCommitted
from harrow.cluster_model.coordinators.protocol import NO_OFFSET_COMMITTED
from harrow.cluster_model.events import (
    GroupOffsetFound,
    PartitionsAssigned,
    PartitionsRevoked,
    RecordsProcessed,
)
from harrow.cluster_model.history import FAIL, INFO, INVOKE, OK, History
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.settings import CONSUMER_PROTOCOL, ConsumerConfig
from harrow.cluster_model.sim.host import Host

_POLLING: Final = "polling"
_PROCESSING: Final = "processing"
_ENDED: Final = "ended"

_MAY_COUNT: Final = frozenset({errors.NETWORK_EXCEPTION, errors.REQUEST_TIMED_OUT})
"""Errors of commits that leave open whether they have been stored."""

Records = dict[str, list[tuple[int, str]]]
Callback = Callable[[Sequence[str]], None]


class GroupConsumer(Consumer):
    """A consumer with a ``group.id``: it subscribes to *topics*, or has *partitions* of its own and only commits.

    ``consumed`` is up to where the application has polled the partitions that are read now. *on_assigned* and *on_revoked* are
    called when that changes (``ConsumerRebalanceListener``), *on_failed* when it can be no member any more. A driver of another program
    gets what a poll returns by *on_records*, and calls `poll_again`.
    """

    def __init__(
        self,
        host: Host,
        process: int,
        brokers: tuple[int, ...],
        config: ConsumerConfig,
        behaviours: Behaviours,
        history: History,
        poll_interval_us: int,
        *,
        topics: Sequence[str],
        topic_partitions: Sequence[str],
        partitions: tuple[str, ...] = (),
        commit: str = programs.AUTO,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_records: Callable[[Records], None] | None = None,
        on_failed: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(
            host,
            process,
            brokers,
            (),
            config,
            history,
            poll_interval_us,
            sends_leader_epoch=behaviours.replication.fetch_leader_epoch_fencing,
        )
        self._assigns_itself = partitions
        self._topic_partitions = topic_partitions
        self._on_assigned = on_assigned
        self._on_revoked = on_revoked
        self._program = programs.read_for_group(commit)
        self._on_records = self._advance if on_records is None else on_records
        self._on_failed = on_failed
        # The driver of another program says when it polls.
        self._doing = _POLLING if on_records is None else _PROCESSING
        self._poll_began_us = self._poll_ended_us = host.clock.now_us
        self.consumed_to: dict[str, int] = {}
        self.coordinator: GroupMember
        if config.group_protocol == CONSUMER_PROTOCOL:
            self.coordinator = ConsumerMembership(
                host,
                self._metadata,
                config,
                self,
                topics,
                subscribes=not partitions,
                auto_commits=commit == programs.AUTO and config.auto_commit,
                requires_stable=behaviours.groups.stable_offset_fetch,
                has_listener=on_assigned is not None or on_revoked is not None,
            )
        else:
            self.coordinator = ConsumerCoordinator(
                host,
                self._metadata,
                config,
                self,
                topics,
                subscribes=not partitions,
                auto_commits=commit == programs.AUTO and config.auto_commit,
                requires_stable=behaviours.groups.stable_offset_fetch,
            )

    def start(self) -> None:
        """Subscribe, or assign, and begin to poll."""
        if self._doing == _POLLING:
            self._advance(None)
        else:
            self._begin()

    def _begin(self) -> None:
        now_us = self._host.clock.now_us
        if self._assigns_itself:
            self.partitions_assigned(self._assigns_itself)
            self.coordinator.ask_for_offsets(self._assigns_itself)
        else:
            self._history.subscribed(self._process, self._topic_partitions, now_us)
        super().start()

    # What an application can ask

    def group_metadata(self) -> GroupMetadata:
        """Return who this is in its group, for a producer that commits its offsets in a transaction (KIP-447)."""
        return self.coordinator.group_metadata

    def commit(self, offsets: Mapping[str, int], on_done: OnCommitted) -> None:
        """Commit, and wait for what comes of it (``commitSync``)."""
        self.coordinator.commit_sync(offsets, on_done)

    def slow_down(self, by_us: int) -> None:
        """Have the application take so much longer from now on for what a poll returns."""
        self._poll_interval_us += by_us

    def close(self, on_closed: Callable[[], None]) -> None:
        """Stop polling; commit and leave the group as the settings say (``close``)."""
        if self._doing == _ENDED:
            on_closed()
            return
        self._doing = _ENDED
        self.coordinator.close(on_closed)

    # The loop of the application

    def is_polling(self) -> bool:
        return self._doing == _POLLING

    def polled_us(self) -> int:
        return self._poll_began_us

    def poll_ended_us(self) -> int:
        return self._poll_ended_us

    def consumed(self) -> Mapping[str, int]:
        return self.consumed_to

    def poll_again(self) -> None:
        """Begin a poll."""
        if self._doing != _ENDED:
            self._doing = _POLLING
            self._poll_began_us = self._host.clock.now_us
            self.coordinator.poll()
            self._schedule_poll()

    def _metadata_updated(self) -> None:
        self._changed.update(dict.fromkeys(self.position))
        self.coordinator.metadata_updated()
        if self._doing == _POLLING:
            self.coordinator.poll()
        self._fetch()

    def _schedule_poll(self) -> None:
        """Have the poll that waits return, if there is something now."""
        if self._doing == _POLLING and self._buffer and not self.coordinator.blocks_poll:
            self._return_records()

    def poll_goes_on(self) -> None:
        self._schedule_poll()

    def _return_records(self) -> None:
        now_us = self._poll_ended_us = self._host.clock.now_us
        records: Records = {}
        for _ in range(min(len(self._buffer), self._config.max_poll_records)):
            partition, offset, value = self._buffer.popleft()
            records.setdefault(partition, []).append((offset, value))
        self._history.polled(self._process, records, self._poll_began_us, now_us)
        for partition, pairs in records.items():
            self.consumed_to[partition] = pairs[-1][0] + 1
        self._doing = _PROCESSING
        self._on_records(records)

    # The driver of its program

    def _advance(self, answer: Any) -> None:
        """Take the steps of the program, up to one whose answer comes later."""
        while self._doing != _ENDED:
            step = self._program.send(answer)
            answer = errors.NONE
            if isinstance(step, programs.PollRecords):
                if self._doing != _POLLING:
                    self.poll_again()
                return
            if isinstance(step, programs.ProcessRecords):
                self._host.set_timer(self._poll_interval_us, self._processed, step.records)
                return
            if isinstance(step, programs.CommitOffsets):
                if self.consumed_to:
                    self.commit(self.consumed_to, self._advance)
                    return
            else:
                # The end of the program is never asked for: `close` does not wait for the poll to return.
                assert isinstance(step, programs.SubscribeToSource), step
                self._begin()

    def _processed(self, records: Records) -> None:
        for partition, pairs in records.items():
            values = tuple(value for _, value in pairs)
            end = pairs[-1][0] + 1
            self._host.emit(RecordsProcessed, self._host.name, self._config.group, partition, end, values)
        self._advance(None)

    # Where another program reads

    def return_nothing(self) -> None:
        """Have the poll that waits return without records, as one does whose timeout is over."""
        if self._doing == _POLLING:
            self._doing = _PROCESSING
            self._poll_ended_us = self._host.clock.now_us
            self._on_records({})

    def seek(self, partition: str, offset: int) -> None:
        """Read a partition from an offset on, wherever its group has committed (``seek``)."""
        self.coordinator.position_known(partition)
        self.position[partition] = self.consumed_to[partition] = offset
        self._changed[partition] = None
        self._fetch()

    def rewind(self) -> None:
        """Go back to what the group has committed, in all partitions (``committed``, ``seek``).

        In the history they are given up for a moment, for where they are read next has nothing to do with where they were.
        """
        owned = tuple(self.coordinator.owned)
        for name in owned:
            self._drop(name)
        now_us = self._host.clock.now_us
        self._history.assigned(self._process, (), now_us)
        self._history.assigned(self._process, owned, now_us)
        self.coordinator.ask_for_offsets(owned)
        self._fetch()

    def has_ended(self) -> bool:
        """Return whether it has been closed, or can be no member any more."""
        return self._doing == _ENDED

    # What the group says

    def partitions_assigned(self, partitions: Sequence[str]) -> None:
        names = tuple(partitions)
        generation = self.coordinator.generation
        group = self._config.group
        self._host.emit(PartitionsAssigned, self._host.name, group, generation, names)
        reads = tuple(self.coordinator.owned) or (() if not self._assigns_itself else names)
        self._history.assigned(self._process, reads, self._host.clock.now_us)
        if self._on_assigned is not None:
            self._on_assigned(names)

    def partitions_revoked(self, partitions: Sequence[str], *, lost: bool) -> None:
        names = tuple(partitions)
        coordinator = self.coordinator
        self._host.emit(
            PartitionsRevoked, self._host.name, self._config.group, coordinator.generation, names, lost
        )
        if self._on_revoked is not None:
            self._on_revoked(names)
        for name in names:
            self._drop(name)
        self._history.assigned(self._process, tuple(coordinator.owned), self._host.clock.now_us)
        self._fetch()

    def partitions_paused(self, partitions: Sequence[str]) -> None:
        for name in partitions:
            self._stop_reading(name)
        # A fetch that repeats itself would go on asking for them.
        self._fetch()

    def _drop(self, partition: str) -> None:
        """Forget where a partition was read, and what was fetched of it."""
        self.consumed_to.pop(partition, None)
        self._stop_reading(partition)

    def _stop_reading(self, partition: str) -> None:
        """Fetch a partition no more, and return nothing of what was fetched."""
        for known in (self.position, self.end_seen, self._hole_end, self._delayed_until_us):
            known.pop(partition, None)
        self._at_beginning.pop(partition, None)
        self._resetting.pop(partition, None)
        self._corrupt.pop(partition, None)
        self._changed.pop(partition, None)
        broker = self._fetched_from.pop(partition, None)
        if broker is not None:
            self._sessions[broker].remove(partition)
        self._buffer = deque(each for each in self._buffer if each[0] != partition)

    def begin_at(self, partition: str, offset: int) -> None:
        self._host.emit(GroupOffsetFound, self._host.name, partition, offset)
        policy = self._config.auto_offset_reset
        if offset != NO_OFFSET_COMMITTED:
            self.position[partition] = self.consumed_to[partition] = offset
        elif policy == EARLIEST:
            self.position[partition] = self.consumed_to[partition] = 0
            self._at_beginning[partition] = None
        elif policy == LATEST:
            self.position[partition] = NO_POSITION
        else:
            # The application gets a NoOffsetForPartitionException, and reads the others.
            return
        self._changed[partition] = None
        self._fetch()

    def _reset(self, response: protocol.ListOffsetsResponse | None, partition: str) -> None:
        super()._reset(response, partition)
        position = self.position.get(partition, NO_POSITION)
        if partition not in self.consumed_to and position != NO_POSITION:
            self.consumed_to[partition] = position

    def _delay(self, partitions: Iterable[str]) -> None:
        super()._delay([name for name in partitions if name in self.position])

    def committing(self, offsets: Mapping[str, int]) -> None:
        self._history.committed(self._process, offsets.items(), self._host.clock.now_us, INVOKE)

    def commit_ended(self, offsets: Mapping[str, int], error: str) -> None:
        type_ = OK if error == errors.NONE else INFO if error in _MAY_COUNT else FAIL
        said = None if error == errors.NONE else error
        self._history.committed(self._process, offsets.items(), self._host.clock.now_us, type_, said)

    def group_failed(self, error: str) -> None:
        """The application gets an exception, and ends."""
        self._doing = _ENDED
        if self._on_failed is not None:
            self._on_failed()

"""Implements a consumer in a group, together with its application (``KafkaConsumer.java``).

The application has one thread: it polls, processes the records, commits unless the consumer does so
automatically, and polls again. A poll waits until there are records. The consumer does its work for
the group during polls. Only heartbeats continue between polls.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.clients import programs
from harrow.cluster_model.clients.consumer import EARLIEST, LATEST, NO_POSITION, Consumer
from harrow.cluster_model.clients.consumer_coordinator import ConsumerCoordinator
from harrow.cluster_model.clients.consumer_membership import ConsumerMembership
from harrow.cluster_model.clients.group_member import CommitCallback, GroupMember, GroupMetadata
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

_UNCERTAIN: Final = frozenset({errors.NETWORK_EXCEPTION, errors.REQUEST_TIMED_OUT})
"""Commit errors that leave open whether the offsets were stored."""

Records = dict[str, list[tuple[int, str]]]
Callback = Callable[[Sequence[str]], None]


class GroupConsumer(Consumer):
    """A consumer with a ``group.id``.

    It subscribes to *topics*, or reads fixed *partitions* and only commits their offsets for the
    group. ``consumed_to`` has the offset up to which the application has polled each partition that
    it reads. *on_assigned* and *on_revoked* are called when these partitions change
    (``ConsumerRebalanceListener``), and *on_failed* when the consumer can no longer be a member.

    By default the consumer runs the program `harrow.cluster_model.clients.programs.read_for_group`.
    With *on_records* the driver of another program decides when to poll: it calls `poll_again`, and
    gets the records of each poll through *on_records*.
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
        self._manual_assignment = partitions
        self._topic_partitions = topic_partitions
        self._on_assigned = on_assigned
        self._on_revoked = on_revoked
        self._program = programs.read_for_group(commit)
        self._on_records = self._advance if on_records is None else on_records
        self._on_failed = on_failed
        # With `on_records` the first poll begins when the driver asks for it.
        self._phase = _POLLING if on_records is None else _PROCESSING
        self._poll_start_us = self._poll_end_us = host.clock.now_us
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
        """Subscribe or assign, and begin to poll."""
        if self._phase == _POLLING:
            self._advance(None)
        else:
            self._begin()

    def _begin(self) -> None:
        now_us = self._host.clock.now_us
        if self._manual_assignment:
            self.on_partitions_assigned(self._manual_assignment)
            self.coordinator.request_offsets(self._manual_assignment)
        else:
            self._history.record_subscription(self._process, self._topic_partitions, now_us)
        super().start()

    # For the application

    def group_metadata(self) -> GroupMetadata:
        """Return the consumer's identity, for a transaction that commits its offsets (KIP-447)."""
        return self.coordinator.group_metadata

    def commit(self, offsets: Mapping[str, int], on_done: CommitCallback) -> None:
        """Commit offsets, and call *on_done* with the outcome (``commitSync``)."""
        self.coordinator.commit_sync(offsets, on_done)

    def slow_down(self, by_us: int) -> None:
        """Make the application take *by_us* longer for the records of each poll."""
        self._poll_interval_us += by_us

    def close(self, on_closed: Callable[[], None]) -> None:
        """Stop polling, then commit and leave the group if configured to do so (``close``)."""
        if self._phase == _ENDED:
            on_closed()
            return
        self._phase = _ENDED
        self.coordinator.close(on_closed)

    # The loop of the application

    def is_polling(self) -> bool:
        return self._phase == _POLLING

    def poll_start_us(self) -> int:
        return self._poll_start_us

    def poll_end_us(self) -> int:
        return self._poll_end_us

    def consumed_offsets(self) -> Mapping[str, int]:
        return self.consumed_to

    def poll_again(self) -> None:
        """Begin a poll."""
        if self._phase != _ENDED:
            self._phase = _POLLING
            self._poll_start_us = self._host.clock.now_us
            self.coordinator.poll()
            self._schedule_poll()

    def _metadata_updated(self) -> None:
        self._changed_partitions.update(dict.fromkeys(self.position))
        self.coordinator.metadata_updated()
        if self._phase == _POLLING:
            self.coordinator.poll()
        self._fetch()

    def _schedule_poll(self) -> None:
        """Return from a waiting poll if there are records."""
        if self._phase == _POLLING and self._buffer and not self.coordinator.blocks_poll:
            self._return_records()

    def resume_poll(self) -> None:
        self._schedule_poll()

    def _return_records(self) -> None:
        now_us = self._poll_end_us = self._host.clock.now_us
        records = self._take_poll_records()
        self._history.record_poll(self._process, records, self._poll_start_us, now_us)
        for partition, pairs in records.items():
            self.consumed_to[partition] = pairs[-1][0] + 1
        self._phase = _PROCESSING
        self._on_records(records)

    # The driver of the program

    def _advance(self, answer: Any) -> None:
        """Pass *answer* to the program, and run it up to a step whose answer comes later."""
        while self._phase != _ENDED:
            step = self._program.send(answer)
            answer = errors.NONE
            if isinstance(step, programs.PollRecords):
                if self._phase != _POLLING:
                    self.poll_again()
                return
            if isinstance(step, programs.ProcessRecords):
                self._host.set_timer(self._poll_interval_us, self._finish_records, step.records)
                return
            if isinstance(step, programs.CommitOffsets):
                if self.consumed_to:
                    self.commit(self.consumed_to, self._advance)
                    return
            else:
                # The program never ends, because `close` does not wait for the poll to return.
                assert isinstance(step, programs.SubscribeToSource), step
                self._begin()

    def _finish_records(self, records: Records) -> None:
        for partition, pairs in records.items():
            values = tuple(value for _, value in pairs)
            end = pairs[-1][0] + 1
            self._host.emit(RecordsProcessed, self._host.name, self._config.group, partition, end, values)
        self._advance(None)

    # For the driver of another program

    def return_nothing(self) -> None:
        """Return from a waiting poll without records, as after its timeout."""
        if self._phase == _POLLING:
            self._phase = _PROCESSING
            self._poll_end_us = self._host.clock.now_us
            self._on_records({})

    def seek(self, partition: str, offset: int) -> None:
        """Read a partition from *offset*, not from the group's committed offset (``seek``)."""
        self.coordinator.skip_offset_fetch(partition)
        self.position[partition] = self.consumed_to[partition] = offset
        self._changed_partitions[partition] = None
        self._fetch()

    def rewind(self) -> None:
        """Continue from the committed offsets in all partitions (``committed``, ``seek``).

        The history shows the partitions as unassigned for a moment, because the new positions do
        not depend on the old ones.
        """
        owned = tuple(self.coordinator.owned)
        for name in owned:
            self._drop(name)
        now_us = self._host.clock.now_us
        self._history.record_assignment(self._process, (), now_us)
        self._history.record_assignment(self._process, owned, now_us)
        self.coordinator.request_offsets(owned)
        self._fetch()

    def has_ended(self) -> bool:
        """Return whether the consumer was closed or can no longer be in its group."""
        return self._phase == _ENDED

    # Callbacks of the membership (`GroupListener`)

    def on_partitions_assigned(self, partitions: Sequence[str]) -> None:
        names = tuple(partitions)
        generation = self.coordinator.generation
        group = self._config.group
        self._host.emit(PartitionsAssigned, self._host.name, group, generation, names)
        assignment = tuple(self.coordinator.owned) or (() if not self._manual_assignment else names)
        self._history.record_assignment(self._process, assignment, self._host.clock.now_us)
        if self._on_assigned is not None:
            self._on_assigned(names)

    def on_partitions_revoked(self, partitions: Sequence[str], *, lost: bool) -> None:
        names = tuple(partitions)
        coordinator = self.coordinator
        self._host.emit(
            PartitionsRevoked, self._host.name, self._config.group, coordinator.generation, names, lost
        )
        if self._on_revoked is not None:
            self._on_revoked(names)
        for name in names:
            self._drop(name)
        self._history.record_assignment(self._process, tuple(coordinator.owned), self._host.clock.now_us)
        self._fetch()

    def on_partitions_paused(self, partitions: Sequence[str]) -> None:
        for name in partitions:
            self._stop_reading(name)
        # A fetch that repeats itself would keep requesting these partitions.
        self._fetch()

    def _drop(self, partition: str) -> None:
        """Stop reading a partition, and forget up to where it was polled."""
        self.consumed_to.pop(partition, None)
        self._stop_reading(partition)

    def _stop_reading(self, partition: str) -> None:
        """Stop fetching a partition, and discard its fetched records."""
        for offsets in (self.position, self.high_watermarks, self._hole_end):
            offsets.pop(partition, None)
        self._delayed_until_us.pop(partition, None)
        self._at_beginning.pop(partition, None)
        self._resetting.pop(partition, None)
        self._corrupt.pop(partition, None)
        self._changed_partitions.pop(partition, None)
        broker = self._fetched_from.pop(partition, None)
        if broker is not None:
            self._sessions[broker].remove(partition)
        self._buffer = [record for record in self._buffer if record[0] != partition]

    def set_committed_offset(self, partition: str, offset: int) -> None:
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
            # The application gets a NoOffsetForPartitionException, and reads the other partitions.
            return
        self._changed_partitions[partition] = None
        self._fetch()

    def _handle_offset_response(self, response: protocol.ListOffsetsResponse | None, partition: str) -> None:
        super()._handle_offset_response(response, partition)
        position = self.position.get(partition, NO_POSITION)
        if partition not in self.consumed_to and position != NO_POSITION:
            self.consumed_to[partition] = position

    def _delay(self, partitions: Iterable[str]) -> None:
        super()._delay([name for name in partitions if name in self.position])

    def on_commit_started(self, offsets: Mapping[str, int]) -> None:
        self._history.record_commit(self._process, offsets.items(), self._host.clock.now_us, INVOKE)

    def on_commit_ended(self, offsets: Mapping[str, int], error: str) -> None:
        type_ = OK if error == errors.NONE else INFO if error in _UNCERTAIN else FAIL
        failure = None if error == errors.NONE else error
        self._history.record_commit(self._process, offsets.items(), self._host.clock.now_us, type_, failure)

    def on_group_failed(self, error: str) -> None:
        """End the application, because its poll throws an exception."""
        self._phase = _ENDED
        if self._on_failed is not None:
            self._on_failed()

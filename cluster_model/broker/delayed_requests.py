"""Requests in the purgatory: fetches that wait for data, produces and deletions that wait for replicas.

After ``DelayedFetch.scala``, ``DelayedProduce.scala`` and ``DelayedDeleteRecords.scala``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from harrow.cluster_model import errors
from harrow.cluster_model.broker.fetch_session import FetchSession
from harrow.cluster_model.broker.partition import Partition
from harrow.cluster_model.protocol import LOG_END, NO_EPOCH, FetchRequest, FetchResponse
from harrow.cluster_model.sim.connection import Exchange
from harrow.cluster_model.sim.host import Host


class DelayedFetch:
    """A fetch that found nothing to read; ``complete`` reads again and answers. ``watch`` has it expire.

    Of a partition that ``is_withheld`` from its follower there is nothing to read, however much there is.
    """

    __slots__ = (
        *("complete", "completed", "deadline_us", "exchange", "is_withheld"),
        *("partitions", "redirected", "session", "since_us", "watch"),
    )

    def __init__(
        self,
        exchange: Exchange[FetchRequest],
        since_us: int,
        session: FetchSession,
        partitions: Mapping[str, Partition],
        complete: Callable[["DelayedFetch", bool], None],
        watch: Callable[["DelayedFetch"], None],
        is_withheld: Callable[[str, int], bool] | None = None,
    ) -> None:
        request = exchange.request
        self.exchange = exchange
        self.since_us = since_us
        self.deadline_us = since_us + request.max_wait_us
        self.session = session
        self.partitions = partitions
        self.complete = complete
        self.watch = watch
        self.is_withheld = is_withheld
        self.completed = False
        # The partitions that a consumer is to read from another replica: whatever happens to them, it is told when its time is over.
        self.redirected: tuple[str, ...] = ()

    @property
    def age(self) -> tuple[int, int]:
        """Since when it waits; of those of one moment connections decide."""
        return self.since_us, self.exchange.connection.id

    def try_complete(self, name: str) -> bool:
        """Answer if there is something to read of a partition, or it is no longer served here."""
        request = self.exchange.request
        isolation = LOG_END if request.replica_id >= 0 else request.isolation_level
        partition, cached = self.partitions[name], self.session.partitions[name]
        if (
            (
                partition.readable_end(isolation) > cached.offset
                and not (partition.log.compacts and partition.is_hole(cached.offset, isolation))
                and not (self.is_withheld is not None and self.is_withheld(name, request.replica_id))
            )
            or partition.check_fetch(cached.leader_epoch, request) != errors.NONE
            or (cached.last_epoch != NO_EPOCH and partition.is_at_odds(cached.offset, cached.last_epoch))
            or (partition.answers_by_hw and partition.owes_high_watermark(request.replica_id))
        ) and name not in self.redirected:
            self._complete(expired=False)
            return True
        return False

    def expire(self) -> None:
        """Answer with whatever there is."""
        self._complete(expired=True)

    def _complete(self, *, expired: bool) -> None:
        self.completed = True
        self.session.delayed = None
        self.complete(self, expired)

    # As one that repeats itself (`harrow.cluster_model.sim.idle_fetch`)

    def is_repeatable(self) -> bool:
        """Return whether it would be answered with nothing, and has asked for nothing in particular."""
        session, request = self.session, self.exchange.request
        return session.is_kept and not session.news and not request.partitions and not request.forgotten

    def repeated(self, cycles: int, since_us: int) -> None:
        """Be the fetch that waits since *since_us*, after so many cycles."""
        self.session.repeated(cycles, since_us)
        if cycles:
            exchange = self.exchange
            following = replace(exchange.request, session_epoch=exchange.request.session_epoch + cycles)
            self.exchange = Exchange(exchange.connection, exchange.correlation_id + cycles, following)
            self.deadline_us += since_us - self.since_us
            self.since_us = since_us

    def wait(self) -> None:
        """Wait for the deadline like any fetch."""
        self.watch(self)

    def answered(self) -> FetchResponse:
        """Be a fetch that has been answered with nothing."""
        self.completed = True
        self.session.delayed = None
        self.exchange.connection.muted = False
        return FetchResponse({}, errors.NONE, self.session.id)

    def repetition(self) -> FetchRequest:
        """Return the request that follows an empty answer."""
        request = self.exchange.request
        return replace(request, session_epoch=request.session_epoch + 1)


class PendingAck:
    """A partition of a produce: what is answered, and the offset that has to be committed first."""

    __slots__ = ("base_offset", "error", "pending", "required_offset")

    def __init__(self, error: str, base_offset: int, required_offset: int) -> None:
        self.error = error
        self.base_offset = base_offset
        self.required_offset = required_offset
        self.pending = error == errors.NONE


@dataclass(slots=True, eq=False)
class DelayedProduce:
    """An acks=all append that waits for the high watermark: a producer's, or that of a coordinator on this broker.

    ``complete`` is given the *context*, which is whatever it has to know of who waits.
    """

    context: Any
    deadline_us: int
    acks: dict[str, PendingAck]
    partitions: Mapping[str, Partition]
    complete: Callable[[Any, dict[str, PendingAck]], None]
    completed: bool = False

    def try_complete(self) -> bool:
        """Answer if nothing is pending any more."""
        done = True
        for name, ack in self.acks.items():
            if ack.pending:
                committed, error = self.partitions[name].is_committed(ack.required_offset)
                if committed:
                    ack.pending = False
                    ack.error = error
                else:
                    done = False
        if done:
            self.completed = True
            self.complete(self.context, self.acks)
        return done

    def expire(self) -> None:
        """Answer REQUEST_TIMED_OUT for what is still pending."""
        for ack in self.acks.values():
            if ack.pending:
                ack.error = errors.REQUEST_TIMED_OUT
        self.completed = True
        self.complete(self.context, self.acks)


@dataclass(slots=True, eq=False)
class DelayedDeleteRecords:
    """A DeleteRecords that waits until all live replicas begin their logs where it says (``DelayedDeleteRecords.scala``).

    ``low_watermark`` returns below which offset none has anything, or why this broker cannot know; ``respond`` is given the
    error and that offset.
    """

    deadline_us: int
    required_offset: int
    low_watermark: Callable[[], tuple[str, int]]
    respond: Callable[[str, int], None]
    completed: bool = False

    def try_complete(self) -> bool:
        """Answer if nothing is waited for any more."""
        error, low_watermark = self.low_watermark()
        if error == errors.NONE and low_watermark < self.required_offset:
            return False
        self.completed = True
        self.respond(error, low_watermark)
        return True

    def expire(self) -> None:
        """Answer that it took too long; what the leader has deleted stays deleted."""
        self.completed = True
        self.respond(errors.REQUEST_TIMED_OUT, self.low_watermark()[1])


class TimedOperation(Protocol):
    """An operation with a deadline."""

    deadline_us: int
    completed: bool

    def expire(self) -> None:
        """Complete it by force."""


class OperationTimer:
    """The deadline of the one operation that a connection can have in the purgatory.

    It is set again only when it fires, so an operation that completes in time costs no
    event of its own.
    """

    __slots__ = ("_armed", "_host", "_operation")

    def __init__(self, host: Host) -> None:
        self._host = host
        self._armed = False
        self._operation: TimedOperation | None = None

    def watch(self, operation: TimedOperation) -> None:
        """Expire *operation* at its deadline if it has not completed by then."""
        self._operation = operation
        if not self._armed:
            self._armed = True
            self._host.set_timer(operation.deadline_us - self._host.clock.now_us, self._fire)

    def stop(self) -> None:
        """Let the operation wait for ever."""
        self._operation = None

    def _fire(self, _: None) -> None:
        self._armed = False
        operation = self._operation
        if operation is None or operation.completed:
            return
        if operation.deadline_us <= self._host.clock.now_us:
            operation.expire()
        elif not self._armed:
            self.watch(operation)

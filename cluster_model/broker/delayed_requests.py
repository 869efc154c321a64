"""Defines the requests in the purgatory: fetches that wait for data, others that wait for replicas.

Modelled on ``DelayedFetch.scala``, ``DelayedProduce.scala`` and ``DelayedDeleteRecords.scala``.
"""

from collections.abc import Callable
from typing import Any, final

from harrow.cluster_model import errors
from harrow.cluster_model.broker.fetch_session import (
    CachedPartition,
    FetchSession,
    HostedPartition,
    WaitingFetch,
)
from harrow.cluster_model.broker.partition import Partition
from harrow.cluster_model.broker.purgatory import DelayedOperation, TimedOperation
from harrow.cluster_model.compiling import mypyc_attr
from harrow.cluster_model.protocol import LOG_END, NO_EPOCH, FetchRequest, FetchResponse
from harrow.cluster_model.sim.connection import Exchange
from harrow.cluster_model.sim.host import Host


@final
@mypyc_attr(free_list_len=1)
class DelayedFetch(WaitingFetch):
    """A fetch that has found nothing to read, and waits.

    ``complete`` reads again and answers. ``watch`` sets the timer for the deadline. ``is_withheld``
    says whether the throttle of a partition keeps its records from a follower for now; then the
    partition counts as empty.
    """

    __slots__ = ("complete", "exchange", "is_withheld", "redirected", "watch")

    def __init__(
        self,
        exchange: Exchange[FetchRequest],
        since_us: int,
        session: FetchSession,
        complete: Callable[["DelayedFetch", bool], None],
        watch: Callable[["DelayedFetch"], None],
        is_withheld: Callable[[Partition, int], bool] | None = None,
    ) -> None:
        self.exchange = exchange
        self.connection_id = exchange.connection.id
        self.since_us = since_us
        self.deadline_us = since_us + exchange.request.max_wait_us
        self.session = session
        self.complete = complete
        self.watch = watch
        self.is_withheld = is_withheld
        self.completed = False
        # The partitions that the consumer should read from another replica. The consumer learns
        # about them only at the deadline, even if the partitions change earlier.
        self.redirected: tuple[CachedPartition, ...] = ()

    def try_complete(self, cached: CachedPartition) -> bool:
        """Answer if a partition has something to read, or this broker no longer serves it."""
        if cached not in self.redirected and self._has_answer(cached, cached.hosted.partition):
            self._complete(expired=False)
            return True
        return False

    def _has_answer(self, cached: CachedPartition, partition: Partition | None) -> bool:
        request = self.exchange.request
        isolation = LOG_END if request.replica_id >= 0 else request.isolation_level
        return (
            partition is None
            or (
                partition.readable_end(isolation) > cached.offset
                and not (partition.log.compacts and partition.is_hole(cached.offset, isolation))
                and not (self.is_withheld is not None and self.is_withheld(partition, request.replica_id))
            )
            or partition.check_fetch(cached.leader_epoch, request) != errors.NONE
            or (cached.last_epoch != NO_EPOCH and partition.has_diverged(cached.offset, cached.last_epoch))
            or (partition.hw_completes_fetches and partition.has_unsent_high_watermark(request.replica_id))
        )

    def expire(self) -> None:
        """Answer with the records that can be read now."""
        self._complete(expired=True)

    def _complete(self, *, expired: bool) -> None:
        self.completed = True
        self.session.delayed = None
        self.complete(self, expired)

    # Idle fetches, which repeat themselves (`harrow.cluster_model.sim.idle_fetch`)

    def is_repeatable(self) -> bool:
        """Return whether the client would repeat this request after an empty answer."""
        session, request = self.session, self.exchange.request
        return session.is_cached and not session.news and not request.partitions and not request.forgotten

    def advance(self, cycles: int, since_us: int) -> None:
        """Become the fetch that follows *cycles* empty answers, and waits since *since_us*."""
        self.session.advance(cycles, since_us)
        if cycles:
            exchange = self.exchange
            self.exchange = Exchange(
                exchange.connection, exchange.correlation_id + cycles, exchange.request.repeated(cycles)
            )
            self.deadline_us += since_us - self.since_us
            self.since_us = since_us

    def wait(self) -> None:
        """Wait for the deadline, as a fetch that does not repeat itself."""
        self.watch(self)

    def take_empty_response(self) -> FetchResponse:
        """Complete the fetch, and return its empty answer."""
        self.completed = True
        self.session.delayed = None
        self.exchange.connection.muted = False
        return FetchResponse({}, errors.NONE, self.session.id)

    def next_request(self) -> FetchRequest:
        """Return the request that the client sends after an empty answer."""
        return self.exchange.request.repeated(1)


@final
@mypyc_attr(free_list_len=1)
class PendingAck:
    """One partition of a produce: its result, and the offset that must be committed first."""

    __slots__ = ("base_offset", "error", "hosted", "pending", "required_offset")

    def __init__(self, hosted: HostedPartition, error: str, base_offset: int, required_offset: int) -> None:
        self.hosted = hosted
        self.error = error
        self.base_offset = base_offset
        self.required_offset = required_offset
        self.pending = error == errors.NONE


@final
@mypyc_attr(free_list_len=1)
class DelayedProduce(DelayedOperation):
    """An append with acks=all that waits for the high watermark.

    It comes from a producer or from a coordinator on this broker. ``complete`` receives the
    *context*, for example the exchange to answer, and the results.
    """

    __slots__ = ("acks", "complete", "context")

    def __init__(
        self,
        context: Any,
        deadline_us: int,
        acks: dict[str, PendingAck],
        complete: Callable[[Any, dict[str, PendingAck]], None],
    ) -> None:
        self.context = context
        self.deadline_us = deadline_us
        self.acks = acks
        self.complete = complete
        self.completed = False

    def try_complete(self) -> bool:
        """Answer if no partition is pending: its records are committed, or there is an error."""
        is_complete = True
        for ack in self.acks.values():
            partition = ack.hosted.partition
            if ack.pending and partition is not None:
                can_answer, error = partition.is_committed(ack.required_offset)
                if can_answer:
                    ack.pending = False
                    ack.error = error
                else:
                    is_complete = False
        if is_complete:
            self._answer()
        return is_complete

    def expire(self) -> None:
        """Answer REQUEST_TIMED_OUT for partitions that are still pending."""
        for ack in self.acks.values():
            if ack.pending:
                ack.error = errors.REQUEST_TIMED_OUT
        self._answer()

    def _answer(self) -> None:
        """Answer, and let go of the request: a timer keeps this operation until its deadline."""
        context, acks = self.context, self.acks
        self.completed, self.context, self.acks = True, None, {}
        self.complete(context, acks)


@final
class DelayedDeleteRecords(DelayedOperation):
    """A DeleteRecords that waits until all live replicas have raised their log start.

    ``low_watermark`` returns an error and the lowest log start; ``respond`` receives both.
    """

    __slots__ = ("low_watermark", "required_offset", "respond")

    def __init__(
        self,
        deadline_us: int,
        required_offset: int,
        low_watermark: Callable[[], tuple[str, int]],
        respond: Callable[[str, int], None],
    ) -> None:
        self.deadline_us = deadline_us
        self.required_offset = required_offset
        self.low_watermark = low_watermark
        self.respond = respond
        self.completed = False

    def try_complete(self) -> bool:
        """Answer if all live replicas have deleted the records, or if there is an error."""
        error, low_watermark = self.low_watermark()
        if error == errors.NONE and low_watermark < self.required_offset:
            return False
        self.completed = True
        self.respond(error, low_watermark)
        return True

    def expire(self) -> None:
        """Answer REQUEST_TIMED_OUT. Records that the leader has deleted stay deleted."""
        self.completed = True
        self.respond(errors.REQUEST_TIMED_OUT, self.low_watermark()[1])


@final
class OperationTimer:
    """The timer for the one operation that a connection can have in the purgatory.

    The timer is set again only after it has fired, so operations that complete in time do not each
    cause an event.
    """

    __slots__ = ("_host", "_is_set", "_operation")

    def __init__(self, host: Host) -> None:
        self._host = host
        self._is_set = False
        self._operation: TimedOperation | None = None

    def watch(self, operation: TimedOperation) -> None:
        """Expire *operation* at its deadline if it has not completed by then."""
        self._operation = operation
        if not self._is_set:
            self._is_set = True
            self._host.set_timer(operation.deadline_us - self._host.clock.now_us, self._fire)

    def stop(self) -> None:
        """Cancel the deadline."""
        self._operation = None

    def _fire(self, _: None) -> None:
        self._is_set = False
        operation = self._operation
        if operation is None or operation.completed:
            return
        if operation.deadline_us <= self._host.clock.now_us:
            operation.expire()
        elif not self._is_set:
            self.watch(operation)

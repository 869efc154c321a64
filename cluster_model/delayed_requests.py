"""Requests in the purgatory: fetches that wait for data, produces that wait for replicas.

After ``DelayedFetch.scala`` and ``DelayedProduce.scala``.
"""

from collections.abc import Callable, Mapping

from cluster_model import errors
from cluster_model.connection import Message
from cluster_model.host import Host
from cluster_model.partition import Partition
from cluster_model.protocol import FetchRequest


class DelayedFetch:
    """A fetch that found nothing to read; ``complete`` reads again and answers."""

    __slots__ = ("_complete", "_partitions", "completed", "deadline_us", "message")

    def __init__(
        self,
        message: Message,
        deadline_us: int,
        partitions: Mapping[str, Partition],
        complete: Callable[[Message, bool], None],
    ) -> None:
        self.message = message
        self.deadline_us = deadline_us
        self.completed = False
        self._partitions = partitions
        self._complete = complete

    def try_complete(self) -> bool:
        """Answer if there is something to read, or a partition is no longer led here."""
        request: FetchRequest = self.message[2]
        is_follower = request.replica_id >= 0
        for name, (offset, epoch) in request.partitions.items():
            partition = self._partitions[name]
            if (
                partition.readable_end(is_follower=is_follower) > offset
                or partition.check_epoch(epoch) != errors.NONE
            ):
                self.completed = True
                self._complete(self.message, False)
                return True
        return False

    def expire(self) -> None:
        """Answer with whatever there is."""
        self.completed = True
        self._complete(self.message, True)


class PendingAck:
    """A partition of a produce: what is answered, and the offset that has to be committed first."""

    __slots__ = ("base_offset", "error", "pending", "required_offset")

    def __init__(self, error: str, base_offset: int, required_offset: int) -> None:
        self.error = error
        self.base_offset = base_offset
        self.required_offset = required_offset
        self.pending = error == errors.NONE


class DelayedProduce:
    """An acks=all produce that waits for the high watermark."""

    __slots__ = ("_complete", "_partitions", "acks", "completed", "deadline_us", "message")

    def __init__(
        self,
        message: Message,
        deadline_us: int,
        acks: dict[str, PendingAck],
        partitions: Mapping[str, Partition],
        complete: Callable[[Message, dict[str, PendingAck]], None],
    ) -> None:
        self.message = message
        self.deadline_us = deadline_us
        self.acks = acks
        self.completed = False
        self._partitions = partitions
        self._complete = complete

    def try_complete(self) -> bool:
        """Answer if nothing is pending any more."""
        done = True
        for name, ack in self.acks.items():
            if ack.pending:
                committed, error = self._partitions[name].is_committed(ack.required_offset)
                if committed:
                    ack.pending = False
                    ack.error = error
                else:
                    done = False
        if done:
            self.completed = True
            self._complete(self.message, self.acks)
        return done

    def expire(self) -> None:
        """Answer REQUEST_TIMED_OUT for what is still pending."""
        for ack in self.acks.values():
            if ack.pending:
                ack.error = errors.REQUEST_TIMED_OUT
        self.completed = True
        self._complete(self.message, self.acks)


class OperationTimer:
    """The deadline of the one operation that a connection can have in the purgatory.

    It is set again only when it fires, so an operation that completes in time costs no
    event of its own.
    """

    __slots__ = ("_armed", "_host", "_operation")

    def __init__(self, host: Host) -> None:
        self._host = host
        self._armed = False
        self._operation: DelayedFetch | DelayedProduce | None = None

    def watch(self, operation: DelayedFetch | DelayedProduce) -> None:
        """Expire *operation* at its deadline if it has not completed by then."""
        self._operation = operation
        if not self._armed:
            self._armed = True
            self._host.set_timer(operation.deadline_us - self._host.clock.now_us, self._fire)

    def _fire(self, _: None) -> None:
        self._armed = False
        operation = self._operation
        if operation is None or operation.completed:
            return
        if operation.deadline_us <= self._host.clock.now_us:
            operation.expire()
        elif not self._armed:
            self.watch(operation)

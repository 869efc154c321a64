"""Defines the state of a transactional id and its transitions (``TransactionMetadata.java``).

A transition is prepared, written to the coordinator's log, and completed when its record is
committed. Until then its state is the pending state, and no other transition can begin.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from harrow.cluster_model import errors
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID
from harrow.cluster_model.protocol import NO_EPOCH

EMPTY: Final = "Empty"
ONGOING: Final = "Ongoing"
PREPARE_COMMIT: Final = "PrepareCommit"
PREPARE_ABORT: Final = "PrepareAbort"
COMPLETE_COMMIT: Final = "CompleteCommit"
COMPLETE_ABORT: Final = "CompleteAbort"
DEAD: Final = "Dead"
PREPARE_EPOCH_FENCE: Final = "PrepareEpochFence"
"""The states of a transactional id (``TransactionState.java``)."""

STATES: Final = (
    *(EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT),
    *(COMPLETE_COMMIT, COMPLETE_ABORT, DEAD, PREPARE_EPOCH_FENCE),
)
PREPARED: Final = (PREPARE_COMMIT, PREPARE_ABORT)
COMPLETE: Final = (COMPLETE_COMMIT, COMPLETE_ABORT)
AT_REST: Final = (EMPTY, *COMPLETE)
"""The states without a transaction. An id that stays in one of them for long expires."""

_VALID_PREVIOUS: Final[Mapping[str, tuple[str, ...]]] = {
    EMPTY: AT_REST,
    ONGOING: (ONGOING, *AT_REST),
    PREPARE_COMMIT: (ONGOING,),
    # With transactions v2 (KIP-890) a producer can abort although it has no open transaction.
    PREPARE_ABORT: (ONGOING, PREPARE_EPOCH_FENCE, *AT_REST),
    COMPLETE_COMMIT: (PREPARE_COMMIT,),
    COMPLETE_ABORT: (PREPARE_ABORT,),
    DEAD: AT_REST,
    PREPARE_EPOCH_FENCE: (ONGOING,),
}

NO_TIME_US: Final = -1
EPOCH_MAX: Final = 2**15 - 1


def is_epoch_exhausted(epoch: int) -> bool:
    """Return whether the next epoch is the last one, which is reserved for fencing."""
    return epoch >= EPOCH_MAX - 1


@dataclass(slots=True, kw_only=True)
class Transition:
    """The next values of a transactional id (``TxnTransitMetadata.java``).

    ``last_producer_epoch`` and ``previous_producer_id`` are the producer's values before the last
    change, by which the coordinator recognizes a repeated request. If the epochs of the current
    producer id are used up, the producer gets ``next_producer_id`` after this transaction. With
    ``is_v2`` each end of a transaction raises the epoch (transactions v2, KIP-890).
    """

    state: str
    producer_id: int
    producer_epoch: int
    timeout_us: int
    partitions: tuple[str, ...] = ()
    start_us: int = NO_TIME_US
    updated_us: int = 0
    last_producer_epoch: int = NO_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    is_v2: bool = False

    def copy(self, state: str) -> "Transition":
        """Return a copy with another state. `dataclasses.replace` would be several times slower."""
        return Transition(
            state=state,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            timeout_us=self.timeout_us,
            partitions=self.partitions,
            start_us=self.start_us,
            updated_us=self.updated_us,
            last_producer_epoch=self.last_producer_epoch,
            previous_producer_id=self.previous_producer_id,
            next_producer_id=self.next_producer_id,
            is_v2=self.is_v2,
        )

    def as_record(self) -> dict[str, Any]:
        """Return the value of this transition's record (``TransactionLogValue.json``).

        The record lacks ``last_producer_epoch``, so a new coordinator takes a repeated request for
        the request of another producer.
        """
        record: dict[str, Any] = {
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
            "timeout_us": self.timeout_us,
            "state": self.state,
            "partitions": list(self.partitions),
            "updated_us": self.updated_us,
            "start_us": self.start_us,
        }
        if self.is_v2:
            record["previous_producer_id"] = self.previous_producer_id
            record["next_producer_id"] = self.next_producer_id
            record["is_v2"] = True
        return record


class TransactionMetadata:
    """The coordinator's state of a transactional id.

    ``has_failed_epoch_fence`` is set if the coordinator could not write the abort of a fenced
    producer, so that the log may lack the raised epoch.
    """

    __slots__ = ("current", "has_failed_epoch_fence", "partitions", "pending_state", "transactional_id")

    def __init__(self, transactional_id: str, current: Transition) -> None:
        self.transactional_id = transactional_id
        self.current = current
        self.partitions: dict[str, None] = dict.fromkeys(current.partitions)
        """The partitions in the transaction. Once it is prepared: those that lack its marker."""
        self.pending_state: str | None = None
        self.has_failed_epoch_fence = False

    @classmethod
    def new(
        cls, transactional_id: str, producer_id: int, timeout_us: int, now_us: int
    ) -> "TransactionMetadata":
        """Return the state of a new transactional id, whose producer has no epoch yet."""
        current = Transition(
            state=EMPTY,
            producer_id=producer_id,
            producer_epoch=NO_EPOCH,
            timeout_us=timeout_us,
            updated_us=now_us,
        )
        return cls(transactional_id, current)

    @classmethod
    def from_record(cls, transactional_id: str, record: Mapping[str, Any]) -> "TransactionMetadata":
        """Return the state of a transactional id from the value of its record."""
        current = Transition(**{**record, "partitions": tuple(record["partitions"])})
        return cls(transactional_id, current)

    @property
    def state(self) -> str:
        return self.current.state

    @property
    def producer_id(self) -> int:
        return self.current.producer_id

    @property
    def producer_epoch(self) -> int:
        return self.current.producer_epoch

    def is_timed_out(self, now_us: int) -> bool:
        """Return whether the transaction has been open for too long."""
        return self.state == ONGOING and self.current.start_us + self.current.timeout_us < now_us

    # Transitions: each method sets the pending state, and returns the transition to write.

    def prepare_fence(self) -> Transition:
        """Fence the producer of an open transaction: raise the epoch before the abort.

        If an earlier attempt has failed, the epoch is not raised again, because no producer has
        learned of the raised epoch.
        """
        epoch = self.producer_epoch
        if not self.has_failed_epoch_fence and epoch < EPOCH_MAX:
            epoch += 1
        transition = self._prepare(PREPARE_EPOCH_FENCE)
        transition.producer_epoch = epoch
        transition.last_producer_epoch = NO_EPOCH
        transition.partitions = tuple(self.partitions)
        return transition

    def prepare_new_epoch(self, timeout_us: int, expected_epoch: int | None, now_us: int) -> Transition | str:
        """Give the producer its next epoch, or return an error.

        A producer that continues after an error sends its epoch, *expected_epoch* (KIP-360). If it
        repeats this request, it gets the same epoch again. Otherwise *expected_epoch* is None.
        """
        epoch, last_epoch = self.producer_epoch + 1, NO_EPOCH
        if expected_epoch is not None:
            if self.producer_epoch in (NO_EPOCH, expected_epoch):
                last_epoch = self.producer_epoch
            elif expected_epoch == self.current.last_producer_epoch:
                epoch, last_epoch = self.producer_epoch, self.current.last_producer_epoch
            else:
                return errors.PRODUCER_FENCED
        return self._prepare_empty(self.producer_id, epoch, last_epoch, timeout_us, now_us)

    def prepare_rotation(
        self, producer_id: int, timeout_us: int, now_us: int, *, keeps_last_epoch: bool
    ) -> Transition:
        """Give the producer another id, because the epochs of the current id are used up."""
        last_epoch = self.producer_epoch if keeps_last_epoch else NO_EPOCH
        return self._prepare_empty(producer_id, 0, last_epoch, timeout_us, now_us)

    def _prepare_empty(
        self, producer_id: int, epoch: int, last_epoch: int, timeout_us: int, now_us: int
    ) -> Transition:
        transition = self._prepare(EMPTY)
        transition.producer_id = producer_id
        transition.previous_producer_id = self.producer_id
        transition.producer_epoch = epoch
        transition.last_producer_epoch = last_epoch
        transition.timeout_us = timeout_us
        transition.partitions = ()
        transition.start_us = NO_TIME_US
        transition.updated_us = now_us
        transition.is_v2 = False
        return transition

    def prepare_add(self, partitions: Sequence[str], now_us: int, *, is_v2: bool) -> Transition:
        """Add partitions to the transaction. The first partitions begin the transaction."""
        transition = self._prepare(ONGOING)
        transition.partitions = tuple(dict.fromkeys((*self.partitions, *partitions)))
        if self.state != ONGOING:
            transition.start_us = now_us
        transition.updated_us = now_us
        transition.is_v2 = is_v2
        return transition

    def prepare_end(self, state: str, next_producer_id: int, now_us: int, *, is_v2: bool) -> Transition:
        """Decide to commit or abort. Transactions v2 raise the epoch, which fences late writes."""
        epoch, last_epoch = self.producer_epoch, self.current.last_producer_epoch
        if is_v2:
            epoch, last_epoch = min(epoch + 1, EPOCH_MAX), epoch
        transition = self._prepare(state)
        transition.producer_epoch = epoch
        transition.last_producer_epoch = last_epoch
        transition.next_producer_id = next_producer_id
        transition.partitions = tuple(self.partitions)
        if self.state != ONGOING:
            transition.start_us = now_us
        transition.updated_us = now_us
        transition.is_v2 = is_v2
        return transition

    def prepare_complete(self, now_us: int) -> Transition:
        """Complete the transaction. The transition is written after all markers."""
        self.has_failed_epoch_fence = False
        current = self.current
        rotates = current.is_v2 and current.next_producer_id != NO_PRODUCER_ID
        transition = self._prepare(COMPLETE_COMMIT if self.state == PREPARE_COMMIT else COMPLETE_ABORT)
        if rotates:
            transition.producer_id = current.next_producer_id
            transition.producer_epoch = 0
        transition.previous_producer_id = current.producer_id
        transition.next_producer_id = NO_PRODUCER_ID
        transition.partitions = ()
        transition.updated_us = now_us
        return transition

    def prepare_dead(self) -> Transition:
        """Remove the transactional id."""
        transition = self._prepare(DEAD)
        transition.partitions = ()
        return transition

    def _prepare(self, state: str) -> Transition:
        assert self.pending_state is None, (
            f"{self.transactional_id}: {state} begun before the end of {self.pending_state}"
        )
        assert self.state in _VALID_PREVIOUS[state], f"{self.transactional_id}: from {self.state} to {state}"
        self.pending_state = state
        return self.current.copy(state)

    def begin_abort_of_fenced(self, epoch: int, *, is_v2: bool) -> None:
        """Begin the abort that follows a fence, in the fence's epoch.

        With transactions v2 the abort itself raises the epoch (KAFKA-19367).
        """
        assert self.pending_state == PREPARE_EPOCH_FENCE
        self.pending_state = None
        if not is_v2:
            self.current = self.current.copy(self.state)
            self.current.producer_epoch = epoch
            self.current.last_producer_epoch = NO_EPOCH

    def complete(self, transition: Transition) -> None:
        """Apply a prepared transition whose record is now committed."""
        assert self.pending_state == transition.state, (
            f"{self.transactional_id}: {transition.state} was not prepared"
        )
        self.current = transition
        self.partitions = dict.fromkeys(transition.partitions)
        self.pending_state = None

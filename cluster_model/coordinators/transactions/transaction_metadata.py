"""A transactional id: its producer, its transaction, and what that can become next (``TransactionMetadata.java``).

A change is prepared, written to the log of the coordinator, and complete when that is committed. Between the two nothing else
changes: the state that is to come is pending.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from harrow.cluster_model import errors
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
"""The states (``TransactionState.java``)."""

PREPARED: Final = (PREPARE_COMMIT, PREPARE_ABORT)
COMPLETE: Final = (COMPLETE_COMMIT, COMPLETE_ABORT)
AT_REST: Final = (EMPTY, *COMPLETE)
"""Nothing is open: an id that stays so for long expires."""

_VALID_PREVIOUS: Final[Mapping[str, tuple[str, ...]]] = {
    EMPTY: AT_REST,
    ONGOING: (ONGOING, *AT_REST),
    PREPARE_COMMIT: (ONGOING,),
    # From those at rest with transactions v2: an empty transaction can be aborted.
    PREPARE_ABORT: (ONGOING, PREPARE_EPOCH_FENCE, *AT_REST),
    COMPLETE_COMMIT: (PREPARE_COMMIT,),
    COMPLETE_ABORT: (PREPARE_ABORT,),
    DEAD: AT_REST,
    PREPARE_EPOCH_FENCE: (ONGOING,),
}

NO_TIME_US: Final = -1
EPOCH_MAX: Final = 2**15 - 1


def is_epoch_exhausted(epoch: int) -> bool:
    """Return whether no producer gets the next epoch: the last one is for fencing this one."""
    return epoch >= EPOCH_MAX - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """What a transactional id is to become (``TxnTransitMetadata.java``).

    ``last_producer_epoch`` and ``previous_producer_id`` are what the producer had before, for one that asks again;
    ``next_producer_id`` is what it goes on with once this transaction has ended, where its epochs are used up. ``is_v2`` says that
    the epoch is raised with each end (KIP-890).
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

    def as_record(self) -> dict[str, Any]:
        """Return what stands of it in the log (``TransactionLogValue.json``): a retry after a failover is not told from another producer."""
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
    """What the coordinator knows of a transactional id.

    ``has_failed_epoch_fence`` says that an epoch was raised to fence a producer, and that this may not be in the log.
    """

    __slots__ = ("has_failed_epoch_fence", "known", "partitions", "pending_state", "transactional_id")

    def __init__(self, transactional_id: str, known: Transition) -> None:
        self.transactional_id = transactional_id
        self.known = known
        self.partitions: dict[str, None] = dict.fromkeys(known.partitions)
        """Those of the transaction; once that is prepared to end, those that have no marker yet."""
        self.pending_state: str | None = None
        self.has_failed_epoch_fence = False

    @classmethod
    def created(
        cls, transactional_id: str, producer_id: int, timeout_us: int, now_us: int
    ) -> "TransactionMetadata":
        """Return a new one, whose producer has no epoch yet."""
        known = Transition(
            state=EMPTY,
            producer_id=producer_id,
            producer_epoch=NO_EPOCH,
            timeout_us=timeout_us,
            updated_us=now_us,
        )
        return cls(transactional_id, known)

    @classmethod
    def loaded(cls, transactional_id: str, record: Mapping[str, Any]) -> "TransactionMetadata":
        """Return what the log says."""
        known = Transition(**{**record, "partitions": tuple(record["partitions"])})
        return cls(transactional_id, known)

    @property
    def state(self) -> str:
        return self.known.state

    @property
    def producer_id(self) -> int:
        return self.known.producer_id

    @property
    def producer_epoch(self) -> int:
        return self.known.producer_epoch

    def is_timed_out(self, now_us: int) -> bool:
        """Return whether a transaction has been open for too long."""
        return self.state == ONGOING and self.known.start_us + self.known.timeout_us < now_us

    # Transitions

    def prepare_fence(self) -> Transition:
        """Raise the epoch, so that the producer that has the transaction open can do nothing more; it is aborted next.

        Where that has been tried in vain, the epoch stays as it is: no producer has been told of it.
        """
        epoch = self.producer_epoch
        if not self.has_failed_epoch_fence and epoch < EPOCH_MAX:
            epoch += 1
        return self._prepare(
            PREPARE_EPOCH_FENCE,
            producer_epoch=epoch,
            last_producer_epoch=NO_EPOCH,
            partitions=tuple(self.partitions),
        )

    def prepare_new_epoch(self, timeout_us: int, expected_epoch: int | None, now_us: int) -> Transition | str:
        """Give the producer its next epoch, or say why not.

        One that says which epoch it has goes on after an error (KIP-360): if it has asked for that before, it gets the same answer.
        """
        epoch, last_epoch = self.producer_epoch + 1, NO_EPOCH
        if expected_epoch is not None:
            if self.producer_epoch in (NO_EPOCH, expected_epoch):
                last_epoch = self.producer_epoch
            elif expected_epoch == self.known.last_producer_epoch:
                epoch, last_epoch = self.producer_epoch, self.known.last_producer_epoch
            else:
                return errors.PRODUCER_FENCED
        return self._prepare_empty(self.producer_id, epoch, last_epoch, timeout_us, now_us)

    def prepare_rotation(
        self, producer_id: int, timeout_us: int, now_us: int, *, keeps_last_epoch: bool
    ) -> Transition:
        """Give the producer another id: it has had all epochs of this one."""
        last_epoch = self.producer_epoch if keeps_last_epoch else NO_EPOCH
        return self._prepare_empty(producer_id, 0, last_epoch, timeout_us, now_us)

    def _prepare_empty(
        self, producer_id: int, epoch: int, last_epoch: int, timeout_us: int, now_us: int
    ) -> Transition:
        return self._prepare(
            EMPTY,
            producer_id=producer_id,
            previous_producer_id=self.producer_id,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_us=timeout_us,
            partitions=(),
            start_us=NO_TIME_US,
            updated_us=now_us,
            is_v2=False,
        )

    def prepare_add(self, partitions: Sequence[str], now_us: int, *, is_v2: bool) -> Transition:
        """Add partitions to the transaction; the first ones begin it."""
        return self._prepare(
            ONGOING,
            partitions=tuple(dict.fromkeys((*self.partitions, *partitions))),
            start_us=self.known.start_us if self.state == ONGOING else now_us,
            updated_us=now_us,
            is_v2=is_v2,
        )

    def prepare_end(self, state: str, next_producer_id: int, now_us: int, *, is_v2: bool) -> Transition:
        """Commit or abort; with transactions v2 in another epoch, so that nothing of this one can come late."""
        epoch, last_epoch = self.producer_epoch, self.known.last_producer_epoch
        if is_v2:
            epoch, last_epoch = min(epoch + 1, EPOCH_MAX), epoch
        return self._prepare(
            state,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            next_producer_id=next_producer_id,
            partitions=tuple(self.partitions),
            start_us=self.known.start_us if self.state == ONGOING else now_us,
            updated_us=now_us,
            is_v2=is_v2,
        )

    def prepare_complete(self, now_us: int) -> Transition:
        """Note that all markers are written."""
        self.has_failed_epoch_fence = False
        known = self.known
        rotates = known.is_v2 and known.next_producer_id != NO_PRODUCER_ID
        return self._prepare(
            COMPLETE_COMMIT if self.state == PREPARE_COMMIT else COMPLETE_ABORT,
            producer_id=known.next_producer_id if rotates else known.producer_id,
            previous_producer_id=known.producer_id,
            producer_epoch=0 if rotates else known.producer_epoch,
            next_producer_id=NO_PRODUCER_ID,
            partitions=(),
            updated_us=now_us,
        )

    def prepare_dead(self) -> Transition:
        """Be forgotten."""
        return self._prepare(DEAD, partitions=())

    def _prepare(self, state: str, **changes: Any) -> Transition:
        assert self.pending_state is None, f"{self.transactional_id}: {state} beside {self.pending_state}"
        assert self.state in _VALID_PREVIOUS[state], f"{self.transactional_id}: from {self.state} to {state}"
        self.pending_state = state
        return replace(self.known, state=state, **changes)

    def begin_abort_of_fenced(self, epoch: int, *, is_v2: bool) -> None:
        """Have the fence's epoch in the abort that comes of it, and from now on; with transactions v2 the abort raises it itself (KAFKA-19367)."""
        assert self.pending_state == PREPARE_EPOCH_FENCE
        self.pending_state = None
        if not is_v2:
            self.known = replace(self.known, producer_epoch=epoch, last_producer_epoch=NO_EPOCH)

    def complete(self, transition: Transition) -> None:
        """Be what was prepared, now that it is in the log."""
        assert self.pending_state == transition.state, (
            f"{self.transactional_id}: {transition.state} was not prepared"
        )
        self.known = transition
        self.partitions = dict.fromkeys(transition.partitions)
        self.pending_state = None

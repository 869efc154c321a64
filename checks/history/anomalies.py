"""Lists the anomalies of histories: their names in Jepsen's Kafka workload, and their searches."""

# Plain Python: this table is read only once, so compiling it gains nothing.

from collections.abc import Callable, Iterable
from functools import partial
from operator import attrgetter
from typing import Final, NamedTuple

from harrow.checks import promise
from harrow.checks.history import (
    early_reads,
    misrouted_records,
    missing_records,
    offset_conflicts,
    poll_order,
    send_order,
    torn_transactions,
    transaction_cycles,
)
from harrow.checks.history.records import Transaction
from harrow.checks.history.sighting import Sighting
from harrow.checks.history.version_order import VersionOrders
from harrow.cluster_model.history import FAIL, INFO


class Anomaly(NamedTuple):
    """An anomaly: the function that finds it in a history, its definition, and what it needs.

    A history that lacks anything of ``needs`` cannot show the anomaly, so the rule does not hold
    there: it was not tried. A need asks whether the operations of the history could have shown the
    anomaly if they had returned other records or other offsets.
    """

    find: Callable[[VersionOrders], Iterable[Sighting]]
    definition: str
    needs: tuple[Callable[[VersionOrders], object], ...]

    def is_tried(self, orders: VersionOrders) -> bool:
        return all(need(orders) for need in self.needs)


_ACKS: Final = attrgetter("history.acked_total")
"""An acked record is either polled or unseen, so that any ack tries the rule."""

_POLLS: Final = attrgetter("history.polled_total")
_OFFSETS: Final = attrgetter("history.has_offsets")
_POLLS_IN_TURN: Final = attrgetter("history.polls_in_turn")
_POLLS_TOGETHER: Final = attrgetter("history.polls_together")


def _failed_sends(orders: VersionOrders) -> bool:
    """Return whether a send to a partition that was read has failed."""
    return any(partition.failed and partition.polled for partition in orders.history.partitions.values())


def _sends_together(orders: VersionOrders) -> bool:
    """Return whether an operation that may have committed sent several records."""
    return any(_may_commit_several(transaction) for transaction in orders.history.transactions)


def _sends_to_one_partition(orders: VersionOrders) -> bool:
    """Return whether an operation that may have committed sent several records to a partition."""
    return any(
        _may_commit_several(transaction)
        and len({name for name, _ in transaction.sends}) < len(transaction.sends)
        for transaction in orders.history.transactions
    )


def _unsure_sends_together(orders: VersionOrders) -> bool:
    """Return whether an operation with several sends has an unknown outcome."""
    return any(
        transaction.outcome == INFO and len(transaction.sends) > 1
        for transaction in orders.history.transactions
    )


def _reads_and_sends(orders: VersionOrders) -> bool:
    """Return whether an operation polled records and sent some."""
    return any(any(transaction.reads.values()) for transaction in orders.history.transactions)


def _may_commit_several(transaction: Transaction) -> bool:
    return transaction.outcome != FAIL and len(transaction.sends) > 1


ANOMALIES: Final[dict[str, Anomaly]] = {
    promise.LOST_WRITE: Anomaly(
        missing_records.lost_writes,
        "A record is known to have committed, and no ok poll returned it, although one returned a record "
        "at a higher offset.",
        (missing_records.polls_beyond_sends,),
    ),
    promise.UNSEEN: Anomaly(
        missing_records.unseen,
        "A send was acknowledged, and no ok poll ever returned the record. A lost write is not counted again.",
        (_ACKS,),
    ),
    promise.DUPLICATE: Anomaly(
        offset_conflicts.duplicates,
        "Acks and polls saw one value at two or more offsets of a partition.",
        (offset_conflicts.values_seen_again,),
    ),
    promise.INCONSISTENT_OFFSETS: Anomaly(
        offset_conflicts.inconsistent_offsets,
        "Acks and polls saw two or more values at one offset of a partition.",
        (offset_conflicts.offsets_seen_again,),
    ),
    promise.NONMONOTONIC_SEND: Anomaly(
        partial(send_order.reordered_sends, internal=False),
        "Of two consecutive operations of a process, the later one's record is at or before the earlier one's "
        "record. Only committed sends count.",
        (send_order.sends_in_turn,),
    ),
    promise.INT_NONMONOTONIC_SEND: Anomaly(
        partial(send_order.reordered_sends, internal=True),
        "Of two sends of one operation, the later one's record is at or before the earlier one's record.",
        (_sends_to_one_partition, _OFFSETS),
    ),
    promise.INT_SEND_SKIP: Anomaly(
        send_order.internal_skips,
        "Records of other operations are between two consecutive sends of one operation.",
        (_sends_to_one_partition, _OFFSETS),
    ),
    promise.POLL_SKIP: Anomaly(
        partial(poll_order.skips, internal=False),
        "A process did not get known records that lie between what two of its consecutive operations polled. An operation "
        "that failed or whose outcome is unknown does not move the position; a new assign or subscribe keeps only the "
        "positions that it names.",
        (_POLLS_IN_TURN,),
    ),
    promise.NONMONOTONIC_POLL: Anomaly(
        partial(poll_order.backward_polls, internal=False),
        "Of two consecutive operations of a process, the later one polled a record at or before the last record of "
        "the earlier one.",
        (_POLLS_IN_TURN,),
    ),
    promise.INT_POLL_SKIP: Anomaly(
        partial(poll_order.skips, internal=True),
        "One operation polled two consecutive records and did not get known records between them. "
        "Partitions that were rebalanced meanwhile are exempt.",
        (_POLLS_TOGETHER,),
    ),
    promise.INT_NONMONOTONIC_POLL: Anomaly(
        partial(poll_order.backward_polls, internal=True),
        "One operation polled a record, and then a record at the same or a lower offset. Partitions that were "
        "rebalanced meanwhile are exempt.",
        (_POLLS_TOGETHER,),
    ),
    promise.G1A: Anomaly(
        early_reads.aborted_reads,
        "Aborted read: an ok poll returned a value whose send failed.",
        (_failed_sends,),
    ),
    promise.PRECOMMITTED_READ: Anomaly(
        early_reads.precommitted_reads,
        "An operation polled a record that it had sent itself.",
        (_reads_and_sends,),
    ),
    promise.MISROUTED: Anomaly(
        misrouted_records.misrouted_records,
        "A poll returned a record from a partition although it was sent to a different one. Partitions without any sends are "
        "excluded, and so are histories that sent a value to two partitions: values do not identify records there.",
        (misrouted_records.polls_beside_sends,),
    ),
    promise.TORN_TRANSACTION: Anomaly(
        torn_transactions.torn_transactions,
        "Torn transaction: an operation with several sends has an unknown outcome, and some of its records were polled "
        "and others never, although consumers read their partitions to the end afterwards.",
        (_unsure_sends_together, _POLLS),
    ),
    promise.G0: Anomaly(
        transaction_cycles.write_cycles,
        "Write cycle: a cycle of operations, each of which sent a record before one of the next operation's records in "
        "some partition.",
        (_sends_together, _OFFSETS),
    ),
    promise.G1C: Anomaly(
        transaction_cycles.read_cycles,
        "Circular information flow: a cycle of operations, each of which sent a record before one of the next "
        "operation's records, or sent a record that the next one polled. At least one of them polled.",
        (_reads_and_sends,),
    ),
}
"""Anomalies by name, in the order in which they are judged and listed."""

"""The anomalies of a history: their names in the Jepsen Kafka workload, and how each is found."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from checks.finding import Finding
from checks.history import (
    early_reads,
    missing_records,
    offset_conflicts,
    poll_order,
    send_order,
    transaction_cycles,
)
from checks.history.version_order import VersionOrders
from checks.promise import (
    DUPLICATE,
    G0,
    G1A,
    G1C,
    INCONSISTENT_OFFSETS,
    INT_NONMONOTONIC_POLL,
    INT_NONMONOTONIC_SEND,
    INT_POLL_SKIP,
    INT_SEND_SKIP,
    LOST_WRITE,
    NONMONOTONIC_POLL,
    NONMONOTONIC_SEND,
    POLL_SKIP,
    PRECOMMITTED_READ,
    UNSEEN,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """An anomaly. ``definition`` says what it is by the history alone."""

    name: str
    definition: str
    find: Callable[[VersionOrders], Iterable[Finding]]


ANOMALIES: Final[dict[str, Anomaly]] = {
    anomaly.name: anomaly
    for anomaly in (
        Anomaly(
            name=LOST_WRITE,
            definition=(
                "A record is known to have committed, and no ok poll returned it, although one returned a record "
                "at a higher offset."
            ),
            find=missing_records.lost_writes,
        ),
        Anomaly(
            name=UNSEEN,
            definition=(
                "A send was acknowledged, and no ok poll ever returned the record. What counts as a lost write "
                "is not counted again."
            ),
            find=missing_records.unseen,
        ),
        Anomaly(
            name=DUPLICATE,
            definition="Acks and polls saw one value at two or more offsets of a partition.",
            find=offset_conflicts.duplicates,
        ),
        Anomaly(
            name=INCONSISTENT_OFFSETS,
            definition="Acks and polls saw two or more values at one offset of a partition.",
            find=offset_conflicts.inconsistent_offsets,
        ),
        Anomaly(
            name=NONMONOTONIC_SEND,
            definition=(
                "Of two operations of a process that follow each other the later one's record stands at or before "
                "the earlier one's. Only committed sends count."
            ),
            find=send_order.nonmonotonic_sends,
        ),
        Anomaly(
            name=INT_NONMONOTONIC_SEND,
            definition="Of two sends of one operation the later one's record stands at or before the earlier one's.",
            find=send_order.internal_nonmonotonic_sends,
        ),
        Anomaly(
            name=INT_SEND_SKIP,
            definition="Between two sends of one operation that follow each other stand records of others.",
            find=send_order.internal_send_skips,
        ),
        Anomaly(
            name=POLL_SKIP,
            definition=(
                "Between what two operations of a process that follow each other polled stand known records that "
                "it was not given. An operation that failed or whose end is unknown does not move the position; a "
                "new assign or subscribe keeps only the positions that it names."
            ),
            find=poll_order.poll_skips,
        ),
        Anomaly(
            name=NONMONOTONIC_POLL,
            definition=(
                "Of two operations of a process that follow each other the later one polled a record at or before "
                "the last one of the earlier."
            ),
            find=poll_order.nonmonotonic_polls,
        ),
        Anomaly(
            name=INT_POLL_SKIP,
            definition=(
                "One operation polled two records in a row between which stand known records that it was not given. "
                "Partitions that were rebalanced meanwhile are exempt."
            ),
            find=poll_order.internal_poll_skips,
        ),
        Anomaly(
            name=INT_NONMONOTONIC_POLL,
            definition=(
                "One operation polled a record and after it one at the same or a lower offset. Partitions that were "
                "rebalanced meanwhile are exempt."
            ),
            find=poll_order.internal_nonmonotonic_polls,
        ),
        Anomaly(
            name=G1A,
            definition="Aborted read: an ok poll returned a value whose send failed.",
            find=early_reads.aborted_reads,
        ),
        Anomaly(
            name=PRECOMMITTED_READ,
            definition="An operation polled what it itself had sent.",
            find=early_reads.precommitted_reads,
        ),
        Anomaly(
            name=G0,
            definition=(
                "Write cycle: operations each of which sent a record before another one's in some partition, in a circle."
            ),
            find=transaction_cycles.write_cycles,
        ),
        Anomaly(
            name=G1C,
            definition=(
                "Circular information flow: operations each of which sent a record before another one's, or sent what "
                "the other polled, in a circle with at least one poll."
            ),
            find=transaction_cycles.read_cycles,
        ),
    )
}
"""Anomalies by name, in the order in which they are judged and listed."""

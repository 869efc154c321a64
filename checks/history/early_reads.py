"""Records that were read although they were not committed: G1a (aborted read), precommitted-read."""

from collections.abc import Iterator

from harrow.checks.finding import Finding
from harrow.checks.history.version_order import VersionOrders
from harrow.checks.history.witness import numbers, polled, sent


def aborted_reads(orders: VersionOrders) -> Iterator[Finding]:
    """Find values whose send failed and which an ok poll returned all the same."""
    history = orders.history
    for name, partition in history.partitions.items():
        read = orders.read(name)
        aborted = {send.value: send for send in partition.failed if send.value in read}
        # A value that was sent again, and may have committed then, may be read.
        for sent_again in orders.of(name).committed if aborted else ():
            aborted.pop(sent_again.value, None)
        if not aborted:
            continue
        for pair, position in partition.polled.items():
            send = aborted.get(pair[1])
            if send is None:
                continue
            yield Finding(
                partition=name,
                offset=pair[0],
                value=send.value,
                chain=(sent(history, send), polled(history, position, pair)),
                details=(("operations", numbers(history, send.completed, position)),),
            )


def precommitted_reads(orders: VersionOrders) -> Iterator[Finding]:
    """Find operations that polled what they themselves had sent."""
    history = orders.history
    for transaction in history.transactions:
        if not transaction.reads:
            continue
        for send in transaction.sends:
            for pair in transaction.reads.get(send.partition, ()):
                if pair[1] == send.value:
                    yield Finding(
                        partition=send.partition,
                        offset=pair[0],
                        value=send.value,
                        chain=(
                            sent(history, send),
                            polled(history, transaction.position, pair),
                        ),
                        details=(("operations", numbers(history, transaction.position)),),
                    )
                    break

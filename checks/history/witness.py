"""Who says so: the operations of a history that a finding rests on, as links of its chain."""

from collections.abc import Iterable
from typing import Final

from checks.finding import Link
from checks.history.index import HistoryIndex
from checks.history.records import Pair, PartitionHistory, Send, Value
from checks.story import seconds
from cluster_model.history import FAIL, OK

SKIPPED_SHOWN: Final = 8
"""How many records that were passed over a finding names."""

AFTER_LOSS: Final = "after_loss"
"""The detail that says that what an anomaly is about was lost: what permits the loss permits it."""

READ_DRY: Final = "read_dry"
"""The detail of an unseen record that says that nothing more came although somebody went on polling."""

_CLAIMS_SHOWN: Final = 10
_OUTCOMES: Final = {
    OK: ("acked", "acked"),
    FAIL: ("send-failed", "sent in vain"),
}
_UNSURE: Final = ("send-unsure", "sent, with an unknown outcome,")


def operation(history: HistoryIndex, position: int) -> str:
    """Return how an operation is named: ``operation 17 of process 3``."""
    return f"operation {history.numbers[position]} of process {history.processes[position]}"


def told_at(history: HistoryIndex, position: int, text: str) -> str:
    """Return a text with the time of an operation in front."""
    return f"{seconds(history.times_us[position])} {text}"


def sent(history: HistoryIndex, send: Send) -> Link:
    """Return the link that says how a send ended."""
    event, words = _OUTCOMES.get(send.outcome or "", _UNSURE)
    position = send.invoked if send.completed < 0 else send.completed
    place = f" at offset {send.offset}" if send.offset is not None else ""
    text = told_at(history, position, f"{shown(send.value)} {words}{place} ({operation(history, position)})")
    return Link(event=event, text=text, at_us=history.times_us[position], offset=send.offset)


def polled(history: HistoryIndex, position: int, pair: Pair) -> Link:
    """Return the link that says which operation read a record."""
    where = f"polled at offset {pair[0]} ({operation(history, position)})"
    text = told_at(history, position, f"{shown(pair[1])} {where}")
    return Link(event="polled", text=text, at_us=history.times_us[position], offset=pair[0])


def reader(partition: PartitionHistory, pair: Pair) -> int | None:
    """Return the position of an operation that read a pair, None if nobody did."""
    position = partition.polled.get(pair)
    return partition.polled_in_vain.get(pair) if position is None else position


def claims(history: HistoryIndex, partition: PartitionHistory, pairs: Iterable[Pair]) -> tuple[Link, ...]:
    """Return who says that values stand at offsets: the sends that were told so, a poll that saw each.

    Sends that were told nothing are there too, first; of very many links some are left out.
    """
    wanted = list(pairs)
    links = [
        sent(history, send)
        for value in dict.fromkeys(value for _, value in wanted[:_CLAIMS_SHOWN])
        for send in partition.sends.get(value, ())[:_CLAIMS_SHOWN]
        if send.offset is None
    ]
    for offset, value in wanted[:_CLAIMS_SHOWN]:
        sends = partition.sends.get(value, ())[:_CLAIMS_SHOWN]
        links += [sent(history, send) for send in sends if send.offset == offset]
        position = reader(partition, (offset, value))
        if position is not None:
            links.append(polled(history, position, (offset, value)))
    if len(wanted) > _CLAIMS_SHOWN:
        links.append(Link(event="folded", text=f"({len(wanted) - _CLAIMS_SHOWN} more)"))
    return tuple(links)


def shown(value: Value) -> str:
    """Return a value for people: what would disturb a terminal is spelled out."""
    text = str(value)
    return text if text.isprintable() else ascii(text)[1:-1]


def numbers(history: HistoryIndex, *positions: int) -> list[int]:
    """Return the numbers of operations, for the details of a finding."""
    return [history.numbers[position] for position in positions if position >= 0]

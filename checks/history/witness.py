"""Who says so: the operations of a history that a finding rests on, as links of its chain."""

from typing import Final

from checks.finding import Link
from checks.history.index import HistoryIndex, Pair, PartitionHistory, Send
from checks.story import seconds
from cluster_model.history import FAIL, OK

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
    text = told_at(history, position, f"{send.value} {words}{place} ({operation(history, position)})")
    return Link(event=event, text=text, at_us=history.times_us[position], offset=send.offset)


def polled(history: HistoryIndex, position: int, pair: Pair) -> Link:
    """Return the link that says which operation read a record."""
    text = told_at(
        history, position, f"{pair[1]} polled at offset {pair[0]} ({operation(history, position)})"
    )
    return Link(event="polled", text=text, at_us=history.times_us[position], offset=pair[0])


def reader(partition: PartitionHistory, pair: Pair) -> int | None:
    """Return the position of an operation that read a pair, None if nobody did."""
    position = partition.polled.get(pair)
    return partition.polled_in_vain.get(pair) if position is None else position


def claims(history: HistoryIndex, partition: PartitionHistory, pair: Pair) -> list[Link]:
    """Return who says that a value stands at an offset: the send that was told so, a poll that saw it."""
    offset, value = pair
    links = [sent(history, send) for send in partition.sends.get(value, ()) if send.offset == offset]
    position = reader(partition, pair)
    if position is not None:
        links.append(polled(history, position, pair))
    return links


def numbers(history: HistoryIndex, *positions: int) -> list[int]:
    """Return the numbers of operations, for the details of a finding."""
    return [history.numbers[position] for position in positions if position >= 0]

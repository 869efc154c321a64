"""Converts logs of sent records and of read records (`client_logs`) into a history.

A record is identified by its value, or by its key and value if producers log keys. Values are
compared as text, because kcat prints text. Where the logs are ambiguous, the conversion must not
cause an anomaly:

- An unacknowledged send has an unknown outcome, whatever its error was.
- An acknowledged send without a partition belongs to the partition in which it was read, or to the
  partition ``?`` of its topic if it was not read. If it was read in other partitions as well, these
  reads count as different records.
- The order of sends matters only within one named producer.
- A log shows that its consumer read to the end only if the user says so, which is the meaning of
  ``--read``. VerifiableConsumer prints nothing when a poll comes back empty.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from harrow.campaigns.language.spelling import counted, quoted
from harrow.campaigns.logs.client_logs import (
    Lines,
    LogProblems,
    ReadRecords,
    SentRecord,
    read_records,
    sent_records,
)
from harrow.campaigns.record.history_file import HistoryError
from harrow.campaigns.record.json_text import json_line
from harrow.checks import promise
from harrow.cluster_model.history import ASSIGN, POLL

_UNKNOWN_PARTITION: Final = "?"
"""The partition of a record whose partition is unknown."""
_POLLED_AT_ONCE: Final = 500
_NS_PER_MS: Final = 1_000_000

_Places = Mapping[tuple[str, str], tuple[str, int]]
"""The partition and offset of each record, by topic and identity of the record (`_places`)."""


class LoggedHistory(NamedTuple):
    """The lines of a history, and the rules about which the logs cannot show anything."""

    lines: Iterator[bytes]
    not_shown: frozenset[str]


def history_of(
    sent: Sequence[Lines],
    read: Sequence[Lines],
    note: Callable[[str], None] = lambda _: None,
    *,
    read_to_end: bool = True,
) -> LoggedHistory:
    """Return the history of some logs; *note* receives remarks about the logs as a whole.

    With *read_to_end* the records that kcat printed are all that the partitions had.

    Raises:
        HistoryError: a line is not a record, or two sent records cannot be distinguished.

    """
    problems = LogProblems()
    reads = [read_records(lines, problems) for lines in read]
    sends = [record for lines in sent for record in sent_records(lines, problems)]
    _identify(sends, reads)
    _report_duplicates(sends, problems)
    topics = list(dict.fromkeys(topic for log in reads for topic in log.topics))
    if len(topics) > 1:
        for send in sends:
            if send.topic is None:
                problems.note(*send.at, "`topic` is missing, and records of several topics were read")
    if problems.listed:
        raise HistoryError(problems.listed, problems.more)
    for (name, _), log in zip(read, reads, strict=True):
        if log.valueless:
            note(
                f"{name} has only the offsets of {counted(log.valueless, 'record')}, which shows nothing; "
                "`--verbose` makes VerifiableConsumer print the records"
            )
    only_topic = topics[0] if topics else None
    if sends:
        _note_unsent(sends, reads, note)
    places = _places(sends, reads, only_topic)
    if scattered := _rename_stray_reads(sends, reads, places, only_topic):
        note(
            f"{_records_were(scattered)} read in several partitions, and the files do not say which one is right"
        )
    operations = _operations(sends, reads, places, only_topic, read_to_end=read_to_end)
    return LoggedHistory(
        (f"{json_line(operation)}\n".encode() for operation in operations), _not_shown(sends)
    )


def _not_shown(sends: Iterable[SentRecord]) -> frozenset[str]:
    """Return the rules that logs cannot break, although a history with the same records could.

    No send in a log certainly failed.
    """
    hidden = {promise.G1A}
    if not any(True for _ in sends):
        hidden.add(promise.DUPLICATE)
    if all(send.producer is None for send in sends):
        hidden.add(promise.NONMONOTONIC_SEND)
    return frozenset(hidden)


def _identify(sends: Iterable[SentRecord], reads: Iterable[ReadRecords]) -> None:
    """Give each record its identity: its value, with its key if a producer logged keys.

    Without sends, a value does not identify a record: a topic may contain it twice.
    """
    is_keyed = any(send.key is not None for send in sends)
    has_sends = any(True for _ in sends)
    for send in sends:
        send.identity = _identity(send.key, send.value, is_keyed=is_keyed)
    for log in reads:
        for pair in (pair for pairs in log.pairs.values() for pair in pairs):
            offset, key, value = pair
            identity = _identity(key, value, is_keyed=is_keyed)
            pair[1:] = [identity if has_sends else f"{identity} at {offset}"]


def _identity(key: str | None, value: str, *, is_keyed: bool) -> str:
    return f"{'null' if key is None else key}={value}" if is_keyed else value


def _note_unsent(
    sends: Iterable[SentRecord], reads: Iterable[ReadRecords], note: Callable[[str], None]
) -> None:
    sent_values = {send.identity for send in sends}
    values = (pair[1] for log in reads for pairs in log.pairs.values() for pair in pairs)
    if unsent := sum(value not in sent_values for value in values):
        note(f"{_records_were(unsent)} read that no file of sent records has")


def _records_were(count: int) -> str:
    return f"{counted(count, 'record')} {'was' if count == 1 else 'were'}"


def _report_duplicates(sends: Iterable[SentRecord], problems: LogProblems) -> None:
    first: dict[tuple[str | None, str], SentRecord] = {}
    for send in sends:
        earlier = first.setdefault((send.topic, send.identity), send)
        if earlier is not send:
            file, line = earlier.at
            place = f"line {line}" if file == send.at[0] else f"{file}, line {line}"
            message = f"{quoted(send.identity)} was sent before ({place}), and nothing distinguishes the two records"
            problems.note(*send.at, message)


# The history


def _operations(
    sends: Sequence[SentRecord],
    reads: Sequence[ReadRecords],
    places: _Places,
    only_topic: str | None,
    *,
    read_to_end: bool,
) -> Iterator[dict[str, Any]]:
    """Yield the operations: first all sends, then the polls of each reader."""
    placed = [(_partition(sent, places, only_topic), sent) for sent in sends]
    times_ms = [sent.ts_ms for sent in sends if sent.ts_ms is not None]
    began_ms, ended_ms = min(times_ms, default=0), max(times_ms, default=0)
    ordered = _in_order(placed, places)
    processes = {name: n for n, name in enumerate(dict.fromkeys(sent.producer for _, sent in ordered))}
    for partition, sent in ordered:
        process, time = processes[sent.producer], ((sent.ts_ms or began_ms) - began_ms) * _NS_PER_MS
        yield _operation(process, "invoke", "send", [["send", partition, sent.identity]], time)
        written = sent.identity if sent.offset is None else [sent.offset, sent.identity]
        yield _operation(
            process, "ok" if sent.acked else "info", "send", [["send", partition, written]], time
        )
    time = (ended_ms - began_ms) * _NS_PER_MS
    partitions = dict.fromkeys(partition for partition, _ in placed)
    for process, log in enumerate(reads, len(processes)):
        for f, value in log.steps or _steps_of_kcat(log, partitions, read_to_end=read_to_end):
            asked, got = (value, value) if f == ASSIGN else ([["poll"]], [["poll", value]])
            yield _operation(process, "invoke", f, asked, time)
            yield _operation(process, "ok", f, got, time)


def _steps_of_kcat(
    log: ReadRecords, partitions: Mapping[str, None], *, read_to_end: bool
) -> Iterator[tuple[str, Any]]:
    """Yield an assignment of all partitions, and polls. A last empty poll is the end of the log."""
    topics = log.topics or dict.fromkeys(map(_topic, partitions))
    yield ASSIGN, [name for name in {**partitions, **log.pairs} if _topic(name) in topics]
    for partition, pairs in log.pairs.items():
        for start in range(0, len(pairs), _POLLED_AT_ONCE):
            yield POLL, {partition: pairs[start : start + _POLLED_AT_ONCE]}
    if read_to_end:
        yield POLL, {}


def _rename_stray_reads(
    sends: Iterable[SentRecord], reads: Iterable[ReadRecords], places: _Places, only_topic: str | None
) -> int:
    """Rename reads of a record outside the partition to which it is assumed to belong.

    A different record with the same value may have been sent to the other partition. Return how
    many records this concerns.
    """
    derived = {(_topic_of(send, only_topic), send.identity) for send in sends if send.partition is None}
    scattered = set()
    for read in reads:
        for partition, pairs in read.pairs.items():
            for pair in pairs:
                record = (_topic(partition), pair[1])
                if record in derived and places[record][0] != partition:
                    scattered.add(record)
                    pair[1] = f"{pair[1]} ({partition})"
    return len(scattered)


def _places(sends: Iterable[SentRecord], reads: Iterable[ReadRecords], only_topic: str | None) -> _Places:
    """Return where each record was read first.

    If it was also read at the offset that was acknowledged, return that place instead.
    """
    acked = {(_topic_of(send, only_topic), send.identity): send.offset for send in sends}
    places: dict[tuple[str, str], tuple[str, int]] = {}
    for read in reads:
        for partition, pairs in read.pairs.items():
            for offset, identity in pairs:
                record, place = (_topic(partition), identity), (partition, offset)
                first = places.setdefault(record, place)
                if offset == acked.get(record) != first[1]:
                    places[record] = place
    return places


def _in_order(placed: Sequence[tuple[str, SentRecord]], places: _Places) -> list[tuple[str, SentRecord]]:
    """Return first the sends of named producers, as they were logged, then all others by offset."""

    def order(item: tuple[str, SentRecord]) -> tuple[str, float]:
        partition, sent = item
        read = places.get((_topic(partition), sent.identity), (partition, float("inf")))
        return partition, read[1] if sent.offset is None else sent.offset

    named = [item for item in placed if item[1].producer is not None]
    return [*named, *sorted((item for item in placed if item[1].producer is None), key=order)]


def _topic(partition: str) -> str:
    return partition.rpartition("-")[0]


def _topic_of(send: SentRecord, only_topic: str | None) -> str:
    return send.topic or only_topic or "topic"


def _partition(send: SentRecord, places: _Places, only_topic: str | None) -> str:
    topic = _topic_of(send, only_topic)
    if send.partition is not None:
        return f"{topic}-{send.partition}"
    place = places.get((topic, send.identity))
    return f"{topic}-{_UNKNOWN_PARTITION}" if place is None else place[0]


def _operation(process: int, outcome: str, f: str, value: Any, time: int) -> dict[str, Any]:
    return {"process": process, "type": outcome, "f": f, "value": value, "time": time}

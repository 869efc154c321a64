"""Converts records that a producer logged and a consumer printed into a history.

There are two kinds of files with a record on each line: records that producers sent (``--sent``),
and records that were read back, as ``kcat -J`` prints them (``--read``). docs/how-to/history.md
describes the fields.

A record is identified by its value, or by its key and value if producers log keys. Values are
compared as text, because kcat prints text. Where the files are ambiguous, the conversion must not
cause an anomaly:

- An unacknowledged send has an unknown outcome, whatever its error was.
- An acknowledged send without a partition belongs to the partition in which it was read, or to the
  partition ``?`` of its topic if it was not read. If it was read in other partitions as well, these
  reads count as different records.
- The order of sends matters only within one named producer.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, TypeVar

from pydantic_core import from_json

from harrow.campaigns.language.problem import Problem
from harrow.campaigns.language.spelling import counted, quoted
from harrow.campaigns.record.history_file import HistoryError, UnreadableLine
from harrow.campaigns.record.json_text import json_line
from harrow.cluster_model.lazy_dataclass import dataclass

_UNKNOWN_PARTITION: Final = "?"
"""The partition of a record whose partition is unknown."""
_PROBLEMS_MAX: Final = 20
_POLLED_AT_ONCE: Final = 500
_NS_PER_MS: Final = 1_000_000
_COUNT_END: Final = 2**53
_FIELDS: Final = frozenset(
    {"key", "value", "topic", "partition", "offset", "ts", "acked", "error", "producer", "payload"}
)
"""The fields of sent records, and of the output of `kcat -J`, that the conversion uses."""

T = TypeVar("T")

Lines = tuple[str, Iterable[bytes]]
"""The name of a file, and its lines."""

_Places = Mapping[tuple[str, str], tuple[str, int]]
"""The partition and offset of each record, by topic and identity of the record (`_places`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _SentRecord:
    """A sent record. ``at`` is the file and the line that logged it."""

    identity: str
    topic: str | None
    partition: int | None
    offset: int | None
    ts_ms: int | None
    acked: bool
    producer: str | None
    at: tuple[str, int]


@dataclass(slots=True)
class _ReadRecords:
    """The records that one file says were read: pairs of offset and value, by partition."""

    pairs: dict[str, list[list[Any]]] = field(default_factory=dict)
    topics: dict[str, None] = field(default_factory=dict)


class _Malformed(ValueError):
    """A line that is not a record. The message gives the reason."""


class _Problems:
    """The mistakes in lines: the first are ``listed``, and ``more`` counts the others."""

    def __init__(self) -> None:
        self.listed: list[Problem] = []
        self.more = 0

    def note(self, file: str, line: int, message: str) -> None:
        if len(self.listed) < _PROBLEMS_MAX:
            self.listed.append(Problem(file, line, 1, message))
        else:
            self.more += 1

    def objects(self, lines: Lines) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield the line number and the relevant fields of each JSON object in a file."""
        name, texts = lines
        number = 0
        try:
            for number, text in enumerate(texts, 1):
                if text.isspace():
                    continue
                try:
                    record = from_json(text.rstrip())
                except ValueError as error:
                    self.note(name, number, f"not JSON: {str(error).partition(' at line ')[0]}")
                    continue
                if isinstance(record, dict):
                    yield number, {field: record[field] for field in _FIELDS & record.keys()}
                else:
                    self.note(name, number, "a record is an object such as {...}")
        except UnreadableLine as unreadable:
            self.note(name, number + 1, str(unreadable))


def history_lines(
    sent: Sequence[Lines], read: Sequence[Lines], note: Callable[[str], None] = lambda _: None
) -> Iterator[bytes]:
    """Yield the lines of a history; *note* receives remarks about the files as a whole.

    Raises:
        HistoryError: a line is not a record, or two sent records cannot be distinguished.

    """
    problems = _Problems()
    read_records = [[*problems.objects(lines)] for lines in read]
    sent_records = [(lines[0], [*problems.objects(lines)]) for lines in sent]
    is_keyed = any(record.get("key") is not None for _, records in sent_records for _, record in records)
    reads = [
        _reads(lines[0], records, problems, is_keyed=is_keyed)
        for lines, records in zip(read, read_records, strict=True)
    ]
    sends = list(_sends(sent_records, problems, is_keyed=is_keyed))
    _report_duplicates(sends, problems)
    topics = list(dict.fromkeys(topic for file_reads in reads for topic in file_reads.topics))
    if len(topics) > 1:
        for send in sends:
            if send.topic is None:
                problems.note(*send.at, "`topic` is missing, and records of several topics were read")
    if problems.listed:
        raise HistoryError(problems.listed, problems.more)
    sent_values = {send.identity for send in sends}
    values = (pair[1] for file_reads in reads for pairs in file_reads.pairs.values() for pair in pairs)
    if unsent := sum(value not in sent_values for value in values):
        note(f"{_records_were(unsent)} read that no file of sent records has")
    only_topic = topics[0] if topics else None
    places = _places(sends, reads, only_topic)
    if scattered := _rename_stray_reads(sends, reads, places, only_topic):
        note(
            f"{_records_were(scattered)} read in several partitions, and the files do not say which one is right"
        )
    operations = _operations(sends, reads, places, only_topic)
    yield from (f"{json_line(operation)}\n".encode() for operation in operations)


def _records_were(count: int) -> str:
    return f"{counted(count, 'record')} {'was' if count == 1 else 'were'}"


def _reads(
    name: str, records: Iterable[tuple[int, Mapping[str, Any]]], problems: _Problems, *, is_keyed: bool
) -> _ReadRecords:
    read = _ReadRecords()
    for number, record in records:
        try:
            topic, offset = _text(record, "topic"), _count(record, "offset")
            partition = f"{topic}-{_count(record, 'partition')}"
            payload = _payload(record)
        except _Malformed as malformed:
            problems.note(name, number, str(malformed))
            continue
        read.topics[topic] = None
        # A tombstone has no value that identifies it.
        if payload is not None:
            read.pairs.setdefault(partition, []).append(
                [offset, _identity(record, "payload", is_keyed=is_keyed)]
            )
    return read


def _payload(record: Mapping[str, Any]) -> Any:
    if "payload" not in record:
        raise _Malformed("`payload` is missing: this is not a line of `kcat -J`")
    return record["payload"]


def _sends(
    files: Iterable[tuple[str, list[tuple[int, Mapping[str, Any]]]]], problems: _Problems, *, is_keyed: bool
) -> Iterator[_SentRecord]:
    for name, records in files:
        for number, record in records:
            try:
                yield _sent_record(record, (name, number), is_keyed=is_keyed)
            except _Malformed as malformed:
                problems.note(name, number, str(malformed))


def _sent_record(record: Mapping[str, Any], at: tuple[str, int], *, is_keyed: bool) -> _SentRecord:
    if record.get("value") is None:
        raise _Malformed("`value` is missing: it identifies the record")
    offset = _optional(record, "offset", _count)
    acked = record.get("acked")
    if acked is None:
        acked = offset is not None and record.get("error") is None
    if not isinstance(acked, bool):
        raise _Malformed(f"`acked` is true or false, not {_shown(acked)}")
    return _SentRecord(
        identity=_identity(record, "value", is_keyed=is_keyed),
        topic=_optional(record, "topic", _text),
        partition=_optional(record, "partition", _count),
        offset=offset if acked else None,
        ts_ms=_optional(record, "ts", _count),
        acked=acked,
        producer=None if record.get("producer") is None else str(record["producer"]),
        at=at,
    )


def _report_duplicates(sends: Iterable[_SentRecord], problems: _Problems) -> None:
    first: dict[tuple[str | None, str], _SentRecord] = {}
    for send in sends:
        earlier = first.setdefault((send.topic, send.identity), send)
        if earlier is not send:
            file, line = earlier.at
            place = f"line {line}" if file == send.at[0] else f"{file}, line {line}"
            message = f"{quoted(send.identity)} was sent before ({place}), and nothing distinguishes the two records"
            problems.note(*send.at, message)


def _identity(record: Mapping[str, Any], name: str, *, is_keyed: bool) -> str:
    value = _as_text(record[name])
    return f"{_as_text(record.get('key'))}={value}" if is_keyed else value


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _text(record: Mapping[str, Any], name: str) -> str:
    text = _field(record, name)
    if not isinstance(text, str):
        raise _Malformed(f"`{name}` is text, not {_shown(text)}")
    return text


def _count(record: Mapping[str, Any], name: str) -> int:
    number = _field(record, name)
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < _COUNT_END:
        raise _Malformed(f"`{name}` is a whole number from 0 on, not {_shown(number)}")
    return number


def _field(record: Mapping[str, Any], name: str) -> Any:
    if name not in record:
        raise _Malformed(f"`{name}` is missing")
    return record[name]


def _optional(record: Mapping[str, Any], name: str, read: Callable[[Mapping[str, Any], str], T]) -> T | None:
    # Clients log -1 for an unknown value.
    return None if record.get(name) in (None, -1) else read(record, name)


def _shown(value: Any) -> str:
    return quoted(json.dumps(value, ensure_ascii=False))


# The history


def _operations(
    sends: Sequence[_SentRecord], reads: Sequence[_ReadRecords], places: _Places, only_topic: str | None
) -> Iterator[dict[str, Any]]:
    """Yield the operations: first all sends, then the polls of each reader.

    The last poll of a reader is empty, which shows that it has read to the end.
    """
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
    for process, read in enumerate(reads, len(processes)):
        topics = read.topics or dict.fromkeys(map(_topic, partitions))
        assigned = [name for name in {**partitions, **read.pairs} if _topic(name) in topics]
        for outcome in ("invoke", "ok"):
            yield _operation(process, outcome, "assign", assigned, time)
        polls = [
            {partition: pairs[start : start + _POLLED_AT_ONCE]}
            for partition, pairs in read.pairs.items()
            for start in range(0, len(pairs), _POLLED_AT_ONCE)
        ]
        for polled in (*polls, {}):
            yield _operation(process, "invoke", "poll", [["poll"]], time)
            yield _operation(process, "ok", "poll", [["poll", polled]], time)


def _rename_stray_reads(
    sends: Iterable[_SentRecord], reads: Iterable[_ReadRecords], places: _Places, only_topic: str | None
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


def _places(sends: Iterable[_SentRecord], reads: Iterable[_ReadRecords], only_topic: str | None) -> _Places:
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


def _in_order(placed: Sequence[tuple[str, _SentRecord]], places: _Places) -> list[tuple[str, _SentRecord]]:
    """Return first the sends of named producers, as they were logged, then all others by offset."""

    def order(item: tuple[str, _SentRecord]) -> tuple[str, float]:
        partition, sent = item
        read = places.get((_topic(partition), sent.identity), (partition, float("inf")))
        return partition, read[1] if sent.offset is None else sent.offset

    named = [item for item in placed if item[1].producer is not None]
    return [*named, *sorted((item for item in placed if item[1].producer is None), key=order)]


def _topic(partition: str) -> str:
    return partition.rpartition("-")[0]


def _topic_of(send: _SentRecord, only_topic: str | None) -> str:
    return send.topic or only_topic or "topic"


def _partition(send: _SentRecord, places: _Places, only_topic: str | None) -> str:
    topic = _topic_of(send, only_topic)
    if send.partition is not None:
        return f"{topic}-{send.partition}"
    place = places.get((topic, send.identity))
    return f"{topic}-{_UNKNOWN_PARTITION}" if place is None else place[0]


def _operation(process: int, outcome: str, f: str, value: Any, time: int) -> dict[str, Any]:
    return {"process": process, "type": outcome, "f": f, "value": value, "time": time}

"""Parses what Kafka's clients and tools log about records: one JSON object per line.

A log of *sent* records has lines that users write themselves (docs/how-to/history.md), or the
output of Kafka's VerifiableProducer. A log of *read* records has the output of `kcat -J` or of
Kafka's VerifiableConsumer. Each line may have any of these forms.

The two tools are org.apache.kafka.tools.VerifiableProducer and VerifiableConsumer, which print an
event per line. VerifiableProducer prints an event when a send ends, in the order of acks. But it
sends increasing numbers, so their order is the order of the sends.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from itertools import chain, islice
from typing import Any, Final, TypeVar

from pydantic_core import from_json

from harrow.campaigns.language.problem import Problem
from harrow.campaigns.language.spelling import counted, quoted, suggestion
from harrow.campaigns.record.history_file import UnreadableLine, syntax_error
from harrow.cluster_model.history import ASSIGN, POLL
from harrow.cluster_model.lazy_dataclass import dataclass

SENT: Final = "sent"
READ: Final = "read"

_PROBLEMS_MAX: Final = 20
_COUNT_END: Final = 2**53
_LINES_TO_RECOGNISE: Final = 64
_DIGITS_MAX: Final = 19
"""VerifiableProducer sends numbers of 64 bits."""
_KCAT_FIELDS: Final = frozenset({"topic", "partition", "offset", "payload"})
_EVENT_FIELDS: Final = frozenset({"timestamp", "name"})

_SUCCESS: Final = "producer_send_success"
_ERROR: Final = "producer_send_error"
_RECORD: Final = "record_data"
_POLLED: Final = "records_consumed"
_ASSIGNED: Final = "partitions_assigned"
_REVOKED: Final = "partitions_revoked"
_EVENTS: Final[Mapping[str, str | None]] = {
    **dict.fromkeys((_SUCCESS, _ERROR, "tool_data"), SENT),
    **dict.fromkeys((_RECORD, _POLLED, _ASSIGNED, _REVOKED, "offsets_committed"), READ),
    **dict.fromkeys(("startup_complete", "shutdown_requested", "shutdown_complete"), None),
}
"""Which log has an event; None if both logs have it."""
_OPTIONS: Final = {SENT: "--sent", READ: "--read"}

T = TypeVar("T")

Lines = tuple[str, Iterable[bytes]]
"""The name of a file, and its lines."""
Pair = list[Any]
"""A record that was read: its offset, key and value; `logged_records` replaces key and value."""


@dataclass(slots=True, kw_only=True)
class SentRecord:
    """A sent record. ``at`` is the file and the line that logged it.

    ``identity`` distinguishes the record from others; `logged_records` sets it.
    """

    key: str | None
    value: str
    topic: str | None
    partition: int | None
    offset: int | None
    ts_ms: int | None
    acked: bool
    producer: str | None
    at: tuple[str, int]
    identity: str = ""


@dataclass(slots=True)
class ReadRecords:
    """The records that one log says were read: pairs by partition.

    ``steps`` are the assignments and polls of a VerifiableConsumer. kcat prints neither.
    ``valueless`` counts records of which the log has only offsets.
    """

    pairs: dict[str, list[Pair]] = field(default_factory=dict)
    topics: dict[str, None] = field(default_factory=dict)
    steps: list[tuple[str, Any]] = field(default_factory=list)
    valueless: int = 0


class _Malformed(ValueError):
    """A malformed line: the wrong field, and the reason."""

    def __init__(self, wrong: str, reason: str) -> None:
        super().__init__(reason)
        self.field = wrong
        self.reason = reason


class LogProblems:
    """The mistakes in lines: the first are ``listed``, and ``more`` counts the others."""

    def __init__(self) -> None:
        self.listed: list[Problem] = []
        self.more = 0

    def note(self, file: str, line: int, message: str, column: int = 1) -> None:
        if len(self.listed) < _PROBLEMS_MAX:
            self.listed.append(Problem(file, line, column, message))
        else:
            self.more += 1

    def parse(self, lines: Lines, take: Callable[[Mapping[str, Any], int], None]) -> None:
        """Pass each JSON object of a log to *take*, with the number of its line."""
        name, texts = lines
        number = 0
        try:
            for number, text in enumerate(texts, 1):
                if text.isspace():
                    continue
                try:
                    record = from_json(text.rstrip())
                    if not isinstance(record, dict):
                        self.note(name, number, "a record is an object such as {...}")
                    else:
                        take(record, number)
                except _Malformed as malformed:
                    column = text.find(f'"{malformed.field}"'.encode()) + 1
                    self.note(name, number, malformed.reason, max(column, 1))
                except ValueError as error:
                    column, reason = syntax_error(text, error)
                    self.note(name, number, reason, column)
        except UnreadableLine as unreadable:
            self.note(name, number + 1, str(unreadable))


def recognise(lines: Iterable[bytes]) -> tuple[str | None, Iterable[bytes]]:
    """Return whether lines are a log of a tool, by their content, and the same lines again.

    The answer is `SENT` for VerifiableProducer, `READ` for VerifiableConsumer and `kcat -J`, and
    None for anything else.
    """
    iterator = iter(lines)
    begin: list[bytes] = []
    is_tool, kind = False, None
    try:
        for line in islice(iterator, _LINES_TO_RECOGNISE):
            begin.append(line)
            if not line.isspace():
                is_tool, kind = _kind(line)
                if kind is not None or not is_tool:
                    break
    except UnreadableLine as unreadable:
        # Whoever reads the lines reports the mistake.
        iterator = _failing(unreadable)
    return kind or (SENT if is_tool else None), chain(begin, iterator)


def _failing(error: UnreadableLine) -> Iterator[bytes]:
    yield from ()
    raise error


def _kind(line: bytes) -> tuple[bool, str | None]:
    """Return whether a tool prints such a line, and the kind of its log if this line shows it."""
    try:
        record = from_json(line.rstrip())
    except ValueError:
        return False, None
    if not isinstance(record, dict):
        return False, None
    if record.keys() >= _KCAT_FIELDS:
        return True, READ
    is_event = record.keys() >= _EVENT_FIELDS and record["name"] in [*_EVENTS]
    return is_event, _EVENTS[record["name"]] if is_event else None


def sent_records(lines: Lines, problems: LogProblems) -> list[SentRecord]:
    """Return the records of a log of sent records; those of VerifiableProducer in sending order."""
    records: list[SentRecord] = []
    numbered: list[tuple[int, SentRecord]] = []

    def take(record: Mapping[str, Any], line: int) -> None:
        name = _event(record, SENT)
        if name is None:
            records.append(_sent_record(record, (lines[0], line)))
        elif name in (_SUCCESS, _ERROR):
            acked = name == _SUCCESS
            # An error tells neither a partition, nor whether the record was stored.
            where = record if acked else {"topic": record.get("topic")}
            fields = {
                **{key: where.get(key) for key in ("topic", "partition", "offset")},
                "key": record.get("key"),
                "value": record.get("value"),
                "ts": record.get("timestamp"),
                "acked": acked,
                "producer": f"VerifiableProducer of {lines[0]}",
            }
            sent = _sent_record(fields, (lines[0], line))
            if acked and (sent.partition is None or sent.offset is None):
                raise _Malformed("name", f"`{name}` has a partition and an offset")
            number = sent.value.rpartition(".")[2]
            if not (number.isascii() and number.isdigit() and len(number) <= _DIGITS_MAX):
                raise _Malformed(
                    "value", f"VerifiableProducer sends numbers, not {_shown(record.get('value'))}"
                )
            numbered.append((int(number), sent))

    problems.parse(lines, take)
    return [*records, *(record for _, record in sorted(numbered, key=lambda each: each[0]))]


def read_records(lines: Lines, problems: LogProblems) -> ReadRecords:
    """Return the records of a log of read records."""
    log = _ReadLog()
    problems.parse(lines, log.take)
    log.end_poll()
    return log.read


class _ReadLog:
    def __init__(self) -> None:
        self.read = ReadRecords()
        self._polled: dict[str, list[Pair]] = {}
        self._assigned: dict[str, None] = {}

    def take(self, record: Mapping[str, Any], _: int) -> None:
        name = _event(record, READ)
        if name is None:
            self._add(record, "payload")
        elif name == _RECORD:
            partition, pair = self._add(record, "value")
            if pair is not None:
                self._polled.setdefault(partition, []).append(pair)
        elif name == _POLLED:
            self._take_poll(record)
        elif name in (_ASSIGNED, _REVOKED):
            partitions = dict.fromkeys(map(_partition, _objects(record, "partitions")))
            for partition in partitions:
                self._assigned.pop(partition, None)
            if name == _ASSIGNED:
                self._assigned |= partitions
            self.read.topics |= dict.fromkeys(_text(each, "topic") for each in record["partitions"])
            self.read.steps.append((ASSIGN, list(self._assigned)))

    def end_poll(self) -> None:
        if self._polled:
            self.read.steps.append((POLL, self._polled))
            self._polled = {}

    def _take_poll(self, record: Mapping[str, Any]) -> None:
        """End a poll: the tool prints its records, if it prints them at all, before this event."""
        count = sum(_count(each, "count") for each in _objects(record, "partitions"))
        printed = sum(map(len, self._polled.values()))
        if printed not in (0, count):
            raise _Malformed(
                "count", f"{counted(count, 'record')} consumed, but {printed} `{_RECORD}` before"
            )
        self.read.valueless += count - printed
        self.end_poll()

    def _add(self, record: Mapping[str, Any], value: str) -> tuple[str, Pair | None]:
        topic, offset, partition = _text(record, "topic"), _count(record, "offset"), _partition(record)
        if value not in record:
            raise _Malformed(value, f"`{value}` is missing: this is not a line of `kcat -J`")
        self.read.topics[topic] = None
        # A tombstone has no value that identifies it.
        if record[value] is None:
            return partition, None
        pair = [offset, _key(record), _as_text(record[value])]
        self.read.pairs.setdefault(partition, []).append(pair)
        return partition, pair


def _event(record: Mapping[str, Any], log: str) -> str | None:
    """Return the name of a tool's event in this log; None if the line is a record."""
    if not record.keys() >= _EVENT_FIELDS:
        return None
    name = record["name"]
    if not isinstance(name, str) or name not in _EVENTS:
        hint = suggestion(name, tuple(_EVENTS)) if isinstance(name, str) else ""
        raise _Malformed("name", f"unknown event {_shown(name)}{hint}")
    if (kind := _EVENTS[name]) not in (None, log):
        raise _Malformed(
            "name", f"`{name}` is an event of a log for {_OPTIONS[str(kind)]}, not {_OPTIONS[log]}"
        )
    return name


def _sent_record(record: Mapping[str, Any], at: tuple[str, int]) -> SentRecord:
    if record.get("value") is None:
        raise _Malformed("value", "`value` is missing: it identifies the record")
    offset = _optional(record, "offset", _count)
    acked = record.get("acked")
    if acked is None:
        acked = offset is not None and record.get("error") is None
    if not isinstance(acked, bool):
        raise _Malformed("acked", f"`acked` is true or false, not {_shown(acked)}")
    return SentRecord(
        key=_key(record),
        value=_as_text(record["value"]),
        topic=_optional(record, "topic", _text),
        partition=_optional(record, "partition", _count),
        offset=offset if acked else None,
        ts_ms=_optional(record, "ts", _count),
        acked=acked,
        producer=None if record.get("producer") is None else str(record["producer"]),
        at=at,
    )


def _partition(record: Mapping[str, Any]) -> str:
    return f"{_text(record, 'topic')}-{_count(record, 'partition')}"


def _key(record: Mapping[str, Any]) -> str | None:
    return None if record.get("key") is None else _as_text(record["key"])


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _text(record: Mapping[str, Any], name: str) -> str:
    text = _field(record, name)
    if not isinstance(text, str):
        raise _Malformed(name, f"`{name}` is text, not {_shown(text)}")
    return text


def _count(record: Mapping[str, Any], name: str) -> int:
    number = _field(record, name)
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < _COUNT_END:
        raise _Malformed(name, f"`{name}` is a whole number from 0 on, not {_shown(number)}")
    return number


def _objects(record: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    objects = _field(record, name)
    if not isinstance(objects, list) or not all(isinstance(each, dict) for each in objects):
        raise _Malformed(name, f"`{name}` is a list of objects, not {_shown(objects)}")
    return objects


def _field(record: Mapping[str, Any], name: str) -> Any:
    if name not in record:
        raise _Malformed(name, f"`{name}` is missing")
    return record[name]


def _optional(record: Mapping[str, Any], name: str, read: Callable[[Mapping[str, Any], str], T]) -> T | None:
    # Clients log -1 for an unknown value.
    return None if record.get(name) in (None, -1) else read(record, name)


def _shown(value: Any) -> str:
    return quoted(json.dumps(value, ensure_ascii=False))

"""What a producer logged and what a consumer printed, as the history that the judge knows.

Two kinds of files, a record on each line: what producers sent (``--sent``), and what was read back, as ``kcat -J`` prints
it (``--read``). docs/how-to/history.md has the fields.

A record is known by its value, or by its key and value where producers say keys. Values are compared as texts, because kcat prints
texts. What the files leave open accuses nobody: an unacknowledged send is one of unknown outcome, whatever its error was; an
acknowledged one that names no partition is where it was read, and where it was not read, in the partition ``?`` of its topic; in any
other partition where such a one was read, it is a record of somebody else; and the order of sends counts only between those of one
named producer.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from pydantic_core import from_json

from harrow.campaigns.language.problem import Problem
from harrow.campaigns.language.spelling import counted, quoted
from harrow.campaigns.record.history_file import HistoryError, UnreadableLine
from harrow.campaigns.record.json_text import json_line

_NOWHERE: Final = "?"
"""Stands for the partition of a record that no file tells."""
_PROBLEMS_MAX: Final = 20
_POLLED_AT_ONCE: Final = 500
_NS_PER_MS: Final = 1_000_000
_COUNT_END: Final = 2**53
_FIELDS: Final = frozenset(
    {"key", "value", "topic", "partition", "offset", "ts", "acked", "error", "producer", "payload"}
)
"""The fields that are read, of what was sent and of what `kcat -J` prints."""

T = TypeVar("T")

Lines = tuple[str, Iterable[bytes]]
"""The name of a file, and its lines."""

_Places = Mapping[tuple[str, str], tuple[str, int]]
"""By topic and record: the partition where it was read first, and the offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """A record that was sent; ``at`` is its file and line."""

    identity: str
    topic: str | None
    partition: int | None
    offset: int | None
    ts_ms: int | None
    acked: bool
    producer: str | None
    at: tuple[str, int]


@dataclass(slots=True)
class _Read:
    """What a file has that was read: pairs of offset and value by partition, each with where the value was read."""

    pairs: dict[str, list[list[Any]]] = field(default_factory=dict)
    topics: dict[str, None] = field(default_factory=dict)


class _Malformed(ValueError):
    """A line that is no record; the message says why."""


class _Problems:
    """What is wrong with lines; the first ones in full."""

    def __init__(self) -> None:
        self.found: list[Problem] = []
        self.more = 0

    def note(self, file: str, line: int, message: str) -> None:
        if len(self.found) < _PROBLEMS_MAX:
            self.found.append(Problem(file, line, 1, message))
        else:
            self.more += 1

    def objects(self, lines: Lines) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield the objects of a file with the numbers of their lines; of an object the fields that count here."""
        name, texts = lines
        number = 0
        try:
            for number, text in enumerate(texts, 1):
                if text.isspace():
                    continue
                try:
                    found = from_json(text.rstrip())
                except ValueError as error:
                    self.note(name, number, f"no JSON: {str(error).partition(' at line ')[0]}")
                    continue
                if isinstance(found, dict):
                    yield number, {field: found[field] for field in _FIELDS & found.keys()}
                else:
                    self.note(name, number, "a record is an object, as in {...}")
        except UnreadableLine as unreadable:
            self.note(name, number + 1, str(unreadable))


def history_lines(
    sent: Sequence[Lines], read: Sequence[Lines], note: Callable[[str], None] = lambda _: None
) -> Iterator[bytes]:
    """Yield the lines of a history; *note* takes what there is to say of files as a whole.

    Raises:
        HistoryError: a line is no record, or one cannot be told from another.

    """
    problems = _Problems()
    read_objects = [[*problems.objects(lines)] for lines in read]
    sent_objects = [(lines[0], [*problems.objects(lines)]) for lines in sent]
    is_keyed = any(said.get("key") is not None for _, found in sent_objects for _, said in found)
    reads = [
        _reads(lines[0], found, problems, is_keyed=is_keyed)
        for lines, found in zip(read, read_objects, strict=True)
    ]
    sends = list(_sends(sent_objects, problems, is_keyed=is_keyed))
    _find_twins(sends, problems)
    topics = list(dict.fromkeys(topic for each in reads for topic in each.topics))
    if len(topics) > 1:
        for each in sends:
            if each.topic is None:
                problems.note(*each.at, "`topic` is missing, and records of several topics were read")
    if problems.found:
        raise HistoryError(problems.found, problems.more)
    known = {each.identity for each in sends}
    unknown = sum(pair[1] not in known for each in reads for pairs in each.pairs.values() for pair in pairs)
    if unknown:
        verb = "was" if unknown == 1 else "were"
        note(f"{counted(unknown, 'record')} {verb} read that nobody is said to have sent")
    only_topic = topics[0] if topics else None
    places = _places(sends, reads, only_topic)
    scattered = _set_others_apart(sends, reads, places, only_topic)
    if scattered:
        verb = "was" if scattered == 1 else "were"
        note(
            f"{counted(scattered, 'record')} {verb} read in several partitions, and the files leave open which one was meant"
        )
    operations = _operations(sends, reads, places, only_topic)
    yield from (f"{json_line(operation)}\n".encode() for operation in operations)


def _reads(
    name: str, found: Iterable[tuple[int, Mapping[str, Any]]], problems: _Problems, *, is_keyed: bool
) -> _Read:
    read = _Read()
    for number, said in found:
        try:
            topic, offset = _text(said, "topic"), _count(said, "offset")
            partition = f"{topic}-{_count(said, 'partition')}"
            payload = _payload(said)
        except _Malformed as malformed:
            problems.note(name, number, str(malformed))
            continue
        read.topics[topic] = None
        # A tombstone has no value to be known by.
        if payload is not None:
            read.pairs.setdefault(partition, []).append(
                [offset, _identity(said, "payload", is_keyed=is_keyed)]
            )
    return read


def _payload(said: Mapping[str, Any]) -> Any:
    if "payload" not in said:
        raise _Malformed("`payload` is missing: this is no line of `kcat -J`")
    return said["payload"]


def _sends(
    files: Iterable[tuple[str, list[tuple[int, Mapping[str, Any]]]]], problems: _Problems, *, is_keyed: bool
) -> Iterator[_Sent]:
    for name, found in files:
        for number, said in found:
            try:
                yield _sent(said, (name, number), is_keyed=is_keyed)
            except _Malformed as malformed:
                problems.note(name, number, str(malformed))


def _sent(said: Mapping[str, Any], at: tuple[str, int], *, is_keyed: bool) -> _Sent:
    if said.get("value") is None:
        raise _Malformed("`value` is missing: a record is known by it")
    offset = _optional(said, "offset", _count)
    acked = said.get("acked")
    if acked is None:
        acked = offset is not None and said.get("error") is None
    if not isinstance(acked, bool):
        raise _Malformed(f"`acked` is true or false, not {_shown(acked)}")
    return _Sent(
        identity=_identity(said, "value", is_keyed=is_keyed),
        topic=_optional(said, "topic", _text),
        partition=_optional(said, "partition", _count),
        offset=offset if acked else None,
        ts_ms=_optional(said, "ts", _count),
        acked=acked,
        producer=None if said.get("producer") is None else str(said["producer"]),
        at=at,
    )


def _find_twins(sends: Iterable[_Sent], problems: _Problems) -> None:
    first: dict[tuple[str | None, str], _Sent] = {}
    for each in sends:
        earlier = first.setdefault((each.topic, each.identity), each)
        if earlier is not each:
            file, line = earlier.at
            where = f"line {line}" if file == each.at[0] else f"{file}, line {line}"
            problems.note(
                *each.at,
                f"{quoted(each.identity)} was sent before ({where}): nothing tells these records apart",
            )


def _identity(said: Mapping[str, Any], name: str, *, is_keyed: bool) -> str:
    value = _as_text(said[name])
    return f"{_as_text(said.get('key'))}={value}" if is_keyed else value


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _text(said: Mapping[str, Any], name: str) -> str:
    if not isinstance(said.get(name), str):
        raise _Malformed(
            f"`{name}` is a text, not {_shown(said.get(name))}" if name in said else _missing(name)
        )
    return str(said[name])


def _count(said: Mapping[str, Any], name: str) -> int:
    number = said.get(name)
    if name not in said:
        raise _Malformed(_missing(name))
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < _COUNT_END:
        raise _Malformed(f"`{name}` is a whole number from 0 on, not {_shown(number)}")
    return number


def _optional(said: Mapping[str, Any], name: str, read: Callable[[Mapping[str, Any], str], T]) -> T | None:
    # Clients say -1 for what they do not know.
    return None if said.get(name) in (None, -1) else read(said, name)


def _missing(name: str) -> str:
    return f"`{name}` is missing"


def _shown(value: Any) -> str:
    return quoted(json.dumps(value, ensure_ascii=False))


# The history


def _operations(
    sends: Sequence[_Sent], reads: Sequence[_Read], places: _Places, only_topic: str | None
) -> Iterator[dict[str, Any]]:
    """Yield the operations: all sends, then what each reader read, then that there was nothing more."""
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


def _set_others_apart(
    sends: Iterable[_Sent], reads: Iterable[_Read], places: _Places, only_topic: str | None
) -> int:
    """Rename what was read elsewhere of records whose partition was derived; return how many records that concerns.

    Where two partitions have such a record, nothing says that it was sent to one of them alone.
    """
    derived = {(_topic_of(each, only_topic), each.identity) for each in sends if each.partition is None}
    scattered = set()
    for read in reads:
        for partition, pairs in read.pairs.items():
            for pair in pairs:
                record = (_topic(partition), pair[1])
                if record in derived and places[record][0] != partition:
                    scattered.add(record)
                    pair[1] = f"{pair[1]} ({partition})"
    return len(scattered)


def _places(sends: Iterable[_Sent], reads: Iterable[_Read], only_topic: str | None) -> _Places:
    """Return where each record of a topic was read first, at the offset that its acknowledgement says if it was read there."""
    acked = {(_topic_of(each, only_topic), each.identity): each.offset for each in sends}
    places: dict[tuple[str, str], tuple[str, int]] = {}
    for read in reads:
        for partition, pairs in read.pairs.items():
            for offset, identity in pairs:
                record, place = (_topic(partition), identity), (partition, offset)
                first = places.setdefault(record, place)
                if offset == acked.get(record) != first[1]:
                    places[record] = place
    return places


def _in_order(placed: Sequence[tuple[str, _Sent]], places: _Places) -> list[tuple[str, _Sent]]:
    """Return the sends of named producers as they were logged, and all others by offset, so that their order accuses nobody."""

    def order(item: tuple[str, _Sent]) -> tuple[str, float]:
        partition, sent = item
        read = places.get((_topic(partition), sent.identity), (partition, float("inf")))
        return partition, read[1] if sent.offset is None else sent.offset

    named = [item for item in placed if item[1].producer is not None]
    return [*named, *sorted((item for item in placed if item[1].producer is None), key=order)]


def _topic(partition: str) -> str:
    return partition.rpartition("-")[0]


def _topic_of(each: _Sent, only_topic: str | None) -> str:
    return each.topic or only_topic or "topic"


def _partition(each: _Sent, places: _Places, only_topic: str | None) -> str:
    topic = _topic_of(each, only_topic)
    if each.partition is not None:
        return f"{topic}-{each.partition}"
    found = places.get((topic, each.identity))
    return f"{topic}-{_NOWHERE}" if found is None else found[0]


def _operation(process: int, outcome: str, f: str, value: Any, time: int) -> dict[str, Any]:
    return {"process": process, "type": outcome, "f": f, "value": value, "time": time}

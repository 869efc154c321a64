"""Patterns of lines that differ only in numbers and texts.

A pattern is learned from one line, which the parser of JSON or EDN reads. Any line with the same
bytes between its numbers and texts means the same operation, with other numbers and texts.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic_core import from_json

from harrow.campaigns.large_histories.byte_block import PADDING_BYTES
from harrow.campaigns.record import history_line
from harrow.campaigns.record.edn import looks_like_edn, parse_edn
from harrow.cluster_model.history import INVOKE, OK, POLL, SEND
from harrow.cluster_model.lazy_dataclass import dataclass

PROCESS: Final = "process"
PARTITION: Final = "partition"
VALUE: Final = "value"
OFFSET: Final = "offset"
INDEX: Final = "index"
IGNORED: Final = "ignored"
WORD: Final = "word"
"""What a number or a text of a line means. A word names the type or the function."""

_TOKEN: Final = re.compile(rb'"[^"]*"|[0-9]+')
_FIRST_RECORD: Final = re.compile(rb'\{"[^"]*(":?[ ]?\[\[)[0-9]+(,[ ]?|[ ])"[^"]*"')
_BETWEEN_ENTRIES: Final = re.compile(rb'"\]\](,?[ ]?)"')
_END_OF_RECORDS: Final = b'"]]}'
_NUMBER: Final = 987_654_321
_TEXT: Final = "~another text~"
_JUDGED: Final = frozenset({"value", "type", "f", "rebalance-log"})
_LENGTH_MAX: Final = PADDING_BYTES // 4
_SEND_LENGTH: Final = 3


@dataclass(frozen=True, slots=True)
class Slot:
    """A part of a line that may be another number, or another text.

    A text ends at quote number ``quote`` of its line, counted from the last one if negative.
    """

    meaning: str
    is_text: bool
    quote: int


Pieces = tuple[bytes | Slot, ...]


@dataclass(frozen=True, slots=True)
class RecordGaps:
    """The bytes between the texts of polled records.

    After a partition is ``first``, an offset and ``comma``. Between two records of a partition is
    ``following``, an offset and ``comma``. Before another partition is ``next_partition``.
    """

    first: bytes
    comma: bytes
    following: bytes
    next_partition: bytes


@dataclass(frozen=True, slots=True)
class LineTemplate:
    """A pattern of lines with ``quotes`` quotes.

    ``words`` are the texts that name the type and the function, by the number of the quote before
    them. If the pattern has ``gaps``, polled records are between ``pieces`` and ``tail``, and have
    further quotes. ``returns`` is true if a poll returned, perhaps without records. Lines of EDN
    name the type and the function by keywords, which are not texts, so they have no words.
    """

    is_edn: bool

    type_: str
    f: str
    returns: bool
    quotes: int
    words: Mapping[int, bytes]
    pieces: Pieces
    gaps: RecordGaps | None = None
    tail: Pieces = ()


def learn(line: bytes) -> LineTemplate | None:
    """Return the pattern of a line, or None if such lines have no pattern."""
    if b"\\" in line:
        return None
    begin = end = 0
    gaps = None
    if (first := _FIRST_RECORD.search(line)) is not None:
        begin, end = first.start() + 1, line.find(_END_OF_RECORDS, first.end() - 1) + len(_END_OF_RECORDS) - 1
        if end < begin:
            return None
        comma = first[2]
        # EDN has no commas in vectors, but usually between the entries of a map.
        entries = _BETWEEN_ENTRIES.search(line, begin, end)
        entry = entries[1] if entries is not None else comma if comma.strip() else b", "
        gaps = RecordGaps(first[1], comma + b'"', b'"]' + comma + b"[", b'"]]' + entry + b'"')
    whole = line[:begin] + line[end:]
    is_edn = looks_like_edn(whole)
    operation = _operation(whole)
    if len(whole) > _LENGTH_MAX or operation is None:
        return None
    if gaps is not None and (operation["type"] != OK or operation["value"] != [[POLL, {}]]):
        return None
    pieces, words = _pieces(whole, operation, begin)
    meanings = {slot.meaning for part in pieces for slot in part if isinstance(slot, Slot)}
    if not _needed(operation) <= meanings or len(words) != (0 if is_edn else len(_WORDS)):
        return None
    head, tail = pieces
    if gaps is not None:
        tail = (_END_OF_RECORDS[:-1] + tail[0], *tail[1:])  # type: ignore[operator] # no slot stands beside the records
        head = (*head[:-1], head[-1] + b'"')  # type: ignore[operator] # no slot stands beside the records
    return LineTemplate(
        is_edn=is_edn,
        type_=operation["type"],
        f=operation["f"],
        returns=len(operation["value"][0]) > 1 and operation["f"] == POLL,
        quotes=whole.count(b'"'),
        words=words,
        pieces=head,
        gaps=gaps,
        tail=tail,
    )


_WORDS: Final = ("type", "f")


def _parsed(line: bytes) -> Any:
    return parse_edn(line.decode()) if looks_like_edn(line) else from_json(line)


def _operation(line: bytes) -> dict[str, Any] | None:
    """Return the operation of a line, if it is a send or a poll alone."""
    try:
        operation = _parsed(line)
        history_line.check_operation(operation)
    except (ValueError, history_line.MalformedOperation):
        return None
    if not isinstance(operation["process"], int) or operation.get("rebalance-log"):
        return None
    f, value = operation["f"], operation.get("value")
    is_alone = f in (SEND, POLL) and len(value) == 1
    if not is_alone or (f == POLL and len(value[0]) > 1 and (value[0][1] or operation["type"] == INVOKE)):
        return None
    return dict(operation)


def _needed(operation: Mapping[str, Any]) -> set[str]:
    """Return the meanings of the slots without which a template is useless."""
    if operation["f"] == POLL:
        return {PROCESS}
    written = operation["value"][0][2]
    has_offset = isinstance(written, list) and written[0] is not None
    return {PROCESS, PARTITION, VALUE, *([OFFSET] if has_offset else [])}


def _pieces(
    line: bytes, operation: Mapping[str, Any], split: int
) -> tuple[tuple[Pieces, Pieces], Mapping[int, bytes]]:
    """Return the pieces of a line before and after a place, and its words."""
    parts: tuple[list[bytes | Slot], list[bytes | Slot]] = ([], [])
    words: dict[int, bytes] = {}
    total = line.count(b'"')
    at = quotes = 0
    is_after = not split
    for token in _TOKEN.finditer(line):
        begin, end = token.span()
        if not is_after and begin >= split:
            parts[0].append(line[at:split])
            at, is_after = split, True
        part = parts[is_after and split > 0]
        is_text = line[begin] == ord('"')
        quote = quotes - total if is_after and split else quotes
        quotes += 2 * is_text
        meaning = _meaning(line, begin, end, operation)
        if meaning == WORD:
            words[quote] = line[begin + 1 : end]
        elif meaning is not None:
            part += [line[at : begin + is_text], Slot(meaning, is_text, quote + 1 if is_text else 0)]
            at = end - is_text
    if not is_after:
        parts[0].append(line[at:split])
        at = split
    parts[split > 0].append(line[at:])
    return (tuple(parts[0]), tuple(parts[1])), words


def _meaning(line: bytes, begin: int, end: int, operation: Mapping[str, Any]) -> str | None:
    """Return what a number or a text means, by what changes with it.

    Return None if it must stay the same.
    """
    is_text = line[begin] == ord('"')
    other = f'"{_TEXT}"'.encode() if is_text else str(_NUMBER).encode()
    try:
        changed = _parsed(line[:begin] + other + line[end:])
    except ValueError:
        return None
    if list(changed) != list(operation):
        return None
    fields = [field for field, value in operation.items() if changed[field] != value]
    if len(fields) != 1:
        return None
    field, wanted = fields[0], _TEXT if is_text else _NUMBER
    if field == "value":
        return _meaning_in_value(changed["value"][0], operation["value"][0], wanted)
    if changed[field] != wanted:
        return None
    if field in _WORDS:
        return WORD
    if field == PROCESS:
        return None if is_text else PROCESS
    if field == "index":
        return None if is_text else INDEX
    return IGNORED if field != "time" or not is_text else None


def _meaning_in_value(changed: Sequence[Any], micro: Sequence[Any], wanted: str | int) -> str | None:
    if micro[0] != SEND or changed[0] != SEND or len(changed) != _SEND_LENGTH:
        return None
    if changed[1] == wanted:
        return PARTITION
    written = changed[2]
    if not isinstance(written, list):
        return VALUE if written == wanted else None
    if written[1] == wanted:
        return VALUE
    return OFFSET if written[0] == wanted and isinstance(wanted, int) else None

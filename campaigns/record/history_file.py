"""Reads histories, as lines of JSON or as Jepsen's EDN, and reports the line of every mistake.

Many lines are parsed at once, which is twice as fast as one by one. If that fails, they are parsed
one by one to locate the mistake. `harrow.campaigns.record.history_line` describes an operation, and
a `harrow.checks.history.index.HistoryIndex` interprets it.
"""

import codecs
import gc
import gzip
import re
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, compress, islice
from operator import itemgetter
from typing import IO, Any, Final, Protocol, cast

from pydantic_core import from_json

from harrow.campaigns.language.problem import FileError, Problem
from harrow.campaigns.record import history_line
from harrow.campaigns.record.edn import (
    EdnError,
    ElementsOfVector,
    begins_vector_of_maps,
    looks_like_edn,
    parse_edn,
)
from harrow.campaigns.storage.location import LocalLocation, Location
from harrow.checks.history.index import HistoryIndex, OperationColumns
from harrow.cluster_model.history import POLL, SEND, TXN

LINE_MAX_BYTES: Final = 8 << 20
"""The default limit of a line. A parsed line takes up to thirty times its length."""

MEMORY_MAX_BYTES: Final = 1 << 30
"""The default memory limit of a history, as estimated by `HistoryIndex.memory_bytes`."""

UNPACKED_MAX_BYTES: Final = 64 << 20
"""The size to which any compressed file may unpack. A large file may unpack to 64 times its size.

gzip can compress at a ratio of 1032 to 1, so a file of a few megabytes could fill the memory.
Histories compress at 10 to 1, up to 30 to 1.
"""

_UNPACKED_RATIO: Final = 64
_LINE_BYTES_MIN: Final = 32
"""A shorter line of a compressed file counts as this size, because reading it takes as long."""

_LINES_AT_ONCE: Final = 512
"""So many parsed lines stay in the processor's cache until they are indexed. With 4096, reading
takes twice as long."""
_BYTES_AT_ONCE: Final = 1 << 20
_PROBLEMS_MAX: Final = 20
_MALFORMED_MAX: Final = 10_000
"""After so many malformed lines, reading stops, because the file is surely not a history."""
GZIP_MAGIC: Final = b"\x1f\x8b"
_NS_PER_US: Final = 1_000

_LINE_OF_HISTORY_TXT: Final = re.compile(rb"(?:\d+|:[\w.-]+)\t:(?:invoke|ok|fail|info)\t:")
_HISTORY_TXT_MESSAGE: Final = (
    "this is the history.txt of a Jepsen test, which lacks data that the rules need, such as rebalances; "
    "use the history.edn beside it"
)

_INT: Final = frozenset({int})
_STR: Final = frozenset({str})
_LIST: Final = frozenset({list})
_VALUES: Final = frozenset({str, int})
_BRACE: Final = frozenset(b"{")
_TWO: Final = frozenset({2})
_THREE: Final = frozenset({3})
_SEND_ONLY: Final = frozenset({SEND})
_POLL_ONLY: Final = frozenset({POLL})
_first: Final = itemgetter(0)
_second: Final = itemgetter(1)
_third: Final = itemgetter(2)
_fields: Final = itemgetter("process", "type", "f", "value", "time", "index")


class OperationSink(Protocol):
    """Takes the operations of a history. `HistoryIndex` is one."""

    def add(self, operations: OperationColumns) -> None:
        """Add the next operations.

        Raises `MalformedOperation`, and adds none, if their numbers are not in order.
        """

    def pass_over(self, time_us: int, number: int) -> None:
        """Add an operation that belongs to no client."""

    def next_number(self) -> int:
        """Return the number of the next operation, if the history does not number it."""

    def take_any_offset(self) -> None:
        """Make room for offsets of more than 64 bits."""

    def memory_bytes(self) -> int:
        """Estimate the memory that the operations take."""

    def finish(self) -> None:
        """End the history."""


class HistoryError(FileError):
    """A history that cannot be judged: its first ``problems``, and how many ``more`` it has."""

    def __init__(self, problems: Iterable[Problem], more: int = 0) -> None:
        super().__init__(problems)
        self.more = more


class UnreadableLine(Exception):
    """A line from which on a file cannot be read. The message gives the reason."""


@contextmanager
def open_history(
    place: Location | None,
    stdin: IO[bytes],
    *,
    line_max: int = LINE_MAX_BYTES,
    unpacked_max: int = UNPACKED_MAX_BYTES,
) -> Iterator[Iterable[bytes]]:
    """Open a history for reading, and decompress it. Without a place, it comes from *stdin*.

    The iterator raises `UnreadableLine` at a line longer than *line_max* bytes, where a compressed
    file is damaged, and where it has unpacked to more than *unpacked_max* bytes
    (`UNPACKED_MAX_BYTES`).

    Raises ``OSError`` if the file cannot be opened.
    """
    if place is None:
        yield lines_of(stdin, line_max=line_max, unpacked_max=unpacked_max)
    else:
        # A path may be a pipe.
        with place.path.open("rb") if isinstance(place, LocalLocation) else place.open() as stream:
            yield lines_of(stream, line_max=line_max, unpacked_max=unpacked_max)


def lines_of(stream: IO[bytes], *, line_max: int, unpacked_max: int) -> Iterator[bytes]:
    """Yield the lines of a stream, like `open_history`."""
    peek = getattr(stream, "peek", None)
    is_packed = peek is not None and peek(len(GZIP_MAGIC))[: len(GZIP_MAGIC)] == GZIP_MAGIC
    return _unpacked(stream, line_max, unpacked_max) if is_packed else bounded_lines(stream, line_max)


class _CountingStream:
    """Counts the bytes read from a stream."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.size = 0

    def read(self, size: int = -1) -> bytes:
        content = self._stream.read(size)
        self.size += len(content)
        return content


def bounded_lines(stream: IO[bytes] | gzip.GzipFile, line_max: int) -> Iterator[bytes]:
    """Yield the lines of a stream.

    Raises `UnreadableLine` at a line longer than *line_max* bytes.
    """
    for line in iter(partial(stream.readline, line_max + 1), b""):
        if len(line) > line_max:
            raise UnreadableLine(f"longer than {line_max} bytes (--max-line)")
        yield line


def _unpacked(stream: IO[bytes], line_max: int, unpacked_max: int) -> Iterator[bytes]:
    packed = _CountingStream(stream)
    unpacked = 0
    try:
        with gzip.GzipFile(fileobj=cast("IO[bytes]", packed)) as file:
            for line in bounded_lines(file, line_max):
                unpacked += max(len(line), _LINE_BYTES_MIN)
                if unpacked > max(unpacked_max, _UNPACKED_RATIO * packed.size):
                    raise UnreadableLine(
                        f"the compressed file unpacks to more than {unpacked_max >> 20} MiB, and to more than "
                        f"{_UNPACKED_RATIO} times its size (--max-unpacked)"
                    )
                yield line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UnreadableLine(f"the compressed file is damaged: {error}") from None


def read_history(
    lines: Iterable[bytes],
    name: str,
    *,
    line_max: int = LINE_MAX_BYTES,
    memory_max: int = MEMORY_MAX_BYTES,
) -> HistoryIndex:
    """Read a history into an index, like `read_operations`."""
    history = HistoryIndex()
    read_operations(lines, name, history, line_max=line_max, memory_max=memory_max)
    return history


def read_operations(
    lines: Iterable[bytes],
    name: str,
    sink: OperationSink,
    *,
    line_max: int = LINE_MAX_BYTES,
    memory_max: int = MEMORY_MAX_BYTES,
) -> None:
    """Read the operations of a history. Messages call the file *name*.

    Raise ``HistoryError`` if lines are malformed, with the first twenty and the number of others.
    Reading stops at a line that cannot be read, or at which the history takes more than
    *memory_max* bytes. An operation in a vector may have at most *line_max* characters. The garbage
    collector is off during the reading, because nearly all objects stay alive.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        _Reader(name, sink, line_max, memory_max).read(iter(lines))
    finally:
        if collecting:
            gc.enable()


def _is_history_txt(lines: Iterable[bytes]) -> bool:
    return _LINE_OF_HISTORY_TXT.match(next(filter(bytes.strip, lines), b"")) is not None


class _Reader:
    def __init__(self, name: str, sink: OperationSink, line_max: int, memory_max: int) -> None:
        self._name = name
        self._sink = sink
        self._line_max = line_max
        self._memory_max = memory_max
        self._problems: list[Problem] = []
        self._malformed = 0
        self._has_ended = False
        self._is_edn = False

    def read(self, lines: Iterator[bytes]) -> None:
        first = self._next_chunk(lines, 1)
        if _is_history_txt(first):
            self._note(1, 1, _HISTORY_TXT_MESSAGE)
        elif begins_vector_of_maps(first):
            self._is_edn = True
            self._read_vector(first, lines)
        else:
            self._read_lines(first, lines)
        self._sink.finish()
        if self._malformed:
            raise HistoryError(self._problems, self._malformed - len(self._problems))

    def _read_lines(self, chunk: list[bytes], lines: Iterator[bytes]) -> None:
        line_number = 1
        while chunk:
            self._is_edn = self._is_edn or looks_like_edn(next(filter(bytes.strip, chunk), b""))
            self._read_chunk(chunk, line_number)
            line_number += len(chunk)
            chunk = [] if self._is_over(line_number) else self._next_chunk(lines, line_number)

    def _read_vector(self, chunk: list[bytes], lines: Iterator[bytes]) -> None:
        """Read a history that is one EDN vector, in which line breaks do not matter."""
        vector = ElementsOfVector(self._texts(chunk, lines), self._line_max)
        try:
            for operations in vector:
                if not self._add_together(operations) and not self._add_singly(vector, operations):
                    return
        except EdnError as error:
            if not self._has_ended:
                self._note(*vector.place(error.position), f"not EDN: {error.reason}")
        except ValueError as error:
            self._note(1, 1, f"not EDN: {error}")

    def _add_singly(self, vector: ElementsOfVector, operations: list[Any]) -> bool:
        """Add operations of a vector one by one; return False after too many malformed ones."""
        for number, operation in enumerate(operations):
            if self._malformed >= _MALFORMED_MAX:
                self._end(vector.place_of(number)[0], self._too_malformed())
                return False
            try:
                _add(self._sink, operation)
            except history_line.MalformedOperation as malformed:
                # Locating an operation takes time, so only listed ones are located.
                is_listed = len(self._problems) < _PROBLEMS_MAX
                place = vector.place_of(number) if is_listed else (1, 1)
                self._note(*place, malformed.reason)
        return True

    def _texts(self, chunk: list[bytes], lines: Iterator[bytes]) -> Iterator[str]:
        line_number = 1
        while chunk:
            whole = b"".join(chunk)
            try:
                yield whole.decode()
            except UnicodeDecodeError as error:
                begins = whole.rfind(b"\n", 0, error.start) + 1
                column = len(whole[begins : error.start].decode()) + 1
                self._note(line_number + whole.count(b"\n", 0, error.start), column, "not UTF-8")
                self._has_ended = True
                return
            line_number += len(chunk)
            chunk = [] if self._is_over(line_number) else self._next_chunk(lines, line_number)

    def _is_over(self, line_number: int) -> bool:
        """Return whether reading stops before this line: the file is damaged, or memory is full."""
        if not self._has_ended and self._sink.memory_bytes() > self._memory_max:
            self._end(
                line_number,
                f"the operations before this line take more than {self._memory_max >> 20} MiB of memory (--max-memory)",
            )
        return self._has_ended

    def _next_chunk(self, lines: Iterator[bytes], line_number: int) -> list[bytes]:
        chunk: list[bytes] = []
        size = 0
        try:
            for line in islice(lines, _LINES_AT_ONCE):
                chunk.append(line)
                size += len(line)
                if size > _BYTES_AT_ONCE:
                    break
            if line_number == 1 and chunk:
                chunk[0] = chunk[0].removeprefix(codecs.BOM_UTF8)
        except UnreadableLine as unreadable:
            self._end(line_number + len(chunk), str(unreadable))
        return chunk

    def _read_chunk(self, chunk: list[bytes], line_number: int) -> None:
        """Read lines together if all are plain operations (`_columns`), else one by one."""
        operations = _elements(chunk) if self._is_edn else _objects(chunk)
        if operations is None or not self._add_together(operations):
            self._read_singly(chunk, line_number)

    def _add_together(self, operations: list[Any]) -> bool:
        """Add operations if all are plain, and return whether they are."""
        columns = _columns(operations)
        if columns is None:
            return False
        try:
            self._sink.add(columns)
        except history_line.MalformedOperation:
            return False
        return True

    def _read_singly(self, chunk: list[bytes], line_number: int) -> None:
        for number, line in enumerate(chunk, line_number):
            if line.isspace():
                continue
            if self._malformed >= _MALFORMED_MAX:
                self._end(number, self._too_malformed())
                return
            try:
                _add(self._sink, parse_edn(line.decode()) if self._is_edn else from_json(line.rstrip()))
            except EdnError as error:
                self._note(number, error.position + 1, f"not EDN: {error.reason}")
            except ValueError as error:
                if not _is_text(line):
                    self._end(number, "not text: a history is JSON lines or EDN, in UTF-8")
                    return
                column, reason = syntax_error(line, error)
                self._note(number, column, reason)
            except history_line.MalformedOperation as malformed:
                field = b":%s" if self._is_edn else b'"%s"'
                column = line.find(field % malformed.field.encode()) + 1
                self._note(number, max(column, 1), malformed.reason)

    def _too_malformed(self) -> str:
        return f"{self._malformed} operations before this line are malformed, so the rest is not read"

    def _end(self, line: int, message: str) -> None:
        """Report why reading stops. In a full list of problems, this one replaces the last."""
        del self._problems[_PROBLEMS_MAX - 1 :]
        self._note(line, 1, message)
        self._has_ended = True

    def _note(self, line: int, column: int, message: str) -> None:
        self._malformed += 1
        if len(self._problems) < _PROBLEMS_MAX:
            self._problems.append(Problem(self._name, line, column, message))


def _objects(chunk: list[bytes]) -> list[Any] | None:
    """Parse lines of JSON; None if one of them is not an object."""
    if not _BRACE.issuperset(map(_first, chunk)):
        return None
    try:
        operations: list[Any] = from_json(b"[" + b",".join(chunk) + b"]")
    except ValueError:
        return None
    return operations if len(operations) == len(chunk) else None


def _elements(chunk: list[bytes]) -> list[Any] | None:
    """Parse lines of EDN; None if one of them is not a single element."""
    try:
        return [parse_edn(line.decode()) for line in chunk if not line.isspace()]
    except ValueError:
        return None


def _columns(operations: list[Any]) -> OperationColumns | None:
    """Return the columns of operations; None if an operation is not plain.

    An operation is plain if it sends or polls, is well-formed, and has no rebalance log. Whole
    columns are checked with built-in functions, which is faster than a loop.
    """
    try:
        if any("rebalance-log" in operation for operation in operations):
            return None
        processes, types, functions, values, times_ns, numbers = zip(*map(_fields, operations), strict=True)
        if not history_line.JUDGED.issuperset(functions):
            return None
        sends = list(chain.from_iterable(compress(values, map(SEND.__eq__, functions))))
        polls = list(chain.from_iterable(compress(values, map(POLL.__eq__, functions))))
        for micro in chain.from_iterable(compress(values, map(TXN.__eq__, functions))):
            (sends if micro[0] == SEND else polls).append(micro)
        if not (
            _are_counts(processes)
            and _LIST.issuperset(map(type, values))
            and history_line.TYPES.issuperset(types)
            and _are_counts(times_ns)
            and _are_counts(numbers)
            and _are_sends(sends)
            and _are_polls(polls)
        ):
            return None
    except (ValueError, KeyError, TypeError, IndexError):
        return None
    times_us = [time_ns // _NS_PER_US for time_ns in times_ns]
    return OperationColumns(processes, types, functions, values, times_us, numbers)


def _are_counts(column: Collection[Any]) -> bool:
    return (
        _INT.issuperset(map(type, column))
        and min(column, default=0) >= 0
        and max(column, default=0) < history_line.NUMBER_END
    )


def _are_values(column: Iterable[Any]) -> bool:
    return _VALUES.issuperset(map(type, column))


def _are_pairs(pairs: Collection[Any]) -> bool:
    return _LIST.issuperset(map(type, pairs)) and _TWO.issuperset(map(len, pairs))


def _are_sends(micros: Collection[Any]) -> bool:
    if not (_LIST.issuperset(map(type, micros)) and _THREE.issuperset(map(len, micros))):
        return False
    written = list(map(_third, micros))
    pairs = [pair for pair in written if type(pair) is list]
    offsets = [offset for offset in map(_first, pairs) if offset is not None]
    return (
        _SEND_ONLY.issuperset(map(_first, micros))
        and _convert_keys(micros)
        and _are_pairs(pairs)
        and _are_counts(offsets)
        and _are_values(map(_second, pairs))
        and _are_values(value for value in written if type(value) is not list)
    )


def _convert_keys(micros: Collection[Any]) -> bool:
    """Convert keys to strings, and return whether all of them can be converted."""
    keys = list(map(_second, micros))
    if not _STR.issuperset(map(type, keys)):
        if not _are_values(keys):
            return False
        for micro in micros:
            # Jepsen's keys are numbers. In polls they are names of JSON fields, and so strings.
            # Sends need the same strings.
            micro[1] = str(micro[1])
    return True


def _are_polls(micros: Collection[Any]) -> bool:
    if not (_LIST.issuperset(map(type, micros)) and _POLL_ONLY.issuperset(map(_first, micros))):
        return False
    polled = [micro for micro in micros if len(micro) != 1]
    if not _TWO.issuperset(map(len, polled)):
        return False
    read = list(chain.from_iterable(map(dict.values, map(_second, polled))))
    if not _LIST.issuperset(map(type, read)):
        return False
    pairs = list(chain.from_iterable(read))
    return _are_pairs(pairs) and _are_counts(list(map(_first, pairs))) and _are_values(map(_second, pairs))


def _is_text(line: bytes) -> bool:
    """Return whether a line is UTF-8 without the zero bytes that binary files have."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in line


def syntax_error(line: bytes, error: ValueError) -> tuple[int, str]:
    """Return the column and the reason why a line is not JSON."""
    text = str(error)
    match = re.search(r"^(.*) at line 1 column (\d+)$", text)
    if match is None:
        return 1, f"not JSON: {text}"
    # The parser counts bytes from 1; 0 is the end of an empty line.
    before = line[: max(int(match[2]) - 1, 0)]
    return len(before.decode("utf-8", "replace")) + 1, f"not JSON: {match[1]}"


def _add(sink: OperationSink, operation: Any) -> None:
    """Add one operation of any kind.

    Raises `MalformedOperation` with its first mistake.
    """
    history_line.check_operation(operation)
    process, f = operation["process"], operation["f"] if isinstance(operation["process"], int) else None
    time_us = (operation.get("time") or 0) // _NS_PER_US
    number = operation.get("index")
    number = sink.next_number() if number is None else number
    if f is None:
        sink.pass_over(time_us, number)
        return
    value: list[Any] = []
    rebalanced: frozenset[str] = frozenset()
    if f in history_line.ASSIGNING:
        value = list(map(str, operation["value"]))
    elif f in history_line.JUDGED:
        value = [
            [SEND, str(micro[1]), micro[2]] if micro[0] == SEND else micro for micro in operation["value"]
        ]
        if max(history_line.offsets(value), default=0) >= history_line.NUMBER_END:
            sink.take_any_offset()
        rebalanced = frozenset(
            str(key)
            for event in history_line.rebalances(operation.get("rebalance-log"))
            for key in event["keys"]
        )
    sink.add(
        OperationColumns([process], [operation["type"]], [f], [value], [time_us], [number], {0: rebalanced})
    )

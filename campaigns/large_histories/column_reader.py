"""Reads the lines of a history into columns of events, without an object for each operation.

Lines that look like earlier ones are read together (`LineTemplate`). `read_operations` reads the
others, so that it alone decides what is malformed.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from harrow.campaigns.large_histories.byte_block import ByteBlock, Flags, Ints
from harrow.campaigns.large_histories.event_columns import EventColumns
from harrow.campaigns.large_histories.events import NONE, Events, concatenated, events_of
from harrow.campaigns.large_histories.line_template import (
    INDEX,
    OFFSET,
    PARTITION,
    PROCESS,
    VALUE,
    LineTemplate,
    learn,
)
from harrow.campaigns.large_histories.numbering import Numbering, sorted_set
from harrow.campaigns.large_histories.operation_order import OperationOrder
from harrow.campaigns.large_histories.tables import (
    ACKED,
    FAILED,
    INVOKED,
    LINES,
    POLL_ENDED,
    POLL_INVOKED,
    POLLED,
    POLLED_TOGETHER,
    SENT_NOTHING,
    UNSURE,
)
from harrow.campaigns.large_histories.tables import PROCESS as PROCESS_ROW
from harrow.campaigns.large_histories.template_match import Match, match
from harrow.campaigns.record.edn import looks_like_edn
from harrow.campaigns.record.history_file import read_operations
from harrow.cluster_model.history import FAIL, INFO, INVOKE, OK, POLL

_TEMPLATES_MAX: Final = 64
_ATTEMPTS_MAX: Final = 8
"""So many lines of a block may turn out to have no template, before no more are tried."""

_SENDS: Final = {INVOKE: INVOKED, OK: ACKED, FAIL: FAILED, INFO: UNSURE}


class UnusualLinesError(Exception):
    """A file has lines that are no maps, or in no order, so it must be read as a whole."""


class _NumberedOrder(OperationOrder):
    """Notes the numbers of operations, which are their positions."""

    def __init__(self) -> None:
        super().__init__(numbered=True)
        self.found: list[int] = []

    def positions(self, numbers: Iterable[int]) -> Sequence[int]:
        found = super().positions(numbers)
        self.found += found
        return found


class ColumnReader:
    """Reads the blocks of a file in their order.

    Afterwards, ``partitions`` has their names, ``processes`` the clients, ``lines`` and
    ``passed_over`` count operations, and ``sends_nothing`` tells whether there is a send without
    records. ``polls_together`` is that of `HistoryIndex`. ``positions`` and ``rows`` are the
    positions and the lines of the operations of the last block. If the history is *numbered*, its
    numbers are the positions.
    """

    def __init__(self, *, numbered: bool = False) -> None:
        self.positions: Ints = np.zeros(0, np.int64)
        self.rows: Ints = np.zeros(0, np.int64)
        self.partitions: list[str] = []
        self.processes: set[int] = set()
        self.lines = 0
        self.passed_over = 0
        self.sends_nothing = False
        self.polls_together = False
        self._templates: list[LineTemplate] = []
        self._partition_numbering = Numbering()
        self._is_numbered = numbered
        self._is_edn: bool | None = None
        self._last_position = NONE

    @property
    def partition_hashes(self) -> Ints:
        """Return the hashes of the names of partitions."""
        return self._partition_numbering.keys()

    def read(self, block: ByteBlock) -> Events:
        """Return the events of a block.

        Raises:
            HistoryError: A line is malformed. The messages have other line numbers.
            UnusualLinesError: The file must be read as a whole.

        """
        is_left = np.ones(len(block.starts), np.bool_)
        matches = list(self._matches(block, is_left))
        others = np.flatnonzero(is_left)
        slow = [number for number in others.tolist() if not block.line(number).isspace()]
        is_operation = ~is_left
        is_operation[slow] = True
        positions = self.lines + np.cumsum(is_operation) - is_operation
        self.lines += int(np.count_nonzero(is_operation))
        if self._is_numbered:
            for _, found in matches:
                if INDEX not in found.columns:
                    raise UnusualLinesError
                positions[found.lines] = found.columns[INDEX]
        parts = [self._events(template, found, block, positions) for template, found in matches]
        if slow:
            parts.append(self._read_singly([block.line(number) for number in slow], slow, positions))
        self._note_positions(positions, np.flatnonzero(is_operation))
        events = concatenated(parts)
        self.processes.update(sorted_set(events.process).tolist())
        return events

    def _note_positions(self, positions: Ints, rows: Ints) -> None:
        self.rows, self.positions = rows, positions[rows]
        if self._is_numbered and len(rows):
            if self.positions[0] <= self._last_position or np.any(np.diff(self.positions) <= 0):
                raise UnusualLinesError
            self._last_position = int(self.positions[-1])

    def totals(self) -> Events:
        """Return the rows about the operations as a whole."""
        one, zero = np.ones(1, np.int64), np.zeros(1, np.int64)
        processes = np.array(sorted(self.processes), np.int64)
        parts = [
            events_of(PROCESS_ROW, np.zeros(len(processes), np.int64), processes),
            events_of(LINES, one * self.lines, zero, place=one * self.passed_over),
        ]
        kinds = (SENT_NOTHING, self.sends_nothing), (POLLED_TOGETHER, self.polls_together)
        return concatenated([*parts, *(events_of(kind, zero, zero) for kind, is_so in kinds if is_so)])

    def _matches(self, block: ByteBlock, is_left: Flags) -> Iterator[tuple[LineTemplate, Match]]:
        tried = np.zeros(len(is_left), np.bool_)
        attempts = 0
        templates = list(self._templates)
        while True:
            for template in templates:
                found = match(template, block, np.flatnonzero(is_left & block.is_simple))
                if found is not None:
                    is_left[found.lines] = False
                    yield template, found
            new = np.flatnonzero(is_left & block.is_simple & ~tried)
            if not len(new) or attempts == _ATTEMPTS_MAX or len(self._templates) == _TEMPLATES_MAX:
                return
            tried[new[0]] = True
            learned = learn(block.line(int(new[0])).removesuffix(b"\n"))
            if learned is not None:
                self._note_notation(is_edn=learned.is_edn)
            templates = [] if learned is None else [learned]
            self._templates += templates
            attempts += learned is None

    def _events(self, template: LineTemplate, found: Match, block: ByteBlock, positions: Ints) -> Events:
        """Return the events of lines that match a template."""
        position, process = positions[found.lines], found.columns[PROCESS]
        if template.f != POLL:
            partition = self._partition_numbers(block, found.columns[PARTITION], *found.spans[PARTITION])
            return events_of(
                _SENDS[template.type_],
                position,
                process,
                partition=partition,
                value=found.columns[VALUE],
                offset=found.columns.get(OFFSET),
            )
        if template.type_ == INVOKE:
            return events_of(POLL_INVOKED, position, process)
        if template.type_ != OK or not template.returns:
            self.processes.update(process.tolist())
            return events_of(POLL_ENDED, position[:0], process[:0])
        ended = events_of(POLL_ENDED, position, process)
        records = found.polled
        if records is None:
            return ended
        self.polls_together = self.polls_together or bool(records.places.any())
        numbers = self._partition_numbers(block, records.partition_hashes, *records.partition_spans)
        polled = events_of(
            POLLED,
            position[records.lines],
            process[records.lines],
            partition=numbers[records.partitions],
            value=records.values,
            offset=records.offsets,
            place=records.places,
        )
        return concatenated([polled, ended])

    def _partition_numbers(self, block: ByteBlock, hashes: Ints, starts: Ints, ends: Ints) -> Ints:
        """Return the numbers of partitions, given the hashes and the places of their names."""
        numbers, firsts = self._partition_numbering.add(hashes)
        self.partitions += [block.text(starts[first], ends[first]) for first in firsts.tolist()]
        return numbers

    def _read_singly(self, lines: Sequence[bytes], rows: Sequence[int], positions: Ints) -> Events:
        """Read some lines of a block, which are *rows* of *positions*."""
        for line in lines:
            is_edn = looks_like_edn(line)
            if not is_edn and not line.lstrip().startswith(b"{"):
                raise UnusualLinesError
            self._note_notation(is_edn=is_edn)
        found: list[pa.RecordBatch] = []
        numbered = _NumberedOrder()
        order = numbered if self._is_numbered else OperationOrder(listed=positions[rows].tolist())
        read_operations(lines, "", EventColumns(found.append, order))
        if self._is_numbered:
            if len(numbered.found) != len(rows):
                raise UnusualLinesError
            positions[rows] = numbered.found
        batches = pa.Table.from_batches(found).combine_chunks().to_batches()
        parts = [self._numbered(batch) for batch in batches]
        return concatenated(parts)

    def _note_notation(self, *, is_edn: bool) -> None:
        """Refuse a file that mixes JSON and EDN."""
        if self._is_edn is None:
            self._is_edn = is_edn
        elif self._is_edn != is_edn:
            raise UnusualLinesError

    def _numbered(self, batch: pa.RecordBatch) -> Events:
        """Return the events of rows with texts, and note what other rows tell."""
        names, values, *columns = batch.columns
        numbers = [column.fill_null(NONE).to_numpy(zero_copy_only=False) for column in columns]
        offset, position, place, process, kind, together = numbers
        self.processes.update(process[kind == PROCESS_ROW].tolist())
        self.passed_over += int(place[kind == LINES].sum())
        self.sends_nothing |= bool((kind == SENT_NOTHING).any())
        self.polls_together |= bool((kind == POLLED_TOGETHER).any())
        named = np.flatnonzero(names.is_valid().to_numpy(zero_copy_only=False))
        text, starts, ends = _texts(names)
        partition = np.full(len(batch), NONE, np.int64)
        hashes = text.hashes(starts[named], ends[named])
        partition[named] = self._partition_numbers(text, hashes, starts[named], ends[named])
        text, starts, ends = _texts(values)
        events = Events(
            partition, text.hashes(starts, ends), offset, position, place, process, kind, together
        )
        return events.take(kind < PROCESS_ROW)


def _texts(column: pa.Array) -> tuple[ByteBlock, Ints, Ints]:
    """Return the texts of a column as a block, and where each begins and ends."""
    _, offsets, characters = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    content = b"" if characters is None else characters.to_pybytes()
    return ByteBlock(content + b"\n"), ends[:-1], ends[1:]

"""The tables of a large history, and the engine that computes them: DuckDB or Spark.

The tables are columns of numbers, so that an engine can sort and group 10^9 records. Values are
hashed: equal values have equal hashes. Two values with the same hash look suspicious, so both stay
in the reduced history, which has the values themselves.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

import pyarrow as pa

INVOKED: Final = 0
ACKED: Final = 1
FAILED: Final = 2
UNSURE: Final = 3
POLLED: Final = 4
POLLED_IN_VAIN: Final = 5
"""The kinds of events. A send is invoked and has one of three outcomes. The records of a poll count
as polled in vain if the operation failed or its outcome is unknown."""

POLL_INVOKED: Final = 6
POLL_ENDED: Final = 7
ASSIGNMENT: Final = 8
ASSIGNED_PARTITION: Final = 9
"""The kinds of rows about consumers: a poll was invoked or ended well, partitions were assigned,
and each of these partitions."""

PROCESS: Final = 10
PASSED_OVER: Final = 11
LINES: Final = 12
"""The kinds of other rows: a process has operations, a line belongs to no client, and a part of the
history (``process``) has so many lines (``position``), of which some (``place``) belong to no
client."""

SENT_NOTHING: Final = 13
"""The kind of rows about sends without records. They show how a history names transactions."""

KNOWN_SUSPECT: Final = 14
"""The kind of rows about records that are suspects for reasons outside the tables."""

POLLED_TOGETHER: Final = 15
"""The kind of rows that say that an operation polled several records of a partition that was not
rebalanced."""

NOT_PLAIN: Final = 99
"""The kind of rows about lines that are malformed, or that this reader does not understand."""

PLACE_BITS: Final = 32
"""The place of an event in its operation: the number of the micro-operation, followed by the number
of the record in its list, with so many bits."""

BUCKET_BITS: Final = 20
"""Positions and offsets that differ only in the last bits are in one bucket. A window never spans
more than a bucket, so that a single partition or process can be judged by many tasks."""

ROWS: Final = "history_rows"
"""The table that a reader of the history fills: ``partition``, ``value`` (a hash),
``record_offset`` (or null), ``position`` and ``place`` of the event, ``process``, ``kind``, and
``together`` (`CALLED_TXN` or `CALLED_SEND` if the operation is a transaction, otherwise 0). The
tables below are parts of it."""

CALLED_TXN: Final = 1
CALLED_SEND: Final = 2
"""What a history calls a transaction."""

EVENTS: Final = "events"
POLLS: Final = "polls"
ASSIGNMENTS: Final = "assignments"
ASSIGNED: Final = "assigned"

VIEWS: Final = {
    EVENTS: f"select * from {ROWS} where kind <= {POLLED_IN_VAIN}",
    POLLS: f"select position, process, kind from {ROWS} where kind in ({POLL_INVOKED}, {POLL_ENDED})",
    ASSIGNMENTS: f"select position, process from {ROWS} where kind = {ASSIGNMENT}",
    ASSIGNED: f"select position, process, partition from {ROWS} where kind = {ASSIGNED_PARTITION}",
}


STORIES: Final = "stories"
"""One row for each value of each partition: what happened to it."""

SCATTERED: Final = "scattered"
KNOWN: Final = "known"
"""One row for each known offset of a value."""

WORDS: Final = "words"
"""The known offsets of each partition as bits, which take much less space and time than sorting.

A word has the bits of 32 offsets, its ``number``, and ``base``, the number of known offsets before
it. There are more ``entries`` than bits if an offset has several values."""

WORD_BITS: Final = 5

JUMPS: Final = "real_jumps"
"""One row for each jump of a consumer that skipped known records or went back: ``partition``,
``from_offset``, ``to_offset`` and their ranks. The gaps between the sends of a transaction are
there, too."""

SUSPECTS: Final = "suspects"
"""One row for each record that rules need: ``partition``, ``value``."""


def bits_below(bits: str, offset: str) -> str:
    """Return the SQL of how many offsets of a word are below an offset."""
    place = f"cast({offset} & {(1 << WORD_BITS) - 1} as int)"
    return f"bit_count({bits} & ((cast(1 as bigint) << {place}) - 1))"


class TablesError(Exception):
    """An engine cannot compute a table. The message gives the reason."""


class TableEngine(Protocol):
    """Computes tables with SQL that DuckDB and Spark both understand."""

    def define(self, name: str, query: str) -> None:
        """Compute a table once, and keep it."""

    def view(self, name: str, query: str) -> None:
        """Name a query, which is computed at each use."""

    def load(self, name: str, table: pa.Table) -> None:
        """Store a small table."""

    def rows(self, query: str) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a small result."""

    def stream(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a large result."""


def exists(tables: TableEngine, table: str) -> bool:
    return bool(tables.rows(f"select 1 from {table} limit 1"))

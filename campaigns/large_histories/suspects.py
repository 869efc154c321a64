"""Finds the records of a history that rules need, with SQL.

A record is plain if it was sent at most once, was acknowledged and polled at one offset that no
other value has, follows its predecessor in the order of its sender and of each of its readers, and
is part of no transaction. All other records are suspects. The rules give the same findings for a
history with the suspects alone (`harrow.checks.history.removed_records`). A suspect may turn out to
be plain, but a record that a rule needs must never be missing.
"""

from string import Template
from typing import Final

from harrow.campaigns.large_histories.tables import (
    ACKED,
    ASSIGNMENTS,
    BUCKET_BITS,
    EVENTS,
    FAILED,
    INVOKED,
    POLLED,
    POLLED_IN_VAIN,
    UNSURE,
    TableEngine,
)
from harrow.checks.history.witness import SKIPPED_SHOWN

SUSPECTS: Final = "suspects"
"""One row for each suspect: ``partition``, ``value``."""

STORIES: Final = "stories"
"""One row for each value of each partition: what happened to it."""

JUMPS: Final = "real_jumps"
"""One row for each jump of a consumer that skipped known records or went back: ``partition``,
``from_offset``, ``to_offset`` and their ranks."""

_STORIES: Final = f"""
select partition, value,
    count(*) filter (where kind = {INVOKED}) as invoked,
    count(*) filter (where kind in ({ACKED}, {FAILED}, {UNSURE})) as completed,
    count(*) filter (where kind = {ACKED}) as acked,
    count(*) filter (where kind = {FAILED}) as failed,
    count(*) filter (where kind = {UNSURE} and record_offset is not null) as unsure_at,
    count(*) filter (where kind = {POLLED}) as polled,
    count(*) filter (where kind = {POLLED_IN_VAIN}) as polled_in_vain,
    min(position) filter (where kind <= {UNSURE}) as sent_at,
    max(position) filter (where kind = {INVOKED}) as invoked_at,
    max(position) filter (where kind in ({ACKED}, {FAILED}, {UNSURE})) as completed_at,
    min(process) filter (where kind <= {UNSURE}) as sender,
    max(process) filter (where kind <= {UNSURE}) as last_sender,
    min(record_offset) filter (where kind in ({ACKED}, {POLLED}, {POLLED_IN_VAIN})) as lowest,
    max(record_offset) filter (where kind in ({ACKED}, {POLLED}, {POLLED_IN_VAIN})) as highest,
    max(together) as together
from {EVENTS} group by partition, value
"""

_IRREGULAR: Final = f"""
select partition, value from {STORIES} where
    invoked > 1 or completed > 1 or polled_in_vain > 0 or together = 1 or unsure_at > 0
    or sender <> last_sender or lowest <> highest or invoked_at > completed_at
    or (acked > 0 and polled = 0) or (failed > 0 and polled > 0)
"""

_SENDS: Final = f"""
select sender as process, partition, sent_at as position, 0 as place, value, highest as record_offset
from {STORIES} anti join irregular using (partition, value)
where invoked + completed > 0 and (acked > 0 or polled > 0)
union all
select process, partition, position, place, value, null as record_offset
from {EVENTS} semi join irregular using (partition, value) where kind <= {UNSURE}
"""
"""The sends whose records have a known offset, and all sends of irregular values, without one."""

_READS: Final = f"""
select process, partition, position, place, value, record_offset from {EVENTS} where kind = {POLLED}
"""

_IS_UNORDERED: Final = "(record_offset is null or earlier_offset is null or record_offset <= earlier_offset)"
_IS_JUMP: Final = "(record_offset - 1 <> earlier_offset)"

_KNOWN: Final = f"""
select partition, record_offset, record_offset >> {BUCKET_BITS} as bucket,
    min(value) as value, max(value) as other_value
from (
    select partition, record_offset, value from {EVENTS}
    where record_offset is not null and kind in ({ACKED}, {POLLED}, {POLLED_IN_VAIN})
    union all
    select partition, record_offset, value from {EVENTS}
    where record_offset is not null and kind = {UNSURE} and position in (
        select position from {EVENTS} semi join (
            select partition, value from {STORIES} where polled > 0
        ) as read using (partition, value) where kind = {UNSURE})
) as committed
group by partition, record_offset
"""
"""The known offsets of each partition, which are its version order. An operation whose outcome is
unknown has committed if one of its records was read."""

_VAIN_READS: Final = f"""
select *, sum(case when kind = {POLLED} then 1 else 0 end) over reads as ok_reads,
    lag(value) over reads as earlier, lag(record_offset) over reads as earlier_offset,
    lag(position) over reads as earlier_position
from {EVENTS} semi join
    (select distinct process, partition from {EVENTS} where kind = {POLLED_IN_VAIN}) as vain
    using (process, partition)
where kind in ({POLLED}, {POLLED_IN_VAIN})
window reads as (partition by process, partition order by position, place)
"""

_VAIN_JUMPS: Final = f"""
select partition, earlier as from_value, earlier_offset as from_offset,
    value as to_value, record_offset as to_offset
from vain_reads where kind = {POLLED_IN_VAIN} and earlier_position = position
union all
select vain.partition, ok.value, ok.record_offset, vain.value, vain.record_offset
from vain_reads as vain join vain_reads as ok using (process, partition, ok_reads)
where vain.kind = {POLLED_IN_VAIN} and ok.kind = {POLLED}
"""
"""An operation in vain begins where the last ok operation of its process ended."""

_SENT_TOGETHER: Final = f"""
select partition, earlier_offset as from_offset, record_offset as to_offset from (
    select partition, coalesce(record_offset, highest) as record_offset,
        lag(coalesce(record_offset, highest)) over sends as earlier_offset
    from {EVENTS} join {STORIES} using (partition, value)
    where {EVENTS}.together = 1 and kind <= {UNSURE} and coalesce(record_offset, highest) is not null
    window sends as (partition by process, partition, position order by place)
) as pairs where record_offset - 1 > earlier_offset
"""
"""Pairs of sends of one operation between which the log may have records of other operations."""

_CLASSES: Final = f"""
select partition, record_offset, value, class,
    lag(class) over known as earlier_class, lead(class) over known as later_class
from (
    select partition, record_offset, value, case
        when together = 1 then 0 when other_value <> value then 1
        when acked > 0 or (invoked + completed > failed) then 2 else 3 end as class
    from known join {STORIES} using (partition, value)
    where partition in (select partition from {STORIES} where together = 1)
) as classes
window known as (partition by partition order by record_offset)
"""
"""The known offsets of partitions with transactions, by whether a transaction, several values, a
single send or an unknown sender wrote them. Cycles of transactions depend on this order."""


def find_suspects(tables: TableEngine) -> None:
    """Define the tables `SUSPECTS`, `STORIES` and `JUMPS`, from the tables of the history."""
    tables.define(STORIES, _STORIES)
    tables.define("irregular", _IRREGULAR)
    tables.define("known", _KNOWN)
    _define_steps(tables, "sends", _SENDS, _IS_UNORDERED)
    _define_steps(tables, "reads", _READS, _IS_JUMP)
    has_transactions = _exists(tables, f"{STORIES} where together = 1")
    has_vain = _exists(tables, f"{STORIES} where polled_in_vain > 0")
    if has_vain:
        tables.define("vain_reads", _VAIN_READS)
    jumps = [
        "select partition, earlier as from_value, earlier_offset as from_offset, value as to_value, record_offset as to_offset from reads",
        *([_VAIN_JUMPS] if has_vain else []),
    ]
    tables.define("jumps", " union all ".join(jumps))
    gaps = ["select partition, from_offset, to_offset from jumps where to_offset - 1 > from_offset"]
    if has_transactions:
        gaps.append(_SENT_TOGETHER)
    _define_jumps(tables, " union all ".join(gaps))
    suspects = [
        "select partition, value from irregular",
        "select partition, value from sends union all select partition, earlier from sends",
        "select partition, from_value from jumps semi join real_jumps using (partition, from_offset, to_offset)",
        "select partition, to_value from jumps semi join real_jumps using (partition, from_offset, to_offset)",
        *([f"select partition, from_value from ({_VAIN_JUMPS}) as vain"] if has_vain else []),
        _SKIPPED,
        _CONFLICTING,
        _HIGHEST,
        _FIRST_OF_PARTITIONS,
        _FIRST_OF_SESSIONS,
    ]
    if has_transactions:
        tables.define("classes", _CLASSES)
        suspects.append(
            "select partition, value from classes where class <> earlier_class or class <> later_class"
        )
    if _exists(tables, f"({_POLLED_BUT_NOT_SENT}) as unsent"):
        tables.define("unsent", _POLLED_BUT_NOT_SENT)
        suspects += [_MISROUTED, _SENT_TWICE]
    tables.define(
        SUSPECTS, f"select distinct partition, value from ({' union all '.join(suspects)}) as suspected"
    )


def _exists(tables: TableEngine, table: str) -> bool:
    return bool(tables.rows(f"select 1 from {table} limit 1"))


_STEPS: Final = f"""
select * from (
    select *, lag(value) over steps as earlier, lag(record_offset) over steps as earlier_offset,
        row_number() over steps as number, (lead(position) over steps) is null as is_last
    from (select *, position >> {BUCKET_BITS} as bucket from ($source) as records) as bucketed
    window steps as (partition by process, partition, bucket order by position, place)
) as pairs where number = 1 or is_last or $condition
"""
_STEPS_OVER_BUCKETS: Final = """
select partition, value, record_offset, earlier, earlier_offset from $steps
where number > 1 and $condition
union all
select partition, value, record_offset, earlier, earlier_offset from (
    select head.partition, head.value, head.record_offset,
        lag(tail.value) over buckets as earlier, lag(tail.record_offset) over buckets as earlier_offset
    from $steps as head join $steps as tail using (process, partition, bucket)
    where head.number = 1 and tail.is_last
    window buckets as (partition by process, partition order by bucket)
) as edges where earlier is not null and $condition
"""


def _define_steps(tables: TableEngine, name: str, source: str, condition: str) -> None:
    """Define a table of consecutive records of a process in a partition that meet a condition.

    Each row is a record, with ``earlier`` and ``earlier_offset`` from the record before. A window
    spans a bucket of positions, and the edges of buckets are compared afterwards.
    """
    steps = f"{name}_steps"
    tables.define(steps, Template(_STEPS).substitute(source=source, condition=condition))
    tables.define(name, Template(_STEPS_OVER_BUCKETS).substitute(steps=steps, condition=condition))


def _define_jumps(tables: TableEngine, gaps: str) -> None:
    """Define the jumps between two offsets that have known offsets in between, and their ranks."""
    tables.define(
        "buckets",
        """
        select partition, bucket, (sum(size) over buckets) - size as base, lead(lowest) over buckets as next_first
        from (select partition, bucket, count(*) as size, min(record_offset) as lowest
              from known group by partition, bucket) as sizes
        window buckets as (partition by partition order by bucket)
        """,
    )
    is_needed = _exists(tables, f"({gaps}) as gaps") or _exists(
        tables, "jumps where to_offset <= from_offset"
    )
    ranked = """
        select known.partition, record_offset, value, base + (row_number() over offsets) - 1 as record_rank,
            coalesce(lead(record_offset) over offsets, next_first) as next_offset
        from known join buckets using (partition, bucket)
        window offsets as (partition by known.partition, known.bucket order by record_offset)
    """
    tables.define("ranks", ranked if is_needed else f"select * from ({ranked}) as ranked where 1 = 0")
    tables.define(
        JUMPS,
        f"""
        select distinct pairs.partition, from_offset, to_offset,
            here.record_rank as from_rank, there.record_rank as to_rank
        from (select partition, from_offset, to_offset from jumps union all {gaps}) as pairs
        join ranks as here on here.partition = pairs.partition and here.record_offset = from_offset
        join ranks as there on there.partition = pairs.partition and there.record_offset = to_offset
        where to_offset <= from_offset or here.next_offset < to_offset
        """,
    )


_SKIPPED: Final = f"""
select ranks.partition, ranks.value
from (select * from {JUMPS} where to_offset > from_offset) as skips
cross join (values {", ".join(f"({ahead})" for ahead in range(1, SKIPPED_SHOWN + 1))}) as ahead(distance)
join ranks on ranks.partition = skips.partition and ranks.record_rank = from_rank + distance
where record_offset < to_offset
"""

_CONFLICTING: Final = f"""
select {EVENTS}.partition, {EVENTS}.value
from {EVENTS} semi join (select partition, record_offset from known where value <> other_value) as conflicts
    using (partition, record_offset)
where kind in ({ACKED}, {POLLED}, {POLLED_IN_VAIN})
"""

_HIGHEST: Final = f"""
select {EVENTS}.partition, value
from {EVENTS} semi join (
    select partition, max(record_offset) as record_offset from {EVENTS} where kind = {POLLED} group by partition
) as highest using (partition, record_offset)
where kind = {POLLED}
"""

_FIRST_OF_PARTITIONS: Final = f"""
select partition, min_by(value, place)
from {EVENTS} semi join (
    select partition, min(position) as position from {EVENTS} group by partition
) as firsts using (partition, position)
group by partition
"""
"""Partitions are listed in the order in which the history first names them."""

_FIRST_OF_SESSIONS: Final = f"""
select partition, min_by(value, place)
from {EVENTS} semi join (
    select process, partition, min(position) as position from {EVENTS}
    where kind <= {UNSURE} group by process, partition
) as firsts using (process, partition, position)
where kind <= {UNSURE}
group by process, partition
union all
select partition, value from (
    select partition, value, kind,
        row_number() over (partition by process, partition, assignment order by position, place) as number
    from (
        select *, sum(case when kind is null then 1 else 0 end)
            over (partition by process order by position rows unbounded preceding) as assignment
        from (
            select process, partition, position, place, value, kind
            from {EVENTS} semi join {ASSIGNMENTS} using (process) where kind <= {UNSURE}
            union all
            select process, null, position, 0, null, null from {ASSIGNMENTS}
        ) as sends
    ) as assigned
) as numbered where number = 1 and kind is not null
"""
"""Findings about sends are listed in the order of the processes' first sends to each partition. An
assignment of partitions begins other sessions."""

_POLLED_BUT_NOT_SENT: Final = f"""
select partition, value from {STORIES}
where invoked + completed = 0
    and partition in (select partition from {STORIES} where invoked + completed > 0)
"""

_MISROUTED: Final = f"""
select partition, value from {STORIES}
where value in (
    select unsent.value from unsent semi join
        (select value from {STORIES} where invoked + completed > 0) as sent using (value))
"""

_SENT_TWICE: Final = f"""
select partition, value from {STORIES}
where invoked + completed > 0 and value in (
    select min(value) from (
        select value from {STORIES} where invoked + completed > 0 group by value having count(*) > 1
    ) as repeated)
"""
"""One value that was sent to several partitions: in such a history, values do not identify
records."""

"""Finds the records of a history that rules need, with SQL.

A record is plain if it was sent at most once, was acknowledged and polled at one offset that no
other value has, and follows its predecessor in the order of its sender and of each of its readers.
A transaction is plain if its records are, it is on no cycle, and it took effect as a whole. All
other records are suspects. The rules give the same findings for a history with the suspects alone
(`harrow.checks.history.removed_records`). A suspect may turn out to be plain, but a record that a
rule needs must never be missing.
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
    JUMPS,
    KNOWN,
    KNOWN_SUSPECT,
    POLLED,
    POLLED_IN_VAIN,
    ROWS,
    SCATTERED,
    STORIES,
    SUSPECTS,
    UNSURE,
    WORD_BITS,
    WORDS,
    TableEngine,
    bits_below,
    exists,
)
from harrow.campaigns.large_histories.transaction_suspects import (
    operations_of,
    transaction_suspects,
)
from harrow.checks.history.witness import SKIPPED_SHOWN

_STORIES: Final = f"""
select *, coalesce(completed_at, invoked_at) as operation, coalesce(
    invoked > 1 or completed > 1 or polled_in_vain > 0 or unsure_at > 0
    or sender <> last_sender or lowest <> highest or invoked_at > completed_at
    or (acked > 0 and polled = 0) or (failed > 0 and polled > 0), false) as irregular
from (
    select partition, value,
        count(*) filter (where kind = {INVOKED}) as invoked,
        count(*) filter (where kind in ({ACKED}, {FAILED}, {UNSURE})) as completed,
        count(*) filter (where kind = {ACKED}) as acked,
        count(*) filter (where kind = {FAILED}) as failed,
        count(*) filter (where kind = {UNSURE} and record_offset is not null) as unsure_at,
        count(*) filter (where kind = {POLLED}) as polled,
        count(*) filter (where kind = {POLLED_IN_VAIN}) as polled_in_vain,
        min(position) filter (where kind <= {UNSURE}) as sent_at,
        min_by(place, case when kind <= {UNSURE} then position end) as sent_place,
        max(position) filter (where kind = {INVOKED}) as invoked_at,
        max(position) filter (where kind in ({ACKED}, {FAILED}, {UNSURE})) as completed_at,
        min(process) filter (where kind <= {UNSURE}) as sender,
        max(process) filter (where kind <= {UNSURE}) as last_sender,
        min(record_offset) filter (where kind in ({ACKED}, {POLLED}, {POLLED_IN_VAIN})) as lowest,
        max(record_offset) filter (where kind in ({ACKED}, {POLLED}, {POLLED_IN_VAIN})) as highest,
        max(case when kind <= {UNSURE} then together else 0 end) as together
    from {EVENTS} group by partition, value
) as counted
"""

_IRREGULAR: Final = f"(select partition, value from {STORIES} where irregular) as irregular"

_SENDS: Final = f"""
select sender as process, partition, sent_at as position, sent_place as place, value,
    highest as record_offset
from {STORIES} where not irregular and invoked + completed > 0 and (acked > 0 or polled > 0)
union all
select process, partition, position, place, value, null as record_offset
from {EVENTS} semi join {_IRREGULAR} using (partition, value) where kind <= {UNSURE}
"""
"""The sends whose records have a known offset, and all sends of irregular values, without one."""

_READS: Final = f"""
select process, partition, position, place, value, record_offset, kind from {EVENTS} where kind = {POLLED}
"""

READ_STEPS: Final = "reads_steps"
"""Some of the polled records: of each process in each partition at least the first and the last one
in each bucket of positions."""

_IS_UNORDERED: Final = "(record_offset is null or earlier_offset is null or record_offset <= earlier_offset)"
_IS_GAP_INSIDE: Final = "(position = earlier_position and record_offset - 1 > earlier_offset)"
_IS_JUMP: Final = "(record_offset - 1 <> earlier_offset)"

_SCATTERED: Final = f"""
select distinct partition, record_offset, value from (
    select partition, record_offset, value from {EVENTS} semi join (
        select partition, value from {STORIES} where lowest <> highest or unsure_at > 0
    ) as several using (partition, value)
    where record_offset is not null and kind in ({ACKED}, {POLLED}, {POLLED_IN_VAIN})
    union all
    select partition, record_offset, value from {EVENTS}
    where record_offset is not null and kind = {UNSURE} and position in (
        select position from {EVENTS} semi join (
            select partition, value from {STORIES} where polled > 0
        ) as read using (partition, value) where kind = {UNSURE})
) as committed
"""
"""The known offsets of values that may have several. An operation whose outcome is unknown has
committed if one of its records was read."""

_KNOWN: Final = f"""
select partition, record_offset, record_offset >> {WORD_BITS} as word, value from (
    select partition, highest as record_offset, value from {STORIES} where lowest = highest and unsure_at = 0
    union all
    select partition, record_offset, value from {SCATTERED}
) as committed
"""
"""The known offsets of each partition with their values. They are its version order."""

_WORDS: Final = f"""
select *, cast(sum(bit_count(bits)) over words as bigint) - bit_count(bits) as base,
    row_number() over words as number
from (
    select partition, word, count(*) as entries,
        bit_or(cast(1 as bigint) << cast(record_offset & {(1 << WORD_BITS) - 1} as int)) as bits
    from {KNOWN} group by partition, word
) as counted
window words as (partition by partition order by word)
"""

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
"""A poll that failed, or whose outcome is unknown, starts where the last ok poll of its process
ended."""

_SENT_TOGETHER: Final = f"""
select partition, earlier_offset as from_offset, record_offset as to_offset from (
    select partition, record_offset, lag(record_offset) over sends as earlier_offset
    from (
        select sends.partition, process, position, place, coalesce(sends.record_offset,
            case when invoked <= 1 and completed <= 1 then lowest end) as record_offset
        from {operations_of(_IRREGULAR)} as sends join {STORIES}
            on {STORIES}.partition = sends.partition and {STORIES}.value = sends.value
    ) as placed where record_offset is not null
    window sends as (partition by process, partition, position order by place)
) as pairs where record_offset - 1 > earlier_offset
"""
"""Pairs of sends of one operation with an irregular value between which the log may have records of
other operations."""

_JUMPS: Final = f"""
select distinct * from (
    select pairs.partition, from_offset, to_offset, here.number as from_number,
        here.base + {bits_below("here.bits", "from_offset")} as from_rank,
        there.base + {bits_below("there.bits", "to_offset")} as to_rank
    from ($pairs) as pairs
    join {WORDS} as here on here.partition = pairs.partition and here.word = from_offset >> {WORD_BITS}
    join {WORDS} as there on there.partition = pairs.partition and there.word = to_offset >> {WORD_BITS}
) as ranked where to_offset <= from_offset or to_rank - from_rank > 1
"""


def find_suspects(tables: TableEngine) -> None:
    """Define the tables `SUSPECTS`, `STORIES` and `JUMPS`, from the tables of the history."""
    tables.define(STORIES, _STORIES)
    tables.define(SCATTERED, _SCATTERED)
    tables.view(KNOWN, _KNOWN)
    tables.define(WORDS, _WORDS)
    _define_steps(tables, "sends", _SENDS, f"({_IS_UNORDERED} or {_IS_GAP_INSIDE})")
    _define_steps(tables, "reads", _READS, _IS_JUMP)
    has_transactions = exists(tables, f"{STORIES} where together > 0")
    has_vain = exists(tables, f"{STORIES} where polled_in_vain > 0")
    if has_vain:
        tables.define("vain_reads", _VAIN_READS)
    jumps = [_pairs_of("reads"), *([_VAIN_JUMPS] if has_vain else [])]
    if has_transactions:
        jumps.append(f"{_pairs_of('sends')} where {_IS_GAP_INSIDE}")
    tables.define("jumps", " union all ".join(jumps))
    pairs = ["select partition, from_offset, to_offset from jumps"]
    if has_transactions:
        pairs.append(_SENT_TOGETHER)
    tables.define(JUMPS, Template(_JUMPS).substitute(pairs=" union all ".join(pairs)))
    real = f"from jumps semi join {JUMPS} using (partition, from_offset, to_offset)"
    suspects = [
        f"select partition, value from {STORIES} where irregular",
        f"select partition, value from sends where {_IS_UNORDERED}",
        f"select partition, earlier from sends where {_IS_UNORDERED}",
        f"select partition, from_value {real}",
        f"select partition, to_value {real}",
        *([f"select partition, from_value from ({_VAIN_JUMPS}) as vain"] if has_vain else []),
        _SKIPPED,
        _CONFLICTING,
        _HIGHEST,
        _FIRST_OF_PARTITIONS,
        _FIRST_OF_SESSIONS,
        _FIRST_FAILED,
        _SENT_TWICE,
    ]
    if exists(tables, f"{ROWS} where kind = {KNOWN_SUSPECT}"):
        suspects.append(f"select partition, value from {ROWS} where kind = {KNOWN_SUSPECT}")
    if exists(tables, ASSIGNMENTS):
        suspects.append(_FIRST_OF_ASSIGNED)
    if exists(tables, f"({_POLLED_BUT_NOT_SENT}) as unsent"):
        suspects.append(_MISROUTED)
    if has_transactions:
        suspects += transaction_suspects(tables)
    found = f"select distinct partition, value from ({' union all '.join(suspects)}) as suspected"
    if not has_transactions:
        tables.define(SUSPECTS, found)
        return
    tables.define("found", found)
    tables.define(
        SUSPECTS,
        f"""select distinct partition, value from (
            select partition, value from found
            union all select partition, value from {operations_of("found")} as whole) as closed""",
    )


def _pairs_of(steps: str) -> str:
    return f"""select partition, earlier as from_value, earlier_offset as from_offset,
        value as to_value, record_offset as to_offset from {steps}"""


_STEPS: Final = f"""
select * from (
    select *, lag(value) over steps as earlier, lag(record_offset) over steps as earlier_offset,
        lag(position) over steps as earlier_position,
        row_number() over steps as number, (lead(position) over steps) is null as is_last
    from (select *, position >> {BUCKET_BITS} as bucket from ($source) as records) as bucketed
    window steps as (partition by process, partition, bucket order by position, place)
) as pairs where number = 1 or is_last or $condition
"""
_STEPS_OVER_BUCKETS: Final = """
select partition, value, record_offset, position, earlier, earlier_offset, earlier_position from $steps
where number > 1 and $condition
union all
select partition, value, record_offset, position, earlier, earlier_offset, earlier_position from (
    select head.partition, head.value, head.record_offset, head.position,
        lag(tail.value) over buckets as earlier, lag(tail.record_offset) over buckets as earlier_offset,
        lag(tail.position) over buckets as earlier_position
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


_SKIPPED: Final = f"""
select known.partition, known.value
from (
    select jumps.partition, from_offset, to_offset, from_rank, words.word, words.base, words.bits
    from (select * from {JUMPS} where to_offset > from_offset) as jumps
    cross join (values {", ".join(f"({ahead})" for ahead in range(SKIPPED_SHOWN + 1))}) as ahead(distance)
    join {WORDS} as words on words.partition = jumps.partition and words.number = from_number + distance
) as near
join {KNOWN} as known on known.partition = near.partition and known.word = near.word
where record_offset > from_offset and record_offset < to_offset
    and base + {bits_below("bits", "record_offset")} <= from_rank + {SKIPPED_SHOWN}
"""

_CONFLICTING: Final = f"""
select partition, value from {KNOWN} semi join (
    select partition, record_offset from {KNOWN} semi join (
        select partition, word from {WORDS} where entries > bit_count(bits)
    ) as crowded using (partition, word)
    group by partition, record_offset having count(*) > 1
) as conflicts using (partition, record_offset)
"""

_HIGHEST: Final = f"""
select partition, max_by(value, highest) from {STORIES}
where polled > 0 and not irregular group by partition
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
select partition, min_by(value, sent_at) from {STORIES}
where not irregular and sender is not null group by sender, partition
"""
"""Findings about sends are listed in the order of the processes' first sends to each partition."""

_FIRST_FAILED: Final = f"""
select partition, min_by(value, completed_at) from {STORIES} where failed > 0 group by partition
"""
"""A failed send shows that the history tries aborted reads."""

_FIRST_OF_ASSIGNED: Final = f"""
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
"""An assignment of partitions begins other sessions."""

_POLLED_BUT_NOT_SENT: Final = f"""
select partition, value from {STORIES}
where invoked + completed = 0
    and partition in (select partition from {STORIES} where invoked + completed > 0)
"""

_MISROUTED: Final = f"""
select distinct {STORIES}.partition, {STORIES}.value
from {STORIES} join (
    select distinct sent.value from {STORIES} as sent join ({_POLLED_BUT_NOT_SENT}) as unsent using (value)
    where sent.invoked + sent.completed > 0
) as elsewhere on elsewhere.value = {STORIES}.value
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

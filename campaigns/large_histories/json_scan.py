"""The SQL with which DuckDB reads a history of JSON lines in bounded memory.

It accepts only plain lines, which it understands as `harrow.campaigns.record.history_file` does.
For any other line, DuckDB raises an error or stores a row of the kind `NOT_PLAIN`. Python then
reads the file, and reports what is wrong.
"""

from typing import Final

from harrow.campaigns.large_histories.tables import (
    ACKED,
    ASSIGNED_PARTITION,
    ASSIGNMENT,
    FAILED,
    INVOKED,
    LINES,
    NOT_PLAIN,
    PASSED_OVER,
    PLACE_BITS,
    POLL_ENDED,
    POLL_INVOKED,
    POLLED,
    POLLED_IN_VAIN,
    PROCESS,
    ROWS,
    UNSURE,
)

MACROS: Final = (
    "create macro hash_of(text) as (hash(text) >> 1)::bigint",
    # A string of JSON without escapes and quotes, or the digits of a number.
    """create macro text_of(json) as case
        when not starts_with(json, '"') then json
        when contains(json, '\\') then json_extract_string(json, '$')
        else substring(json, 2, length(json) - 2) end""",
    # Equal texts and numbers are different values.
    """create macro value_of(json) as case when starts_with(json, '"') then '"' || text_of(json) else json end""",
    # A whole number from 0 on that fits into 63 bits, as JSON writes it.
    "create macro is_whole(json) as try_cast(json as bigint) >= 0 and try_cast(json as bigint)::varchar = json",
    """create macro is_value(json) as coalesce(case
        when starts_with(json, '"') then true
        else try_cast(json as bigint)::varchar = json end, false)""",
)

_LINES: Final = """
    select row_number() over () - 1 as position, process::varchar as process, type, f,
        case when f in ('send', 'poll', 'txn', 'assign', 'subscribe') and starts_with(value::varchar, '[')
            then from_json(value, '["JSON"]') end as value,
        time::varchar as time, "index"::varchar as number, "rebalance-log" as rebalances
    from read_ndjson($path, maximum_object_size = $line_max, columns = {
        'index': 'JSON', 'process': 'JSON', 'type': 'VARCHAR', 'f': 'VARCHAR', 'time': 'JSON',
        'value': 'JSON', 'rebalance-log': 'JSON'})
"""

_IS_PLAIN_LINE: Final = """
    (coalesce(starts_with(process, '"'), false) or (
        coalesce(is_whole(process), false)
        and coalesce(type in ('invoke', 'ok', 'fail', 'info'), false)
        and coalesce(f in ('send', 'poll', 'txn', 'assign', 'subscribe', 'crash', 'commit', 'store'), false)
        and (value is not null or f in ('crash', 'commit', 'store'))
        and (rebalances is null or rebalances::varchar = '[]')
    ))
    and (time is null or is_whole(time)) and (number is null or is_whole(number))
"""


def _row(kind: str, partition: str = "null", value: str = "null", offset: str = "null", at: str = "0") -> str:
    """Return the expression of a row: texts of JSON, except for its kind and place."""
    return (
        f"struct_pack(kind := ({kind})::tinyint, partition := ({partition})::varchar, value := ({value})::varchar, "
        f"record_offset := ({offset})::varchar, at := ({at})::bigint)"
    )


_SEND_KIND: Final = f"case type when 'invoke' then {INVOKED} when 'ok' then {ACKED} when 'fail' then {FAILED} else {UNSURE} end"
_POLL_KIND: Final = f"case type when 'ok' then {POLLED} else {POLLED_IN_VAIN} end"

_MICRO_ROWS: Final = f"""
    case
    when f not in ('send', 'txn', 'poll') then null
    when starts_with(micro, '["send",') and f <> 'poll' then [
        case when len(part) <> 3 then {_row(str(NOT_PLAIN))}
        when starts_with(part[3]::varchar, '[') then
            case when json_array_length(part[3]) = 2
            then {_row(_SEND_KIND, "part[2]", "part[3]->'$[1]'", "part[3]->'$[0]'")}
            else {_row(str(NOT_PLAIN))} end
        else {_row(_SEND_KIND, "part[2]", "part[3]")} end]
    when micro = '["poll"]' and f <> 'send' then null
    when starts_with(micro, '["poll",') and f <> 'send' then
        case when len(part) <> 2 or type = 'invoke' or not coalesce(starts_with(part[2]::varchar, '{{'), false)
            or len(list_distinct(json_keys(part[2]))) <> len(json_keys(part[2])) then [{_row(str(NOT_PLAIN))}]
        else flatten(list_transform(
            map_entries(from_json(part[2], '"MAP(VARCHAR, JSON[][])"')), lambda entry: case
                when entry.value is null then [{_row(str(NOT_PLAIN))}] else list_transform(entry.value, lambda pair, i: case when len(pair) = 2
                then {_row(_POLL_KIND, "to_json(entry.key)", "pair[2]", "pair[1]", "i - 1")}
                else {_row(str(NOT_PLAIN))} end) end)) end
    else [{_row(str(NOT_PLAIN))}] end
"""

_LINE_ROWS: Final = f"""
    case
    when f = 'send' and len(value) = 0 then [{_row(str(NOT_PLAIN))}]
    when f in ('assign', 'subscribe')
        and not coalesce(list_bool_and(list_transform(value, lambda name: is_value(name::varchar))), true)
        then [{_row(str(NOT_PLAIN))}]
    when f in ('assign', 'subscribe') and type in ('ok', 'info') then list_concat(
        [{_row(str(ASSIGNMENT))}],
        list_transform(value, lambda name: {_row(str(ASSIGNED_PARTITION), "name")}))
    when f in ('send', 'poll', 'txn') and type = 'invoke'
        and (len(value) <> 1 or starts_with(value[1]::varchar, '["poll"')) then [{_row(str(POLL_INVOKED))}]
    when f in ('poll', 'txn') and type = 'ok'
        and list_bool_or(list_transform(value, lambda micro: starts_with(micro::varchar, '["poll",')))
        then [{_row(str(POLL_ENDED))}]
    else [{_row(str(PROCESS))}] end
"""

INSERT_JSON_LINES: Final = f"""
insert into {ROWS}
with lines as ({_LINES}),
micros as (
    select position, try_cast(process as bigint) as process, type, f, value, is_plain, together,
        unnest(case when len(value) > 0 then value else [null] end)::varchar as micro,
        case when len(value) > 0 then generate_subscripts(value, 1) - 1 else 0 end as number
    from (
        select *, ({_IS_PLAIN_LINE}) as is_plain,
            coalesce(f in ('send', 'txn') and (len(value) <> 1 or (f = 'txn' and type <> 'invoke'))
            and list_bool_or(list_transform(value, lambda micro: starts_with(micro::varchar, '["send",'))), false)
            as together
        from lines
    ) as checked
),
parts as (
    select *, case when f in ('send', 'txn', 'poll') then from_json(micro, '["JSON"]') end as part from micros
),
found as (
    select position, process, number, together, unnest(
        case when process is null then [{_row(f"case when is_plain then {PASSED_OVER} else {NOT_PLAIN} end")}]
        when not is_plain then [{_row(str(NOT_PLAIN))}]
        else case
            when number > 0 then {_MICRO_ROWS}
            when f = 'send' and len(value) = 1 then {_MICRO_ROWS}
            else list_concat({_LINE_ROWS}, {_MICRO_ROWS}) end
        end) as found
    from parts where process is not null or number = 0
)
select text_of(found.partition) as partition, hash_of(value_of(found.value)) as value,
    try_cast(found.record_offset as bigint) as record_offset, position, (number << {PLACE_BITS}) | found.at as place,
    process,
    case when found.kind > {POLLED_IN_VAIN} and found.kind <> {ASSIGNED_PARTITION} then found.kind
        when not is_value(found.partition) then {NOT_PLAIN}
        when found.kind = {ASSIGNED_PARTITION} then found.kind
        when not is_value(found.value) then {NOT_PLAIN}
        when found.record_offset is null and found.kind < {POLLED} then found.kind
        when found.record_offset = 'null' and found.kind < {POLLED} then found.kind
        when found.kind = {INVOKED} then {NOT_PLAIN}
        when not coalesce(is_whole(found.record_offset), false) then {NOT_PLAIN}
        else found.kind end as kind,
    together::tinyint as together
from found
"""

INSERT_SIZE: Final = f"""
insert into {ROWS}
select null, null, null, coalesce(max(position) + 1, 0), count(*) filter (where kind = {PASSED_OVER}), 0, {LINES}, 0
from {ROWS}
"""

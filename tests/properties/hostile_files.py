"""Damages files of runs and sweeps as an attacker, a full disk or a careless editor would."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TEXTS = (
    "\x1b[31mred\x1b[2J",
    "\x9b31m",
    "a\n::error::injected",
    "a\r\nb",
    "\u202etxt.exe",
    "a\u2028b\x85c",
    "../../../../etc/passwd",
    "/etc/passwd",
    "",
    "=cmd()",
    "<script>alert(1)</script>",
    "x" * 10_000,
    "\x00",
    "`rm -rf`",
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    10**30,
    2**63,
    -(2**63) - 1,
    1e308,
    float("nan"),
    [],
    {},
    [[]],
    {"a": {"b": []}},
    [["send", "t-0", {"object": 1}]],
    *TEXTS,
)


def _damage_bytes(path: Path, random: Random) -> None:
    data = bytearray(path.read_bytes())
    kind = random.randrange(4)
    if kind == 0:
        del data[random.randrange(len(data) + 1) :]
    elif kind == 1:
        for _ in range(random.randrange(1, 6)):
            if data:
                data[random.randrange(len(data))] = random.randrange(256)
    elif kind == 2:
        place = random.randrange(len(data) + 1)
        data[place:place] = random.choice(TEXTS).encode()
    else:
        place = random.randrange(len(data) + 1)
        data[place:place] = b"[" * random.choice((10, 100_000))
    path.write_bytes(data)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return every container in a value, with each of its keys."""
    places: list[tuple[Any, Any]] = []
    pending = [value]
    while pending:
        inner = pending.pop()
        keys = inner if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ()
        for key in list(keys):
            places.append((inner, key))
            pending.append(inner[key])
    return places


def _damage_value(value: Any, random: Random) -> Any:
    places = _places(value)
    if not places:
        return random.choice(VALUES)
    container, key = random.choice(places)
    kind = random.randrange(4)
    if kind == 0:
        del container[key]
    elif kind == 1 and isinstance(container, dict):
        container[random.choice(TEXTS)] = container.pop(key)
    else:
        container[key] = random.choice(VALUES)
    return value


def _damage_lines(path: Path, random: Random) -> None:
    lines = path.read_text(encoding="utf-8").split("\n")
    number = random.randrange(len(lines))
    kind = random.randrange(4)
    if kind == 0:
        del lines[number]
    elif kind == 1:
        lines.insert(random.randrange(len(lines)), lines[number])
    elif lines[number]:
        lines[number] = json.dumps(_damage_value(json.loads(lines[number]), random), ensure_ascii=False)
    path.write_text("\n".join(lines), encoding="utf-8", errors="surrogatepass")


def _damage_document(path: Path, random: Random) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    for _ in range(random.randrange(1, 4)):
        document = _damage_value(document, random)
    path.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8", errors="surrogatepass")


def _damage_parquet(path: Path, random: Random) -> None:
    table = pq.ParquetFile(path).read()
    rows, schema = table.to_pylist(), table.schema
    name = random.choice(schema.names)
    kind = random.randrange(4)
    if kind == 0:
        table = table.drop_columns([name])
    elif kind == 1:
        column = pa.array([random.choice(TEXTS) for _ in rows], pa.string())
        table = table.set_column(schema.get_field_index(name), name, column)
    else:
        row = random.choice(rows)
        field = schema.field(name)
        row[name] = None
        if pa.types.is_string(field.type) and kind == 2:
            row[name] = random.choice(TEXTS)
        elif pa.types.is_integer(field.type) and kind == 2:
            row[name] = random.choice((-1, 0, 2**31 - 1))
        table = pa.Table.from_pylist(rows, schema=schema)
    pq.write_table(table.replace_schema_metadata(schema.metadata), path)


Damage = Callable[[Path, Random], None]

DAMAGES: dict[str, tuple[Damage, ...]] = {
    ".json": (_damage_bytes, _damage_document, _damage_document),
    ".jsonl": (_damage_bytes, _damage_lines, _damage_lines),
    ".yaml": (_damage_bytes,),
    ".parquet": (_damage_bytes, _damage_parquet, _damage_parquet),
}
"""The ways to damage a file, by its suffix."""


def damage(folder: Path, random: Random) -> None:
    """Damage one or two files in a folder, each only once, because a damaged file may not parse."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in DAMAGES and path.is_file())
    for path in random.sample(files, random.randrange(1, 3)):
        random.choice(DAMAGES[path.suffix])(path, random)

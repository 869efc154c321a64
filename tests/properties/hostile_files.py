"""Files of runs and sweeps as an attacker, a full disk or a careless editor would leave them."""

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


def _spoil_bytes(path: Path, random: Random) -> None:
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
    """Return every container below a value, with each of its keys."""
    found: list[tuple[Any, Any]] = []
    left = [value]
    while left:
        inner = left.pop()
        keys = inner if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ()
        for key in list(keys):
            found.append((inner, key))
            left.append(inner[key])
    return found


def _spoil_value(value: Any, random: Random) -> Any:
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


def _spoil_lines(path: Path, random: Random) -> None:
    lines = path.read_text(encoding="utf-8").split("\n")
    number = random.randrange(len(lines))
    kind = random.randrange(4)
    if kind == 0:
        del lines[number]
    elif kind == 1:
        lines.insert(random.randrange(len(lines)), lines[number])
    elif lines[number]:
        lines[number] = json.dumps(_spoil_value(json.loads(lines[number]), random), ensure_ascii=False)
    path.write_text("\n".join(lines), encoding="utf-8", errors="surrogatepass")


def _spoil_document(path: Path, random: Random) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    for _ in range(random.randrange(1, 4)):
        document = _spoil_value(document, random)
    path.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8", errors="surrogatepass")


def _spoil_parquet(path: Path, random: Random) -> None:
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


Spoiling = Callable[[Path, Random], None]

SPOILINGS: dict[str, tuple[Spoiling, ...]] = {
    ".json": (_spoil_bytes, _spoil_document, _spoil_document),
    ".jsonl": (_spoil_bytes, _spoil_lines, _spoil_lines),
    ".yaml": (_spoil_bytes,),
    ".parquet": (_spoil_bytes, _spoil_parquet, _spoil_parquet),
}
"""What is done to a file, by its ending."""


def spoil(folder: Path, random: Random) -> None:
    """Spoil one or two of the files below a folder, each once: what is spoiled can no longer be read here."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in SPOILINGS and path.is_file())
    for path in random.sample(files, random.randrange(1, 3)):
        random.choice(SPOILINGS[path.suffix])(path, random)

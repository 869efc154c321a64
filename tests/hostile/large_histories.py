"""Large hostile histories, whose valid lines need more memory or time than their size suggests.

``python -m tests.hostile.large_histories --mib 57`` checks each in its own process, which must stay
under 1 GiB and 20 CPU s, or refuse the history. ``python -m tests.hostile`` includes smaller ones.
"""

import argparse
import gzip
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

from tests.hostile.trial import run_in_fork
from tests.plain_environment import PYTHONPATH, plain_environment

SHAPES: Final[dict[str, Callable[[], Iterator[Any]]]] = {}
"""Endless operations by the name of their shape. An operation may also be a literal line."""

KINDS: Final = ("jsonl", "edn", "vector.edn", "jsonl.gz")

_WIDE: Final = 10_000
_VERY_WIDE: Final = 400_000
_LONG_LINE: Final = 15 << 20


def shape(make: Callable[[], Iterator[Any]]) -> Callable[[], Iterator[Any]]:
    SHAPES[make.__name__.replace("_", "-")] = make
    return make


def operation(process: int | str, type_: str, f: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"process": process, "type": type_, "f": f, "value": value, "time": 0, "index": 0, **more}


def sent(value: Any, offset: int | None, process: int = 0, how: str = "ok", key: str = "t") -> Iterator[Any]:
    yield operation(process, "invoke", "send", [["send", key, value]])
    yield operation(process, how, "send", [["send", key, value if offset is None else [offset, value]]])


def read(records: Any, process: int = 1, how: str = "ok") -> Iterator[Any]:
    yield operation(process, how, "poll", [["poll", records]])


@shape
def plain() -> Iterator[Any]:
    for number in count():
        yield from sent(f"v{number}", number)
        yield from read({"t": [[number, f"v{number}"]]})


@shape
def shortest_sends() -> Iterator[Any]:
    for number in count():
        yield from sent(number, number)


@shape
def equal_sends() -> Iterator[Any]:
    yield from read({"t": [[0, "v"]]})
    for number in count():
        yield from sent("v", number)


@shape
def equal_sends_of_many_processes() -> Iterator[Any]:
    for number in count():
        yield from sent("v", number, process=number)


@shape
def equal_sends_that_stay_open() -> Iterator[Any]:
    for _ in count():
        yield operation(0, "invoke", "send", [["send", "t", "v"]])


@shape
def reads_of_one_record() -> Iterator[Any]:
    yield from sent("v", 0)
    while True:
        yield from read({"t": [[0, "v"]]})


@shape
def one_value_at_all_offsets() -> Iterator[Any]:
    yield from sent("v", 0)
    for start in count(0, 100):
        yield from read({"t": [[offset, "v"] for offset in range(start, start + 100)]})


@shape
def one_offset_of_all_values() -> Iterator[Any]:
    for start in count(0, 100):
        yield from read({"t": [[0, value] for value in range(start, start + 100)]})


@shape
def one_operation() -> Iterator[Any]:
    yield from sent("v", 0)
    for start in count(0, _VERY_WIDE):
        yield from read({"t": [[offset, offset] for offset in range(start, start + _VERY_WIDE)]})


@shape
def one_transaction() -> Iterator[Any]:
    for start in count(0, _VERY_WIDE):
        invoked = [["send", "t", offset] for offset in range(start, start + _VERY_WIDE)]
        yield operation(0, "invoke", "txn", invoked)
        completed = [["send", "t", [offset, offset]] for offset in range(start, start + _VERY_WIDE)]
        yield operation(0, "ok", "txn", completed)


@shape
def transactions_with_gaps() -> Iterator[Any]:
    for number in count(0, 4):
        yield operation(
            0, "ok", "txn", [["send", "t", [number, number]], ["send", "t", [number + 2, number + 2]]]
        )
        yield from sent(number + 1, number + 1, process=1)


@shape
def one_operation_per_partition() -> Iterator[Any]:
    yield from sent("v", 0)
    for start in count(0, _WIDE):
        yield from read({f"t{number}": [[0, "v"]] for number in range(start, start + _WIDE)})


@shape
def many_partitions() -> Iterator[Any]:
    for number in count():
        yield operation(0, "ok", "send", [["send", f"{number}", [0, 0]]])


@shape
def many_partitions_and_processes() -> Iterator[Any]:
    for number in count():
        yield operation(number, "invoke", "send", [["send", f"{number}", 0]])


@shape
def many_consumers() -> Iterator[Any]:
    yield from sent("v", 0)
    for process in count(1):
        yield from read({"t": [[0, "v"]]}, process=process)


@shape
def consumers_of_many_partitions() -> Iterator[Any]:
    names = [f"t{number}" for number in range(1000)]
    for process in count():
        yield operation(process, "ok", "assign", names)
        yield from read({}, process=process)


@shape
def assignments_again_and_again() -> Iterator[Any]:
    names = [f"t{number}" for number in range(1000)]
    yield from read({name: [[0, "v"]] for name in names})
    while True:
        yield operation(1, "ok", "assign", names)
        yield from read({})


@shape
def rebalances() -> Iterator[Any]:
    names = [f"t{number}" for number in range(1000)]
    for number in count():
        yield operation(
            1,
            "ok",
            "poll",
            [["poll", {"t1": [[number * 2, number]]}]],
            **{"rebalance-log": [{"keys": names}]},
        )


@shape
def all_lost() -> Iterator[Any]:
    yield from read({"t": [[2**40, "last"]]})
    for number in count():
        yield from sent(f"v{number}", number)


@shape
def all_unseen() -> Iterator[Any]:
    yield from read({"t": [[0, "first"]]})
    for number in count(1):
        yield operation(0, "ok", "send", [["send", "t", [number, number]]])


@shape
def all_unsure() -> Iterator[Any]:
    for number in count():
        yield operation(0, "info", "send", [["send", "t", [number, number]]])
        yield from read({"t": [[number, number]]})


@shape
def all_doubled() -> Iterator[Any]:
    for number in count():
        yield operation(0, "ok", "send", [["send", "t", [number * 2, number]]])
        yield from read({"t": [[number * 2, number], [number * 2 + 1, number]]})


@shape
def all_sent_again() -> Iterator[Any]:
    for number in count():
        yield from sent(number, number * 2)
        yield from sent(number, number * 2 + 1)


@shape
def all_reordered() -> Iterator[Any]:
    for number in count():
        yield from sent(number, 2**40 - number)
        yield from read({"t": [[2**40 - number, number]]})


@shape
def all_skipped() -> Iterator[Any]:
    for number in count(0, 2):
        yield operation(0, "ok", "send", [["send", "t", [number, number]]])
        yield operation(0, "ok", "send", [["send", "t", [number + 1, number + 1]]])
        yield from read({"t": [[number, number]]})


@shape
def all_aborted() -> Iterator[Any]:
    for number in count():
        yield operation(0, "fail", "send", [["send", "t", number]])
        yield from read({"t": [[number, number]]})


@shape
def all_misrouted() -> Iterator[Any]:
    yield from sent("own", 0, key="u")
    for number in count():
        yield operation(0, "ok", "send", [["send", "t", [number, number]]])
        yield from read({"u": [[number, number]]})


@shape
def all_precommitted() -> Iterator[Any]:
    for number in count():
        yield operation(
            0, "ok", "txn", [["send", "t", [number, number]], ["poll", {"t": [[number, number]]}]]
        )


@shape
def all_torn() -> Iterator[Any]:
    for number in count():
        yield operation(0, "info", "txn", [["send", "t", number], ["send", "u", number]])
        yield from read({"t": [[number, number]]})


@shape
def cycles() -> Iterator[Any]:
    for number in count(0, 2):
        one, two = [number, f"a{number}"], [number + 1, f"b{number}"]
        yield operation(0, "ok", "txn", [["send", "t", one], ["send", "u", [number + 1, f"c{number}"]]])
        yield operation(1, "ok", "txn", [["send", "t", two], ["send", "u", [number, f"d{number}"]]])


@shape
def one_knot() -> Iterator[Any]:
    yield operation(0, "ok", "txn", [["send", "t", [0, 0]], ["send", "u", [2**40, 0]]])
    for number in count(1):
        yield operation(
            0, "ok", "txn", [["send", "t", [number, number]], ["send", "u", [2**40 - number, number]]]
        )


@shape
def reads_of_failed_polls() -> Iterator[Any]:
    for number in count():
        yield from read({"t": [[number * 3 % 1_000_003, number]]}, how="fail")


@shape
def offsets_beyond_64_bits() -> Iterator[Any]:
    for number in count(2**70):
        yield from sent(number, number)


@shape
def long_values() -> Iterator[Any]:
    for number in count():
        value = f"{number}" * 100_000
        yield from sent(value, number)
        yield from read({"t": [[number, value]]})


@shape
def long_numbers() -> Iterator[Any]:
    for number in count(10**900):
        yield from sent(number, None)


@shape
def giant_string() -> Iterator[Any]:
    for letter in "abcd":
        yield from sent(letter * _LONG_LINE, None)


@shape
def giant_string_of_escapes() -> Iterator[Any]:
    for letter in "abcd":
        yield from sent(letter + '"\\' * (_LONG_LINE // 4), None)


@shape
def one_line_without_end() -> Iterator[Any]:
    yield operation(0, "invoke", "send", [["send", "t", "v" * (64 << 20)]])


@shape
def deep_nesting() -> Iterator[Any]:
    while True:
        yield operation(0, "ok", "crash", json.loads("[" * 150 + "]" * 150))


@shape
def brackets() -> Iterator[Any]:
    while True:
        yield "[" * _LONG_LINE


@shape
def empty_maps() -> Iterator[Any]:
    while True:
        yield operation(0, "ok", "crash", [{}] * (_LONG_LINE // 4))


@shape
def names_alone() -> Iterator[Any]:
    while True:
        yield {"process": "n"}


@shape
def keys_without_end() -> Iterator[Any]:
    while True:
        yield operation(0, "ok", "crash", None, **{f"k{number}": number for number in range(_WIDE)})


@shape
def blank_lines() -> Iterator[Any]:
    yield from sent("v", 0)
    while True:
        yield "\n" * _WIDE


@shape
def malformed_lines() -> Iterator[Any]:
    while True:
        yield {"process": 0}


def lines(name: str, kind: str, size: int) -> Iterator[bytes]:
    """Yield the lines of a history of about *size* bytes."""
    is_edn = "edn" in kind
    if kind.startswith("vector"):
        yield b"["
    while size > 0:
        for item in SHAPES[name]():
            text = (
                item
                if isinstance(item, str)
                else edn(item)
                if is_edn
                else json.dumps(item, separators=(",", ":"))
            )
            line = f"{text}\n".encode()
            if size < len(line) and size < 1 << 20:
                size = 0
                break
            size -= len(line)
            yield line
            if size <= 0:
                break
    if kind.startswith("vector"):
        yield b"]"


def write(path: Path, name: str, kind: str, size: int) -> None:
    with gzip.open(path, "wb", compresslevel=1) if kind.endswith("gz") else path.open("wb") as stream:
        stream.writelines(lines(name, kind, size))


def edn(value: Any) -> str:
    """Return a value in Jepsen's EDN, with keywords for keys and micro-operations."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_key(key)} {edn(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        head = f":{value[0]}" if value and value[0] in ("send", "poll") else None
        return "[" + " ".join([head, *map(edn, value[1:])] if head else map(edn, value)) + "]"
    if isinstance(value, str):
        return (
            f":{value}"
            if value in ("invoke", "ok", "fail", "info", "send", "poll", "txn")
            else json.dumps(value)
        )
    return "nil" if value is None else str(value).lower()


def _key(key: str) -> str:
    return (
        f":{key}"
        if key in ("process", "type", "f", "value", "time", "index", "rebalance-log")
        else json.dumps(key)
    )


def main() -> int:
    """Check large histories, print their costs, and return 1 if any failed or cost too much."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.large_histories", description=__doc__)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help=", ".join(SHAPES))
    parser.add_argument("--mib", type=float, default=57)
    parser.add_argument("--kind", choices=KINDS, action="append")
    options = parser.parse_args()
    bad = 0
    environment = {**plain_environment(), "PYTHONPATH": PYTHONPATH}
    with tempfile.TemporaryDirectory(prefix="harrow-large-") as place:
        folder = Path(place) / "case"
        folder.mkdir()
        for name in options.shapes or SHAPES:
            for kind in options.kind or ("jsonl",):
                path = folder / f"history.{kind}"
                write(path, name, kind, int(options.mib * (1 << 20)))
                outcome = run_in_fork(("check", path.name, "--format", "json"), folder, environment)
                path.unlink()
                is_bad = bool(outcome.faults) or outcome.is_costly
                bad += is_bad
                sys.stdout.write(
                    f"{'!' if is_bad else ' '} {name} as {kind}: exit code {outcome.code}, {outcome.cpu_s:.1f} CPU s, "
                    f"{outcome.rss_kib >> 10} MiB {' '.join(outcome.faults)}\n"
                )
                sys.stdout.flush()
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())

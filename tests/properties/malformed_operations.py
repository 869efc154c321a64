"""Lines that are not operations of a history, each for one reason."""

import json
from collections.abc import Callable
from typing import Any

from tests.properties.correct_log import Line

# Invalid values for fields that must be numbers, names or lists.
INVALID_NUMBERS: list[Any] = [-1, "0", 1.5, True, {}, [0]]
INVALID_NAMES: list[Any] = [None, 1.5, True, {}, ["t"]]
INVALID_LISTS: list[Any] = [None, "", "send", 1, True, {}, {"send": 1}]


def operation(**changed: Any) -> Line:
    line = {
        "index": 3,
        "process": 1,
        "type": "ok",
        "f": "send",
        "value": [["send", "t", [0, "m"]]],
        "time": 5,
    }
    return {**line, **changed}


def without(field: str) -> Line:
    return {name: value for name, value in operation().items() if name != field}


def send(*parts: Any) -> Line:
    return operation(value=[["send", *parts]])


def poll(*parts: Any) -> Line:
    return operation(f="poll", value=[["poll", *parts]])


def rebalanced(log: Any) -> Line:
    return {**poll({"t": [[0, "m"]]}), "rebalance-log": log}


def each(make: Callable[[Any], Any], wrong: list[Any]) -> list[Any]:
    return [make(value) for value in wrong]


GOOD = json.dumps(operation())

NOT_JSON: list[bytes] = [
    *(b"{", b"{}}", b"{'process': 1}", b"nonsense", b"\x00", b"[" * 100_000),
    GOOD[:-20].encode(),
    *(f"{GOOD}{end}".encode() for end in (" trailing", f",{GOOD}", f" {GOOD}", "]", "}", ",")),
    GOOD.replace("5}", "5,}").encode(),
    GOOD.replace('"m"', '"\xff"').encode("latin-1"),
    GOOD.replace('"m"', '"\x01"').encode(),
]

NOT_AN_OPERATION: list[Any] = [
    *([], None, 3, 1.5, True, "ok", {}, [operation()]),
    *each(without, ["process", "type", "f", "value"]),
    *each(lambda index: operation(index=index), [*INVALID_NUMBERS, 10**30]),
    *each(lambda time: operation(time=time), [*INVALID_NUMBERS, 10**30]),
    *each(lambda process: operation(process=process), [-1, 10**30, 1.5, True, None, [1], {}]),
    *each(lambda type_: operation(type=type_), ["okay", "", None, 1, True, ["ok"], {}]),
    *each(lambda f: operation(f=f), ["write", "", None, 1, True, ["send"], {}]),
    *each(lambda value: operation(value=value), INVALID_LISTS),
    *each(lambda value: operation(f="poll", value=value), INVALID_LISTS),
    *each(lambda value: operation(f="txn", value=value), INVALID_LISTS),
    *each(lambda value: operation(f="assign", value=value), INVALID_LISTS),
    *each(lambda key: operation(f="subscribe", value=["t", key]), INVALID_NAMES),
    *each(
        lambda micro: operation(value=[micro]), [*INVALID_LISTS, [], ["sent", "t", "m"], [None], [["send"]]]
    ),
    *each(
        lambda kind: operation(f="txn", value=[["poll"], [kind, "t", "m"]]), ["write", "", None, 1, ["send"]]
    ),
    operation(f="txn", value=[["send", "t", [0, "m"]], ["poll", {"t": [[0]]}]]),
    *(send(), send("t"), send("t", "m", 1), send("t", 0, "m")),
    *each(lambda key: send(key, [0, "m"]), INVALID_NAMES),
    *each(lambda value: send("t", value), [None, True, 1.5, {}, [], [0], [0, "m", 1], [[0, "m"]]]),
    *each(lambda offset: send("t", [offset, "m"]), INVALID_NUMBERS),
    *each(lambda value: send("t", [0, value]), INVALID_NAMES),
    *each(poll, [None, [], "t", 1, True]),
    poll({}, {}),
    *each(lambda pairs: poll({"t": pairs}), [*INVALID_LISTS, [0, "m"], [None], [[]], [[0]], [[0, "m", 1]]]),
    *each(lambda offset: poll({"t": [[0, "m"], [offset, "n"]]}), [*INVALID_NUMBERS, None]),
    *each(lambda value: poll({"t": [[0, "m"], [1, value]]}), INVALID_NAMES),
    *each(
        rebalanced,
        [1, {"during": 1}, "t", [1], [[]], [{}], [{"keys": "t"}], [{"keys": [None]}], [{"keys": None}]],
    ),
]

MALFORMED = [*NOT_JSON, *(json.dumps(line).encode() for line in NOT_AN_OPERATION)]

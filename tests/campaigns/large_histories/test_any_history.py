"""Whatever clients do in a history, it is judged the same after it is reduced.

Random histories here are short and dense: operations that begin without an end, end twice or
without a beginning, at equal times, with the same values at the same offsets.
"""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harrow.campaigns.large_histories import range_reduction
from harrow.campaigns.large_histories.reduced_reading import read_reduced
from harrow.campaigns.record.history_file import read_history
from harrow.checks.history.anomalies import ANOMALIES
from harrow.checks.history.judge import judge_history
from harrow.checks.history.version_order import VersionOrders
from harrow.cluster_model.history import INVOKE
from tests.campaigns.large_histories.test_range_reduction import FILES, at_random, reduced
from tests.campaigns.large_histories.test_reductions import check_same, in_lines, numbered, opened

PARTITIONS = st.sampled_from(["t-0", "t-1"])
VALUES = st.sampled_from(["a", "b", "c"])
RECORDS = st.tuples(st.integers(0, 3), VALUES).map(list)
TYPES = st.sampled_from([INVOKE, "ok", "ok", "fail", "info"])


def sends(type_: str) -> st.SearchStrategy[list[Any]]:
    written = VALUES if type_ == INVOKE else st.one_of(VALUES, RECORDS)
    return st.tuples(st.just("send"), PARTITIONS, written).map(list)


def polls(type_: str) -> st.SearchStrategy[list[Any]]:
    if type_ == INVOKE:
        return st.just(["poll"])
    return st.dictionaries(PARTITIONS, st.lists(RECORDS, max_size=2)).map(lambda read: ["poll", read])


@st.composite
def operations(draw: st.DrawFn) -> dict[str, Any]:
    type_ = draw(TYPES)
    f = draw(st.sampled_from(["send", "send", "poll", "poll", "txn", "txn", "assign"]))
    if f == "assign":
        value: list[Any] = draw(st.lists(PARTITIONS, max_size=2, unique=True))
    else:
        micro = {"send": sends(type_), "poll": polls(type_)}.get(f, st.one_of(sends(type_), polls(type_)))
        value = draw(st.lists(micro, min_size=1, max_size=3))
    process, time = draw(st.integers(0, 1)), draw(st.sampled_from([0, 0, 1_000]))
    rebalanced = draw(st.one_of(st.just([]), st.lists(PARTITIONS, max_size=2, unique=True)))
    log = {"rebalance-log": [{"keys": rebalanced}]} if rebalanced else {}
    return {"process": process, "type": type_, "f": f, "value": value, "time": time, **log}


@given(history=st.lists(operations(), min_size=2, max_size=12))
def test_a_history_that_breaks_a_rule_tries_it(history: list[dict[str, Any]]) -> None:
    orders = VersionOrders(read_history(numbered(history), "whole"))
    for name, anomaly in ANOMALIES.items():
        assert not any(True for _ in anomaly.find(orders)) or anomaly.is_tried(orders), name


@pytest.mark.soak(size=8, rounds_in_test=2, rounds_in_soak=200)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=st.lists(operations(), min_size=2, max_size=12), random=st.randoms(use_true_random=False))
def test_any_short_history_is_judged_like_the_whole(
    tmp_path: Path, history: list[dict[str, Any]], random: Any
) -> None:
    content = numbered(history)
    whole = read_history(content, "whole")
    check_same(whole, read_reduced([("one", opened(content))]))
    check_same(whole, in_lines(tmp_path / "history.jsonl", content))
    paths = [tmp_path / f"{number}.jsonl" for number in range(FILES)]
    for path, part in zip(paths, at_random(content, random), strict=True):
        path.write_bytes(b"".join(part))
    for files in ([tmp_path / "history.jsonl"], paths):
        found = reduced(files, 200)
        if found is not None:
            check_same(whole, found)


def begun(process: int, f: str, *value: list[Any]) -> dict[str, Any]:
    return {"process": process, "type": INVOKE, "f": f, "value": list(value), "time": 0}


def ended(process: int, type_: str, f: str, *value: list[Any]) -> dict[str, Any]:
    return {"process": process, "type": type_, "f": f, "value": list(value), "time": 0}


def plain(first: int) -> list[dict[str, Any]]:
    """Return sends of process 0 to offsets from *first* on, and polls of process 1."""
    return [
        operation
        for offset in range(first, first + 4)
        for name in ("x", "y")
        for operation in (
            begun(0, "send", ["send", name, f"{name}{offset}"]),
            ended(0, "ok", "send", ["send", name, [offset, f"{name}{offset}"]]),
            begun(1, "poll", ["poll"]),
            ended(1, "ok", "poll", ["poll", {name: [[offset, f"{name}{offset}"]]}]),
        )
    ]


def polled(name: str, *offsets: int, process: int = 1) -> list[dict[str, Any]]:
    records = [[offset, f"{name}{offset}"] for offset in offsets]
    return [begun(process, "poll", ["poll"]), ended(process, "ok", "poll", ["poll", {name: records}])]


X4, X5, Y4 = (["send", name, [offset, f"{name}{offset}"]] for name, offset in (("x", 4), ("x", 5), ("y", 4)))
TO_X4, TO_X5, TO_Y4 = (["send", name, f"{name}{offset}"] for name, offset in (("x", 4), ("x", 5), ("y", 4)))
FAILED = [begun(0, "send", ["send", "x", "f"]), ended(0, "fail", "send", ["send", "x", "f"])]
READ_Y3 = ["poll", {"y": [[3, "y3"]]}]
EXAMPLES = {
    "failed send": (FAILED, 4, {"G1a"}),
    "sends to two partitions": (
        [begun(0, "txn", TO_X4, TO_Y4), ended(0, "ok", "txn", X4, Y4), *polled("x", 4), *polled("y", 4)],
        5,
        {"G0"},
    ),
    "sends to one partition": (
        [begun(0, "txn", TO_X4, TO_X5), ended(0, "ok", "txn", X4, X5), *polled("x", 4, 5)],
        6,
        {"G0", "int-send-skip", "int-nonmonotonic-send"},
    ),
    "unknown outcome": (
        [
            begun(0, "txn", TO_X4, TO_Y4),
            ended(0, "info", "txn", TO_X4, TO_Y4),
            *polled("x", 4),
            *polled("y", 4),
        ],
        5,
        {"G0", "torn-transaction"},
    ),
    "no end": (
        [begun(0, "txn", TO_X4, TO_Y4), *polled("x", 4), *polled("y", 4)],
        5,
        {"G0", "torn-transaction"},
    ),
    "ends of each send": (
        [
            begun(0, "txn", TO_X4, TO_Y4),
            ended(0, "ok", "send", X4),
            ended(0, "ok", "send", Y4),
            *polled("x", 4),
            *polled("y", 4),
        ],
        5,
        set(),
    ),
    "send and poll": (
        [begun(0, "txn", TO_X4, ["poll"]), ended(0, "ok", "txn", X4, READ_Y3), *polled("x", 4)],
        5,
        {"G1c", "precommitted-read"},
    ),
}
ABOUT_TRANSACTIONS_AND_FAILURES = set[str]().union(*(rules for _, _, rules in EXAMPLES.values()))


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_only_operation_that_tries_a_rule_remains_in_a_reduced_history(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operations, following, tried = EXAMPLES[name]
    content = numbered([*plain(0), *operations, *plain(following)])
    whole = read_history(content, "whole")
    rules = judge_history(whole).rules
    assert {rule for rule in ABOUT_TRANSACTIONS_AND_FAILURES if rules[rule].status != "skipped"} == tried
    check_all_reductions(content, tmp_path / "history.jsonl", monkeypatch)


def check_all_reductions(content: list[bytes], path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read_history(content, "whole")
    check_same(whole, read_reduced([("one", opened(content))]))
    check_same(whole, in_lines(path, content))
    for whole_max in (range_reduction.WHOLE_MAX, 0):
        monkeypatch.setattr(range_reduction, "WHOLE_MAX", whole_max)
        for split_bytes in (1 << 20, 2_000):
            found = reduced([path], split_bytes)
            assert found is not None
            check_same(whole, found)


def read_by_others(*names: str) -> list[dict[str, Any]]:
    """Return a poll of each record, by a process of its own."""
    numbered_names = enumerate(names, 100)
    return [
        line for process, name in numbered_names for line in polled(name[0], int(name[1:]), process=process)
    ]


def sent(name: str, offset: int, value: str) -> list[dict[str, Any]]:
    return [
        begun(0, "send", ["send", name, value]),
        ended(0, "ok", "send", ["send", name, [offset, value]]),
    ]


def assigned(*names: str) -> list[dict[str, Any]]:
    return [{"process": 1, "type": "ok", "f": "assign", "value": list(names), "time": 0}]


def rebalanced(operations: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [*operations[:-1], operations[-1] | {"rebalance-log": [{"keys": [name]}]}]


SENT_IN_X = [*sent("x", 5, "x5"), *sent("x", 12, "x12"), *sent("x", 15, "x15")]
IN_TURN = {"poll-skip", "nonmonotonic-poll"}
WITHIN = {"int-poll-skip", "int-nonmonotonic-poll"}
IN_ORDER = {
    "nothing": ([], [], set()),
    "polls of one process": (polled("x", 2), polled("x", 3), IN_TURN),
    "polls of two partitions": (polled("x", 2), polled("y", 0), set()),
    "polls beside a kept position": (polled("x", 2), [*assigned("y", "x"), *polled("x", 3)], IN_TURN),
    "polls without a position": (polled("x", 2), [*assigned("y"), *assigned("x"), *polled("x", 3)], set()),
    "polls in a position kept in vain": (polled("x", 2), [*assigned("x"), *polled("y", 0)], set()),
    "records of one poll": ([], polled("x", 2, 3), WITHIN),
    "records of one poll of two partitions": (
        [],
        [begun(1, "txn", ["poll"]), ended(1, "ok", "txn", ["poll", {"x": [[2, "x2"]], "y": [[0, "y0"]]}])],
        set(),
    ),
    "records of two polls of one operation": (
        [],
        [
            begun(1, "poll", ["poll"], ["poll"]),
            ended(1, "ok", "poll", ["poll", {"x": [[2, "x2"]]}], ["poll", {"x": [[3, "x3"]]}]),
        ],
        WITHIN,
    ),
    "records of a rebalanced partition": ([], rebalanced(polled("x", 2, 3), "x"), set()),
    "records beside a rebalanced partition": ([], rebalanced(polled("x", 2, 3), "y"), WITHIN),
    "one send": ([], sent("x", 5, "x5"), set()),
    "sends of one process": ([], SENT_IN_X, {"nonmonotonic-send"}),
    "sends to two partitions": (
        SENT_IN_X,
        [*sent("y", 0, "y0"), *sent("y", 1, "y1"), *sent("y", 2, "y2"), *read_by_others("y0", "y1", "y2")],
        {"nonmonotonic-send", "misrouted"},
    ),
    "one value in two partitions": (
        SENT_IN_X,
        [
            *(*sent("y", 0, "y0"), *sent("y", 1, "x12"), *sent("y", 2, "y2"), *read_by_others("y0", "y2")),
            *(begun(1, "poll", ["poll"]), ended(1, "ok", "poll", ["poll", {"y": [[1, "x12"]]}])),
        ],
        {"nonmonotonic-send"},
    ),
}
ABOUT_ORDER = set[str]().union(*(rules for _, _, rules in IN_ORDER.values()))


@pytest.mark.parametrize("name", IN_ORDER)
def test_every_reduction_knows_which_rules_of_order_a_history_tries(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after, tried = IN_ORDER[name]
    # No rule needs any of these records itself, except for the first one and the last one.
    others = read_by_others(*(f"x{offset}" for offset in range(30)))
    content = numbered([*others[:20], *before, *others[20:40], *after, *others[40:]])
    rules = judge_history(read_history(content, "whole")).rules
    assert {rule for rule in ABOUT_ORDER if rules[rule].status != "skipped"} == tried
    check_all_reductions(content, tmp_path / "history.jsonl", monkeypatch)

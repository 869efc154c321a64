"""Judging a history takes work in proportion to its size, whatever its shape."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

import pytest

from harrow.compilation import COMPILED, compilation
from tests.checks.history.history_builder import Operation, assign, fail, info, invoked, judge, ok, poll, send

FEW: Final = 60
MANY: Final = 240
GROWTH_MAX: Final = 1.5
"""The permitted growth of the work per record when a history grows fourfold: sorting and lookups
grow a little.
"""


def equal_sends_of_one_operation(count: int) -> list[Operation]:
    return [ok(0, *[send("t", "a")] * count)]


def equal_sends_of_many_processes(count: int) -> list[Operation]:
    sends = [send("t", "a", offset) for offset in range(count)]
    invocations = [
        {"process": process, "type": "invoke", "f": "send", "value": [invoked(each)]}
        for process, each in enumerate(sends)
    ]
    ended = [
        {"process": process, "type": "ok", "f": "send", "value": [each]} for process, each in enumerate(sends)
    ]
    return [invocations, ended]


def equal_sends_without_completions(count: int) -> list[Operation]:
    return [[{"process": 0, "type": "invoke", "f": "send", "value": [send("t", "a")]}] for _ in range(count)]


def unknown_equal_sends_of_a_value_at_many_offsets(count: int) -> list[Operation]:
    many = poll("t", *[(2 * offset, "a") for offset in range(count)])
    return [info(0, *[send("t", "a")] * count, many), ok(1, poll("t", (2 * count, "b")))]


def a_value_at_many_offsets_beside_transactions(count: int) -> list[Operation]:
    many = poll("t", *[(2 * offset, "a") for offset in range(count)])
    return [ok(0, send("t", "a"), poll("t")), ok(1, many, send("t", "b"))]


def two_values_at_each_of_many_offsets(count: int) -> list[Operation]:
    return [ok(0, poll("t", *[(place // 2, f"{place % 2}") for place in range(count)]))]


def an_operation_that_polls_and_sends_many_records(count: int) -> list[Operation]:
    sent = [send("t", f"a{number}") for number in range(count)]
    return [ok(0, *sent, poll("t", *[(number, f"b{number}") for number in range(count)]))]


def jumps_over_aborted_records(count: int) -> list[Operation]:
    sent = [send("t", f"a{number}") for number in range(count)]
    seen = poll("t", *[(number + 1, f"a{number}") for number in range(count)])
    return [
        fail(0, *sent),
        fail(1, seen, send("t", "z")),
        ok(2, poll("t", *[(0, "x"), (count + 9, "y")] * count)),
    ]


def unsent_records_in_many_partitions(count: int) -> list[Operation]:
    sent = [ok(0, send(f"t{number}", f"a{number}", 0)) for number in range(count)]
    read = poll("x", *[(number, f"a{number}") for number in range(count)])
    return [*sent, ok(0, send("x", "z", count)), ok(1, read)]


def records_of_a_torn_transaction(count: int) -> list[Operation]:
    sent = [send("t", f"a{number}") for number in range(2 * count)]
    read = poll("t", *[(number, f"a{number}") for number in range(count)])
    return [info(0, *sent), ok(1, read), ok(1, ["poll", {}])]


def transactions_that_interleave(count: int) -> list[Operation]:
    pairs = [
        (
            ok(0, send("t", f"a{n}", 2 * n), send("u", f"c{n}", 2 * n + 1)),
            ok(1, send("t", f"b{n}", 2 * n + 1), send("u", f"d{n}", 2 * n)),
        )
        for n in range(count)
    ]
    return [operation for pair in pairs for operation in pair]


def consumers_that_go_back_repeatedly(count: int) -> list[Operation]:
    sent = [ok(0, send("t", f"a{offset}", offset)) for offset in range(count)]
    return [*sent, *[ok(1, poll("t", (offset, f"a{offset}"))) for offset in reversed(range(count))]]


def assignments_of_many_partitions(count: int) -> list[Operation]:
    names = [f"t{number}" for number in range(count)]
    return [assign(1, *names), *[ok(1, poll(name, (0, "a"))) for name in names], assign(1, *names)]


SHAPES: Final[list[Callable[[int], list[Operation]]]] = [
    equal_sends_of_one_operation,
    equal_sends_of_many_processes,
    equal_sends_without_completions,
    unknown_equal_sends_of_a_value_at_many_offsets,
    a_value_at_many_offsets_beside_transactions,
    two_values_at_each_of_many_offsets,
    an_operation_that_polls_and_sends_many_records,
    jumps_over_aborted_records,
    unsent_records_in_many_partitions,
    records_of_a_torn_transaction,
    transactions_that_interleave,
    consumers_that_go_back_repeatedly,
    assignments_of_many_partitions,
]


def lines_run(operations: list[Operation]) -> int:
    """Return how many lines of Python judging runs."""
    lines = 0

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        judge(*operations)
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.skipif(compilation()[0] == COMPILED, reason="compiled code has no lines to count")
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_four_times_the_history_takes_four_times_the_work(shape: Callable[[int], list[Operation]]) -> None:
    lines_run(shape(2))
    few, many = lines_run(shape(FEW)), lines_run(shape(MANY))
    assert many <= GROWTH_MAX * few * MANY / FEW

"""The order of polls and sends in a recorded history, one small history for each thing the definitions say."""

from typing import Any

import pytest

from tests.checks.history.history_builder import (
    ALL,
    assign,
    fail,
    found,
    info,
    judge,
    ok,
    operation,
    poll,
    send,
    subscribe,
)

# The order of polls

THREE = ok(ALL, poll("t", (0, "a"), (1, "b"), (2, "c"), (3, "d")))


def test_poll_skip() -> None:
    history = (THREE, ok(0, poll("t", (0, "a"))), ok(0, poll("t", (2, "c"))))
    assert found(*history) == {"poll-skip": [("t", "c")]}
    assert judge(*history).status == "violated"


def test_nonmonotonic_poll() -> None:
    first = ok(0, poll("t", (0, "a"), (1, "b")))
    assert found(THREE, first, ok(0, poll("t", (0, "a"), (1, "b")))) == {"nonmonotonic-poll": [("t", "a")]}
    assert found(THREE, first, ok(0, poll("t", (1, "b"), (2, "c")))) == {"nonmonotonic-poll": [("t", "b")]}


def test_polls_of_other_processes_and_keys_are_not_in_a_row() -> None:
    assert found(THREE, ok(0, poll("t", (0, "a"))), ok(1, poll("t", (2, "c")))) == {}
    assert found(THREE, ok(0, poll("t", (0, "a"))), ok(0, poll("u", (2, "c")))) == {}


def test_empty_polls_move_nothing() -> None:
    history = [THREE, ok(0, poll("t", (0, "a"))), ok(0, poll("t")), ok(0, ["poll", {}])]
    assert found(*history, ok(0, poll("t", (1, "b")))) == {}
    assert found(*history, ok(0, poll("t", (2, "c")))) == {"poll-skip": [("t", "c")]}


@pytest.mark.parametrize("begin", [assign, subscribe])
def test_a_new_assignment_keeps_only_the_positions_that_it_names(begin: Any) -> None:
    before, after = ok(0, poll("t", (0, "a"))), ok(0, poll("t", (2, "c")))
    assert found(THREE, before, begin(0, "t", "u"), after) == {"poll-skip": [("t", "c")]}
    assert found(THREE, before, begin(0, "u"), after) == {}
    assert found(THREE, before, begin(0), begin(0, "t"), after) == {}
    assert found(THREE, before, begin(1, "u"), after) == {"poll-skip": [("t", "c")]}
    assert found(THREE, before, begin(0, "u")[:1], after) == {"poll-skip": [("t", "c")]}


def test_skips_of_consumers_that_subscribed_are_permitted() -> None:
    sent = ok(2, send("t", "a", 0))
    read = (ok(0, poll("t", (0, "a"), (1, "b"))), ok(0, poll("t", (3, "d"))), ok(0, poll("t", (3, "d"))))
    verdict = judge(sent, THREE, subscribe(0, "t"), *read)
    for name in ("poll-skip", "nonmonotonic-poll"):
        assert verdict.rules[name].status == "permitted"
        assert all(finding.permitted_by for finding in verdict.rules[name].findings)
    assert verdict.status == "permitted"
    assert judge(sent, THREE, subscribe(1, "t"), *read).status == "violated"


@pytest.mark.parametrize("type_", ["fail", "info"])
def test_an_aborted_transaction_is_read_again(type_: str) -> None:
    history = (THREE, ok(0, poll("t", (0, "a"))), operation(0, type_, poll("t", (1, "b"), (2, "c"))))
    assert found(*history, ok(0, poll("t", (1, "b"), (2, "c")))) == {}
    assert found(*history, ok(0, poll("t", (3, "d")))) == {"poll-skip": [("t", "d")]}
    assert found(*history, ok(0, poll("t", (0, "a")))) == {"nonmonotonic-poll": [("t", "a")]}
    assert found(*history, *history[2:], ok(0, poll("t", (1, "b")))) == {}


@pytest.mark.parametrize("type_", ["fail", "info"])
def test_an_aborted_transaction_that_was_the_first_leaves_no_place(type_: str) -> None:
    aborted = operation(0, type_, poll("t", (2, "c")))
    assert found(THREE, aborted, ok(0, poll("t", (0, "a")))) == {}


def test_an_aborted_transaction_goes_on_where_the_one_before_ended() -> None:
    aborted = fail(0, poll("t", (2, "c")), send("u", "x"))
    assert found(THREE, ok(0, poll("t", (0, "a"))), aborted) == {"poll-skip": [("t", "c")]}


def test_a_committed_transaction_moves_on() -> None:
    sent = ok(0, poll("t", (1, "b")), send("u", "x", 0))
    history = (THREE, ok(0, poll("t", (0, "a"))), sent, ok(1, poll("u", (0, "x"))))
    assert found(*history, ok(0, poll("t", (2, "c")))) == {}
    assert found(*history, ok(0, poll("t", (1, "b")))) == {"nonmonotonic-poll": [("t", "b")]}


def test_within_one_operation() -> None:
    assert found(THREE, ok(0, poll("t", (0, "a"), (2, "c")))) == {"int-poll-skip": [("t", "c")]}
    assert found(THREE, ok(0, poll("t", (0, "a")), poll("t", (2, "c")))) == {"int-poll-skip": [("t", "c")]}
    assert found(THREE, ok(0, poll("t", (1, "b"), (0, "a")))) == {"int-nonmonotonic-poll": [("t", "a")]}
    assert found(THREE, ok(0, poll("t", (1, "b")), poll("t", (1, "b")))) == {
        "int-nonmonotonic-poll": [("t", "b")]
    }


def test_the_next_operation_goes_on_where_the_last_poll_ended() -> None:
    again = ok(0, poll("t", (0, "a"), (1, "b"), (0, "a")))
    assert found(THREE, again, ok(0, poll("t", (1, "b")))).keys() == {"int-nonmonotonic-poll"}
    assert found(THREE, again, ok(0, poll("t", (2, "c")))).keys() == {"int-nonmonotonic-poll", "poll-skip"}


def test_a_subscribed_consumer_may_not_skip_within_one_operation() -> None:
    verdict = judge(THREE, subscribe(0, "t"), ok(0, poll("t", (0, "a"), (2, "c"))))
    assert verdict.rules["int-poll-skip"].status == "violated"


def test_keys_that_were_rebalanced_are_exempt_within_the_operation() -> None:
    polls = [poll("t", (0, "a"), (2, "c")), poll("t", (1, "b"))]
    assert found(THREE, ok(0, *polls)).keys() == {"int-poll-skip", "int-nonmonotonic-poll"}
    assert found(THREE, ok(0, *polls, rebalanced=("u",))).keys() == {"int-poll-skip", "int-nonmonotonic-poll"}
    assert found(THREE, ok(0, *polls, rebalanced=("u", "t"))) == {}
    assert found(THREE, ok(0, *polls, rebalanced=("t",)), ok(0, poll("t", (2, "c")))) == {}


# The order of sends

READ = ok(ALL, poll("t", (0, "a"), (1, "b"), (2, "c")))


def test_nonmonotonic_send() -> None:
    history = (READ, ok(0, send("t", "b", 1)), ok(0, send("t", "a", 0)))
    assert found(*history) == {"nonmonotonic-send": [("t", "a")]}
    assert judge(*history).status == "violated"


def test_two_sends_at_one_offset_are_not_in_order() -> None:
    reads = (ok(ALL, poll("t", (0, "a"))), ok(ALL + 1, poll("t", (0, "b"))))
    assert found(*reads, ok(0, send("t", "a", 0)), ok(0, send("t", "b", 0))).keys() == {
        "inconsistent-offsets",
        "nonmonotonic-send",
    }
    assert found(*reads, ok(0, send("t", "a", 0), send("t", "b", 0))).keys() == {
        "inconsistent-offsets",
        "int-nonmonotonic-send",
    }


def test_sends_of_other_processes_and_keys_are_not_in_a_row() -> None:
    assert found(READ, ok(0, send("t", "b", 1)), ok(1, send("t", "a", 0))) == {}
    other = ok(ALL, poll("u", (0, "d")))
    assert found(READ, other, ok(0, send("t", "b", 1)), ok(0, send("u", "d", 0))) == {}


def test_a_process_may_leave_out_records_of_others() -> None:
    assert found(READ, ok(0, send("t", "a", 0)), ok(0, send("t", "c", 2))) == {}


def test_each_send_is_compared_with_the_one_before() -> None:
    history = (ok(0, send("t", "c", 2)), ok(0, send("t", "a", 0)), ok(0, send("t", "b", 1)))
    assert found(READ, *history) == {"nonmonotonic-send": [("t", "a")]}


def test_offsets_may_be_known_from_polls() -> None:
    assert found(READ, ok(0, send("t", "b")), ok(0, send("t", "a"))) == {"nonmonotonic-send": [("t", "a")]}
    assert found(READ, info(0, send("t", "b")), info(0, send("t", "a"))) == {
        "nonmonotonic-send": [("t", "a")]
    }


def test_sends_with_an_unknown_offset_are_excluded() -> None:
    unknown = (info(0, send("t", "x")), info(0, send("t", "y", 0)), fail(0, send("t", "z", 0)))
    assert found(READ, ok(0, send("t", "a", 0)), *unknown, ok(0, send("t", "b", 1))) == {}
    assert found(READ, ok(0, send("t", "b", 1)), *unknown, ok(0, send("t", "a", 0))) == {
        "nonmonotonic-send": [("t", "a")]
    }


def test_an_aborted_transaction_may_have_read_a_send_of_unknown_outcome() -> None:
    """It stands in the version order, whether or not its operation is known to have committed."""
    sends = (ok(0, send("t", "b", 1)), info(0, send("t", "x")))
    read = ok(ALL, poll("t", (1, "b")))
    assert found(read, *sends, fail(2, poll("t", (0, "x")))) == {"nonmonotonic-send": [("t", "x")]}


def test_a_producer_may_have_several_sends_under_way() -> None:
    first, second = ok(0, send("t", "a", 0)), ok(0, send("t", "b", 1))
    assert found(READ, first[:1], second[:1], second[1:], first[1:]) == {}
    assert found(READ, second[:1], first[:1], first[1:], second[1:]) == {"nonmonotonic-send": [("t", "a")]}


def test_int_nonmonotonic_send() -> None:
    assert found(READ, ok(0, send("t", "b", 1), send("t", "a", 0))) == {"int-nonmonotonic-send": [("t", "a")]}


def test_sends_with_an_unknown_offset_are_excluded_within_one_operation() -> None:
    first, unknown, last = send("t", "a"), send("t", "x"), send("t", "c")
    assert found(READ, info(0, last, unknown, first)) == {"int-nonmonotonic-send": [("t", "a")]}
    assert found(READ, info(0, first, unknown, last)) == {"int-send-skip": [("t", "c")]}


def test_the_next_operation_is_compared_with_the_last_send_of_the_one_before() -> None:
    assert found(
        ok(ALL, poll("t", (0, "x"), (1, "a"), (2, "b"))),
        ok(0, send("t", "b", 2), send("t", "a", 1)),
        ok(0, send("t", "x", 0)),
    ) == {"int-nonmonotonic-send": [("t", "a")], "nonmonotonic-send": [("t", "x")]}


def test_int_send_skip_is_permitted() -> None:
    history = (READ, ok(0, send("t", "a", 0), send("t", "c", 2)))
    assert found(*history) == {"int-send-skip": [("t", "c")]}
    assert judge(*history).status == "permitted"

"""The order of polls and sends: one small history for each clause of the definitions."""

from typing import Any

import pytest

from tests.checks.history.history_builder import (
    ALL,
    anomalies,
    assign,
    fail,
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


def test_a_consumer_that_jumps_over_a_record_skips_it() -> None:
    history = (THREE, ok(0, poll("t", (0, "a"))), ok(0, poll("t", (2, "c"))))
    assert anomalies(*history) == {"poll-skip": [("t", "c")]}
    assert judge(*history).status == "violated"


def test_a_consumer_that_reads_a_record_again_goes_back() -> None:
    first = ok(0, poll("t", (0, "a"), (1, "b")))
    assert anomalies(THREE, first, ok(0, poll("t", (0, "a"), (1, "b")))) == {
        "nonmonotonic-poll": [("t", "a")]
    }
    assert anomalies(THREE, first, ok(0, poll("t", (1, "b"), (2, "c")))) == {
        "nonmonotonic-poll": [("t", "b")]
    }


def test_polls_are_compared_only_within_a_process_and_a_key() -> None:
    assert anomalies(THREE, ok(0, poll("t", (0, "a"))), ok(1, poll("t", (2, "c")))) == {}
    assert anomalies(THREE, ok(0, poll("t", (0, "a"))), ok(0, poll("u", (2, "c")))) == {}


def test_an_empty_poll_keeps_the_position() -> None:
    history = [THREE, ok(0, poll("t", (0, "a"))), ok(0, poll("t")), ok(0, ["poll", {}])]
    assert anomalies(*history, ok(0, poll("t", (1, "b")))) == {}
    assert anomalies(*history, ok(0, poll("t", (2, "c")))) == {"poll-skip": [("t", "c")]}


@pytest.mark.parametrize("begin", [assign, subscribe])
def test_a_new_assignment_keeps_only_the_positions_that_it_names(begin: Any) -> None:
    before, after = ok(0, poll("t", (0, "a"))), ok(0, poll("t", (2, "c")))
    assert anomalies(THREE, before, begin(0, "t", "u"), after) == {"poll-skip": [("t", "c")]}
    assert anomalies(THREE, before, begin(0, "u"), after) == {}
    assert anomalies(THREE, before, begin(0), begin(0, "t"), after) == {}
    assert anomalies(THREE, before, begin(1, "u"), after) == {"poll-skip": [("t", "c")]}
    assert anomalies(THREE, before, begin(0, "u")[:1], after) == {"poll-skip": [("t", "c")]}


def test_a_subscribed_consumer_may_skip_and_go_back_between_operations() -> None:
    sent = ok(2, send("t", "a", 0))
    read = (ok(0, poll("t", (0, "a"), (1, "b"))), ok(0, poll("t", (3, "d"))), ok(0, poll("t", (3, "d"))))
    verdict = judge(sent, THREE, subscribe(0, "t"), *read)
    for name in ("poll-skip", "nonmonotonic-poll"):
        assert verdict.rules[name].status == "permitted"
        assert all(finding.permitted_by for finding in verdict.rules[name].findings)
    assert verdict.status == "permitted"
    assert judge(sent, THREE, subscribe(1, "t"), *read).status == "violated"


@pytest.mark.parametrize("type_", ["fail", "info"])
def test_the_records_of_an_aborted_transaction_are_read_again(type_: str) -> None:
    history = (THREE, ok(0, poll("t", (0, "a"))), operation(0, type_, poll("t", (1, "b"), (2, "c"))))
    assert anomalies(*history, ok(0, poll("t", (1, "b"), (2, "c")))) == {}
    assert anomalies(*history, ok(0, poll("t", (3, "d")))) == {"poll-skip": [("t", "d")]}
    assert anomalies(*history, ok(0, poll("t", (0, "a")))) == {"nonmonotonic-poll": [("t", "a")]}
    assert anomalies(*history, *history[2:], ok(0, poll("t", (1, "b")))) == {}


@pytest.mark.parametrize("type_", ["fail", "info"])
def test_an_aborted_first_transaction_leaves_no_position(type_: str) -> None:
    aborted = operation(0, type_, poll("t", (2, "c")))
    assert anomalies(THREE, aborted, ok(0, poll("t", (0, "a")))) == {}


def test_an_aborted_transaction_starts_at_the_previous_position() -> None:
    aborted = fail(0, poll("t", (2, "c")), send("u", "x"))
    assert anomalies(THREE, ok(0, poll("t", (0, "a"))), aborted) == {"poll-skip": [("t", "c")]}


def test_a_committed_transaction_advances_the_position() -> None:
    sent = ok(0, poll("t", (1, "b")), send("u", "x", 0))
    history = (THREE, ok(0, poll("t", (0, "a"))), sent, ok(1, poll("u", (0, "x"))))
    assert anomalies(*history, ok(0, poll("t", (2, "c")))) == {}
    assert anomalies(*history, ok(0, poll("t", (1, "b")))) == {"nonmonotonic-poll": [("t", "b")]}


def test_skips_and_steps_back_within_an_operation_are_separate_anomalies() -> None:
    assert anomalies(THREE, ok(0, poll("t", (0, "a"), (2, "c")))) == {"int-poll-skip": [("t", "c")]}
    assert anomalies(THREE, ok(0, poll("t", (0, "a")), poll("t", (2, "c")))) == {
        "int-poll-skip": [("t", "c")]
    }
    assert anomalies(THREE, ok(0, poll("t", (1, "b"), (0, "a")))) == {"int-nonmonotonic-poll": [("t", "a")]}
    assert anomalies(THREE, ok(0, poll("t", (1, "b")), poll("t", (1, "b")))) == {
        "int-nonmonotonic-poll": [("t", "b")]
    }


def test_an_operation_starts_at_the_end_of_the_last_poll() -> None:
    again = ok(0, poll("t", (0, "a"), (1, "b"), (0, "a")))
    assert anomalies(THREE, again, ok(0, poll("t", (1, "b")))).keys() == {"int-nonmonotonic-poll"}
    assert anomalies(THREE, again, ok(0, poll("t", (2, "c")))).keys() == {
        "int-nonmonotonic-poll",
        "poll-skip",
    }


def test_a_subscribed_consumer_may_not_skip_within_one_operation() -> None:
    verdict = judge(THREE, subscribe(0, "t"), ok(0, poll("t", (0, "a"), (2, "c"))))
    assert verdict.rules["int-poll-skip"].status == "violated"


def test_keys_rebalanced_during_an_operation_are_exempt() -> None:
    polls = [poll("t", (0, "a"), (2, "c")), poll("t", (1, "b"))]
    assert anomalies(THREE, ok(0, *polls)).keys() == {"int-poll-skip", "int-nonmonotonic-poll"}
    assert anomalies(THREE, ok(0, *polls, rebalanced=("u",))).keys() == {
        "int-poll-skip",
        "int-nonmonotonic-poll",
    }
    assert anomalies(THREE, ok(0, *polls, rebalanced=("u", "t"))) == {}
    assert anomalies(THREE, ok(0, *polls, rebalanced=("t",)), ok(0, poll("t", (2, "c")))) == {}


# The order of sends

READ = ok(ALL, poll("t", (0, "a"), (1, "b"), (2, "c")))


def test_a_send_below_the_previous_one_is_nonmonotonic() -> None:
    history = (READ, ok(0, send("t", "b", 1)), ok(0, send("t", "a", 0)))
    assert anomalies(*history) == {"nonmonotonic-send": [("t", "a")]}
    assert judge(*history).status == "violated"


def test_two_sends_at_one_offset_are_nonmonotonic() -> None:
    reads = (ok(ALL, poll("t", (0, "a"))), ok(ALL + 1, poll("t", (0, "b"))))
    assert anomalies(*reads, ok(0, send("t", "a", 0)), ok(0, send("t", "b", 0))).keys() == {
        "inconsistent-offsets",
        "nonmonotonic-send",
    }
    assert anomalies(*reads, ok(0, send("t", "a", 0), send("t", "b", 0))).keys() == {
        "inconsistent-offsets",
        "int-nonmonotonic-send",
    }


def test_sends_are_compared_only_within_a_process_and_a_key() -> None:
    assert anomalies(READ, ok(0, send("t", "b", 1)), ok(1, send("t", "a", 0))) == {}
    other = ok(ALL, poll("u", (0, "d")))
    assert anomalies(READ, other, ok(0, send("t", "b", 1)), ok(0, send("u", "d", 0))) == {}


def test_records_of_other_processes_may_lie_between_sends() -> None:
    assert anomalies(READ, ok(0, send("t", "a", 0)), ok(0, send("t", "c", 2))) == {}


def test_a_send_is_compared_with_the_previous_send() -> None:
    history = (ok(0, send("t", "c", 2)), ok(0, send("t", "a", 0)), ok(0, send("t", "b", 1)))
    assert anomalies(READ, *history) == {"nonmonotonic-send": [("t", "a")]}


def test_a_poll_supplies_the_offset_of_a_send() -> None:
    assert anomalies(READ, ok(0, send("t", "b")), ok(0, send("t", "a"))) == {
        "nonmonotonic-send": [("t", "a")]
    }
    assert anomalies(READ, info(0, send("t", "b")), info(0, send("t", "a"))) == {
        "nonmonotonic-send": [("t", "a")]
    }


def test_sends_of_unknown_offset_are_not_compared() -> None:
    unknown = (info(0, send("t", "x")), info(0, send("t", "y", 0)), fail(0, send("t", "z", 0)))
    assert anomalies(READ, ok(0, send("t", "a", 0)), *unknown, ok(0, send("t", "b", 1))) == {}
    assert anomalies(READ, ok(0, send("t", "b", 1)), *unknown, ok(0, send("t", "a", 0))) == {
        "nonmonotonic-send": [("t", "a")]
    }


def test_a_read_in_an_aborted_transaction_supplies_the_offset_of_a_send() -> None:
    """The record is in the version order even if its operation is not known to have committed."""
    sends = (ok(0, send("t", "b", 1)), info(0, send("t", "x")))
    read = ok(ALL, poll("t", (1, "b")))
    assert anomalies(read, *sends, fail(2, poll("t", (0, "x")))) == {"nonmonotonic-send": [("t", "x")]}


def test_concurrent_sends_are_ordered_by_invocation() -> None:
    first, second = ok(0, send("t", "a", 0)), ok(0, send("t", "b", 1))
    assert anomalies(READ, first[:1], second[:1], second[1:], first[1:]) == {}
    assert anomalies(READ, second[:1], first[:1], first[1:], second[1:]) == {
        "nonmonotonic-send": [("t", "a")]
    }


def test_a_send_below_the_previous_one_of_its_operation_is_nonmonotonic() -> None:
    assert anomalies(READ, ok(0, send("t", "b", 1), send("t", "a", 0))) == {
        "int-nonmonotonic-send": [("t", "a")]
    }


def test_sends_of_unknown_offset_are_not_compared_within_an_operation() -> None:
    first, unknown, last = send("t", "a"), send("t", "x"), send("t", "c")
    assert anomalies(READ, info(0, last, unknown, first)) == {"int-nonmonotonic-send": [("t", "a")]}
    assert anomalies(READ, info(0, first, unknown, last)) == {"int-send-skip": [("t", "c")]}


def test_an_operation_is_compared_with_the_last_send_of_the_previous_one() -> None:
    assert anomalies(
        ok(ALL, poll("t", (0, "x"), (1, "a"), (2, "b"))),
        ok(0, send("t", "b", 2), send("t", "a", 1)),
        ok(0, send("t", "x", 0)),
    ) == {"int-nonmonotonic-send": [("t", "a")], "nonmonotonic-send": [("t", "x")]}


def test_a_skip_between_sends_of_an_operation_is_permitted() -> None:
    history = (READ, ok(0, send("t", "a", 0), send("t", "c", 2)))
    assert anomalies(*history) == {"int-send-skip": [("t", "c")]}
    assert judge(*history).status == "permitted"


def test_sends_of_equal_values_in_flight_end_in_the_order_of_their_invocations() -> None:
    first, second = ok(0, send("t", "a", 0)), ok(0, send("t", "a", 1))
    begun = [first[0], second[0]]
    found = anomalies(begun, [first[1], second[1]], ok(1, poll("t", (0, "a"), (1, "a"))))
    assert found.keys() == {"duplicate"}

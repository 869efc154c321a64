"""Findings G0 and G1c of a history: one small history for each clause of the definitions."""

import pytest

from tests.checks.history.history_builder import ALL, anomalies, fail, info, judge, ok, poll, send

READ_BOTH = ok(ALL, poll("t", (0, "a"), (1, "b")), poll("u", (0, "c"), (1, "d")))


def test_a_write_cycle_is_permitted() -> None:
    history = (
        READ_BOTH,
        ok(0, send("t", "a", 0), send("u", "d", 1)),
        ok(1, send("t", "b", 1), send("u", "c", 0)),
    )
    assert anomalies(*history).keys() == {"G0"}
    assert judge(*history).status == "permitted"
    assert judge(*history).rules["G0"].findings[0].permitted_by


def test_transactions_in_the_same_order_in_every_key_form_no_cycle() -> None:
    assert (
        anomalies(
            READ_BOTH,
            ok(0, send("t", "a", 0), send("u", "c", 0)),
            ok(1, send("t", "b", 1), send("u", "d", 1)),
        )
        == {}
    )


def test_a_failed_transaction_is_in_no_cycle() -> None:
    history = (
        READ_BOTH,
        ok(0, send("t", "a", 0), send("u", "d", 1)),
        fail(1, send("t", "b", 1), send("u", "c", 0)),
    )
    assert anomalies(*history).keys() == {"G1a"}


def test_a_transaction_of_unknown_outcome_is_in_a_cycle_if_it_was_read() -> None:
    first, second = [send("t", "a", 0), send("u", "d", 1)], [send("t", "b"), send("u", "c", 0)]
    assert anomalies(READ_BOTH, ok(0, *first), info(1, *second)).keys() == {"G0"}
    read = ok(ALL, poll("t", (0, "a")), poll("u", (1, "d")))
    assert anomalies(read, ok(0, *first), info(1, *second)) == {}


def test_two_transactions_that_read_each_other_are_a_violation() -> None:
    history = (
        ok(0, send("t", "a", 0), poll("u", (0, "c"))),
        ok(1, send("u", "c", 0), poll("t", (0, "a"))),
    )
    assert anomalies(*history).keys() == {"G1c"}
    assert judge(*history).status == "violated"


def test_a_read_in_one_direction_is_no_cycle() -> None:
    assert (
        anomalies(
            ok(0, send("t", "a", 0)),
            ok(1, send("u", "c", 0), poll("t", (0, "a"))),
            ok(2, poll("u", (0, "c"))),
        )
        == {}
    )


def test_a_transaction_that_reads_its_own_value_is_no_cycle() -> None:
    assert anomalies(ok(0, send("t", "a", 0), poll("t", (0, "a")))).keys() == {"precommitted-read"}


def test_a_cycle_of_a_read_and_a_write_is_permitted() -> None:
    history = (
        ok(0, send("t", "a", 0), poll("u", (0, "c"))),
        ok(1, send("t", "b", 1), send("u", "c", 0)),
        ok(ALL, poll("t", (0, "a"), (1, "b"))),
    )
    assert anomalies(*history).keys() == {"G1c"}
    assert judge(*history).status == "permitted"


def test_a_write_dependency_does_not_permit_a_cycle_of_reads() -> None:
    history = (
        ok(0, send("t", "a", 0), poll("u", (0, "c"))),
        ok(1, send("t", "b", 1), send("u", "c", 0), poll("t", (0, "a"))),
        ok(ALL, poll("t", (0, "a"), (1, "b"))),
    )
    assert anomalies(*history).keys() == {"G1c"}
    assert judge(*history).status == "violated"


def test_a_single_send_can_be_part_of_a_cycle() -> None:
    """The single send follows the first transaction's record, the second transaction polls it, and
    the first polls the second's.
    """
    history = (
        ok(0, send("t", "a", 0), poll("u", (0, "c"))),
        ok(1, send("t", "b", 1)),
        ok(2, poll("t", (1, "b")), send("u", "c", 0)),
        ok(ALL, poll("t", (0, "a"), (1, "b"))),
    )
    assert anomalies(*history).keys() == {"G1c"}
    assert judge(*history).status == "permitted"


@pytest.mark.parametrize("between", [0, 1, 3])
def test_a_transaction_that_reads_behind_its_own_record_is_a_permitted_cycle(between: int) -> None:
    """The transaction polls a record behind its own, so it read the future."""
    records = [(at, f"m{at}") for at in range(between + 2)]
    history = (
        ok(0, send("t", "m0", 0), poll("t", records[-1])),
        *(ok(at, send("t", value, at)) for at, value in records[1:]),
        ok(ALL, poll("t", *records)),
    )
    assert anomalies(*history).keys() == {"G1c"}
    assert judge(*history).status == "permitted"


def test_two_records_at_one_offset_have_no_order() -> None:
    """The offset is inconsistent, and neither record is known to come first."""
    history = (
        ok(0, send("t", "a", 0), send("u", "d", 1)),
        ok(1, send("t", "b", 0), send("u", "c", 0)),
        ok(ALL, poll("t", (0, "a")), poll("u", (0, "c"), (1, "d"))),
        ok(ALL + 1, poll("t", (0, "b"))),
    )
    assert anomalies(*history).keys() == {"inconsistent-offsets"}


def test_a_record_behind_one_without_a_sender_depends_on_no_transaction() -> None:
    """Only the record directly before another counts; here that record has no recorded send."""
    history = (
        ok(0, send("t", "a", 0), send("u", "d", 1)),
        ok(1, send("t", "b", 2), send("u", "c", 0)),
        ok(ALL, poll("t", (0, "a"), (1, "x"), (2, "b")), poll("u", (0, "c"), (1, "d"))),
    )
    assert anomalies(*history) == {}


def test_a_record_between_two_sends_of_an_operation_makes_a_cycle() -> None:
    history = (
        ok(ALL, poll("t", (0, "a"), (1, "b"), (2, "c"))),
        ok(0, send("t", "a", 0), send("t", "c", 2)),
        ok(1, send("t", "b", 1)),
    )
    assert anomalies(*history).keys() == {"int-send-skip", "G0"}
    assert judge(*history).status == "permitted"

"""G0 and G1c in a recorded history, one small history for each thing the definitions say."""

import pytest

from tests.checks.history.history_builder import ALL, fail, found, info, judge, ok, poll, send

READ_BOTH = ok(ALL, poll("t", (0, "a"), (1, "b")), poll("u", (0, "c"), (1, "d")))


def test_write_circle_is_permitted() -> None:
    history = (
        READ_BOTH,
        ok(0, send("t", "a", 0), send("u", "d", 1)),
        ok(1, send("t", "b", 1), send("u", "c", 0)),
    )
    assert found(*history).keys() == {"G0"}
    assert judge(*history).status == "permitted"
    assert judge(*history).rules["G0"].findings[0].permitted_by


def test_the_same_order_in_all_keys_is_no_circle() -> None:
    assert (
        found(
            READ_BOTH,
            ok(0, send("t", "a", 0), send("u", "c", 0)),
            ok(1, send("t", "b", 1), send("u", "d", 1)),
        )
        == {}
    )


def test_a_transaction_that_failed_is_in_no_circle() -> None:
    history = (
        READ_BOTH,
        ok(0, send("t", "a", 0), send("u", "d", 1)),
        fail(1, send("t", "b", 1), send("u", "c", 0)),
    )
    assert found(*history).keys() == {"G1a"}


def test_a_transaction_of_unknown_outcome_is_in_a_circle_if_it_was_read() -> None:
    first, second = [send("t", "a", 0), send("u", "d", 1)], [send("t", "b"), send("u", "c", 0)]
    assert found(READ_BOTH, ok(0, *first), info(1, *second)).keys() == {"G0"}
    read = ok(ALL, poll("t", (0, "a")), poll("u", (1, "d")))
    assert found(read, ok(0, *first), info(1, *second)) == {}


def test_read_circle() -> None:
    history = (
        ok(0, send("t", "a", 0), poll("u", (0, "c"))),
        ok(1, send("u", "c", 0), poll("t", (0, "a"))),
    )
    assert found(*history).keys() == {"G1c"}
    assert judge(*history).status == "violated"


def test_a_read_in_one_direction_is_no_circle() -> None:
    assert (
        found(
            ok(0, send("t", "a", 0)),
            ok(1, send("u", "c", 0), poll("t", (0, "a"))),
            ok(2, poll("u", (0, "c"))),
        )
        == {}
    )


def test_its_own_value_is_no_circle() -> None:
    assert found(ok(0, send("t", "a", 0), poll("t", (0, "a")))).keys() == {"precommitted-read"}


def test_a_read_circle_with_a_write_in_it_is_permitted() -> None:
    history = (
        ok(0, send("t", "a", 0), poll("u", (0, "c"))),
        ok(1, send("t", "b", 1), send("u", "c", 0)),
        ok(ALL, poll("t", (0, "a"), (1, "b"))),
    )
    assert found(*history).keys() == {"G1c"}
    assert judge(*history).status == "permitted"


def test_what_writes_permit_does_not_permit_a_circle_of_reads() -> None:
    history = (
        ok(0, send("t", "a", 0), poll("u", (0, "c"))),
        ok(1, send("t", "b", 1), send("u", "c", 0), poll("t", (0, "a"))),
        ok(ALL, poll("t", (0, "a"), (1, "b"))),
    )
    assert found(*history).keys() == {"G1c"}
    assert judge(*history).status == "violated"


def test_single_sends_take_part_in_a_circle() -> None:
    """A record stands behind the transaction's, is polled by another one, and that one's by the first."""
    history = (
        ok(0, send("t", "a", 0), poll("u", (0, "c"))),
        ok(1, send("t", "b", 1)),
        ok(2, poll("t", (1, "b")), send("u", "c", 0)),
        ok(ALL, poll("t", (0, "a"), (1, "b"))),
    )
    assert found(*history).keys() == {"G1c"}
    assert judge(*history).status == "permitted"


@pytest.mark.parametrize("between", [0, 1, 3])
def test_a_circle_of_one_transaction_and_single_sends(between: int) -> None:
    """It polls what stands behind its own record: it read the future."""
    records = [(at, f"m{at}") for at in range(between + 2)]
    history = (
        ok(0, send("t", "m0", 0), poll("t", records[-1])),
        *(ok(at, send("t", value, at)) for at, value in records[1:]),
        ok(ALL, poll("t", *records)),
    )
    assert found(*history).keys() == {"G1c"}
    assert judge(*history).status == "permitted"


def test_two_records_at_one_offset_are_not_one_before_the_other() -> None:
    """The offset is inconsistent; which of the two came first nobody can say."""
    history = (
        ok(0, send("t", "a", 0), send("u", "d", 1)),
        ok(1, send("t", "b", 0), send("u", "c", 0)),
        ok(ALL, poll("t", (0, "a")), poll("u", (0, "c"), (1, "d"))),
        ok(ALL + 1, poll("t", (0, "b"))),
    )
    assert found(*history).keys() == {"inconsistent-offsets"}


def test_what_stands_behind_a_record_of_nobody_depends_on_nobody() -> None:
    """Only what stands directly before a record counts; here that is a record nobody is known to have sent."""
    history = (
        ok(0, send("t", "a", 0), send("u", "d", 1)),
        ok(1, send("t", "b", 2), send("u", "c", 0)),
        ok(ALL, poll("t", (0, "a"), (1, "x"), (2, "b")), poll("u", (0, "c"), (1, "d"))),
    )
    assert found(*history) == {}


def test_a_known_record_between_two_sends_is_a_circle_too() -> None:
    history = (
        ok(ALL, poll("t", (0, "a"), (1, "b"), (2, "c"))),
        ok(0, send("t", "a", 0), send("t", "c", 2)),
        ok(1, send("t", "b", 1)),
    )
    assert found(*history).keys() == {"int-send-skip", "G0"}
    assert judge(*history).status == "permitted"

"""What a recorded history says of its records, one small history for each thing the definitions say."""

import pytest

from tests.checks.history.history_builder import (
    ALL,
    Line,
    Micro,
    Operation,
    assign,
    fail,
    found,
    info,
    judge,
    ok,
    operation,
    poll,
    send,
)

# The version order


def test_an_empty_history_says_nothing() -> None:
    assert found() == {}
    assert judge().status == "inconclusive"


@pytest.mark.parametrize("next_offset", [1, 2, 7, 10**12])
def test_gaps_are_no_skips(next_offset: int) -> None:
    """Markers of transactions take offsets, and compaction leaves holes."""
    assert found(ok(0, poll("t", (0, "a"))), ok(0, poll("t", (next_offset, "b")))) == {}
    assert found(ok(0, poll("t", (0, "a"), (next_offset, "b")))) == {}
    assert (
        found(
            ok(0, send("t", "a", 0), send("t", "b", next_offset)),
            ok(1, poll("t", (0, "a"), (next_offset, "b"))),
        )
        == {}
    )


@pytest.mark.parametrize("type_", ["ok", "fail", "info"])
def test_polls_of_all_operations_say_where_records_stand(type_: str) -> None:
    assert found(
        operation(ALL, type_, poll("t", (1, "b"))), ok(0, poll("t", (0, "a"))), ok(0, poll("t", (2, "c")))
    ) == {"poll-skip": [("t", "c")]}


def test_an_acked_send_has_the_offset_of_its_record() -> None:
    skipped = found(ok(1, send("t", "b", 1)), ok(0, poll("t", (0, "a"))), ok(0, poll("t", (2, "c"))))
    assert skipped == {"poll-skip": [("t", "c")], "lost-write": [("t", "b")]}


@pytest.mark.parametrize("type_", ["fail", "info"])
def test_a_send_that_has_not_committed_says_nothing(type_: str) -> None:
    assert (
        found(operation(1, type_, send("t", "b", 1)), ok(0, poll("t", (0, "a"))), ok(0, poll("t", (2, "c"))))
        == {}
    )


def test_a_send_of_unknown_outcome_has_committed_once_it_was_read() -> None:
    """It stands at an offset of its own, then, and somebody has read it at another."""
    history = (info(1, send("t", "b", 1)), ok(0, poll("t", (5, "b"))))
    assert found(*history) == {"duplicate": [("t", "b")]}


def test_all_of_a_crashed_transaction_has_committed_once_a_part_was_read() -> None:
    crashed = info(1, send("t", "a", 0), send("u", "b", 0))
    assert found(crashed, ok(0, poll("t", (0, "a"))), ok(0, poll("u", (1, "c")))) == {
        "lost-write": [("u", "b")]
    }


@pytest.mark.parametrize("type_", ["fail", "info"])
def test_a_crashed_transaction_has_not_committed_because_an_aborted_one_read_it(type_: str) -> None:
    crashed = info(1, send("t", "a", 0), send("u", "b", 0))
    assert found(crashed, operation(0, type_, poll("t", (0, "a"))), ok(2, poll("u", (0, "c")))) == {}


def test_an_operation_that_never_returned_says_nothing() -> None:
    begun = ok(1, send("t", "a", 0), send("u", "b", 0))[:1]
    assert found(begun, ok(0, poll("t", (0, "a"))), ok(0, poll("u", (1, "c")))) == {}


def test_keys_may_be_numbers() -> None:
    history = (ok(0, send(11, "a", 0)), ok(0, send("11", "b", 1)), ok(1, poll("11", (0, "a"), (1, "b"))))
    assert found(*history) == {}
    assert found(*history[:2], ok(1, poll("11", (1, "b")))) == {"lost-write": [("11", "a")]}
    assert found(ok(1, poll("11", (0, "a"))), assign(1, 11), ok(1, poll("11", (0, "a")))) == {
        "nonmonotonic-poll": [("11", "a")]
    }


def test_faults_are_passed_over() -> None:
    looks_like_one: Line = {
        "process": "nemesis",
        "type": "ok",
        "f": "send",
        "value": [["send", "t", [0, "b"]]],
    }
    assert found(ok(0, send("t", "a", 0)), [looks_like_one], ok(1, poll("t", (0, "a")))) == {}


# Offsets and values


def test_inconsistent_offsets_of_a_send_and_a_poll() -> None:
    history = (ok(0, send("t", "a", 0)), ok(1, poll("t", (0, "b"))), ok(2, poll("t", (0, "a"))))
    (finding,) = judge(*history).rules["inconsistent-offsets"].findings
    assert (finding.partition, finding.offset) == ("t", 0)
    assert found(*history).keys() == {"inconsistent-offsets"}


def test_inconsistent_offsets_of_two_polls() -> None:
    assert found(ok(0, poll("t", (3, "a"))), fail(1, poll("t", (3, "b")))).keys() == {"inconsistent-offsets"}


def test_one_offset_of_two_keys() -> None:
    assert found(ok(0, poll("t", (0, "a")), poll("u", (0, "b")))) == {}


def test_offsets_of_unknown_sends_conflict_with_nothing() -> None:
    acked = (ok(0, send("t", "a", 0)), ok(1, poll("t", (0, "a"))))
    unknown = info(2, send("t", "b", 0), send("u", "c", 0))
    assert found(*acked, unknown) == {}
    assert found(*acked, unknown, fail(3, poll("u", (0, "c")))) == {}
    # The other write was read, so this one stands at offset 0 too, where nobody has read it.
    assert found(*acked, unknown, ok(3, poll("u", (0, "c")))).keys() == {"inconsistent-offsets", "lost-write"}


def test_duplicate() -> None:
    assert found(ok(0, poll("t", (0, "a"), (1, "a")))) == {"duplicate": [("t", "a")]}
    assert found(ok(0, send("t", "a", 0)), ok(1, poll("t", (4, "a")))) == {"duplicate": [("t", "a")]}
    assert found(ok(0, poll("t", (0, "a"))), info(1, poll("t", (1, "a")))) == {"duplicate": [("t", "a")]}


def test_a_value_read_twice_is_no_duplicate() -> None:
    assert found(ok(0, poll("t", (0, "a"))), ok(1, poll("t", (0, "a")))) == {}


def test_the_same_value_of_two_keys_is_no_duplicate() -> None:
    assert (
        found(ok(0, send("t", "a", 0), send("u", "a", 1)), ok(1, poll("t", (0, "a")), poll("u", (1, "a"))))
        == {}
    )


def test_a_duplicate_at_the_offset_of_another() -> None:
    history = (ok(0, poll("t", (0, "a"))), ok(1, poll("t", (1, "a"))), ok(2, poll("t", (1, "b"))))
    assert found(*history).keys() == {"duplicate", "inconsistent-offsets"}


# Records that nobody read


def test_lost_write() -> None:
    history = (ok(0, send("t", "a", 0)), ok(0, send("t", "b", 1)), ok(1, poll("t", (1, "b"))))
    assert found(*history) == {"lost-write": [("t", "a")]}
    assert judge(*history).status == "violated"


def test_reads_of_aborted_transactions_do_not_save_a_record() -> None:
    sends = (ok(0, send("t", "a", 0)), ok(0, send("t", "b", 1)))
    assert found(*sends, fail(1, poll("t", (0, "a"))), ok(2, poll("t", (1, "b")))) == {
        "lost-write": [("t", "a")]
    }


def test_reads_of_aborted_transactions_do_not_lose_a_record() -> None:
    sends = (ok(0, send("t", "a", 0)), ok(0, send("t", "b", 1)), ok(0, send("t", "c", 2)))
    reads = (ok(1, poll("t", (0, "a"))), fail(2, poll("t", (2, "c"))))
    assert "lost-write" not in found(*sends, *reads)


def test_the_last_place_of_a_record_decides_whether_it_is_lost() -> None:
    history = (ok(0, send("t", "a", 0)), info(1, poll("t", (2, "a"))), ok(2, poll("t", (1, "b"))))
    assert "lost-write" not in found(*history)
    assert "lost-write" in found(*history, ok(3, poll("t", (3, "c"))))


def test_a_send_of_unknown_outcome_cannot_be_lost() -> None:
    assert found(info(0, send("t", "a", 0)), ok(1, poll("t", (1, "b")))) == {}
    assert found(fail(0, send("t", "a", 0)), ok(1, poll("t", (1, "b")))) == {}


def test_unseen_beyond_what_was_read() -> None:
    sends = (ok(0, send("t", "a", 0)), ok(0, send("t", "b", 1)))
    history = (*sends, ok(1, poll("t", (0, "a"))), ok(1, ["poll", {}]))
    assert found(*history) == {"unseen": [("t", "b")]}
    assert judge(*history).status == "violated"


def test_unseen_where_the_offset_is_not_known() -> None:
    assert found(ok(0, send("t", "a")), ok(1, poll("t", (5, "b")))) == {"unseen": [("t", "a")]}


def test_unseen_for_a_key_without_readers() -> None:
    assert found(ok(0, send("t", "a", 0)), ok(1, poll("u", (5, "b")))) == {"unseen": [("t", "a")]}


def test_only_acked_sends_are_unseen() -> None:
    assert found(info(0, send("t", "a", 0)), fail(0, send("t", "b", 1)), ok(1, poll("u", (5, "b")))) == {}


def test_a_value_of_another_key_was_not_read() -> None:
    assert found(ok(0, send("t", "a", 0)), ok(1, poll("u", (0, "a")))) == {"unseen": [("t", "a")]}


# Records that were read too early


def test_aborted_read() -> None:
    assert found(fail(0, send("t", "a")), ok(1, poll("t", (0, "a")))) == {"G1a": [("t", "a")]}
    assert found(fail(0, send("t", "a", 0), send("u", "b")), ok(1, poll("u", (0, "b")))) == {
        "G1a": [("u", "b")]
    }


@pytest.mark.parametrize("type_", ["fail", "info"])
def test_a_read_within_an_aborted_transaction_is_no_aborted_read(type_: str) -> None:
    assert found(fail(0, send("t", "a")), operation(1, type_, poll("t", (0, "a")))) == {}


def test_what_another_key_had_is_no_aborted_read() -> None:
    assert found(fail(0, send("t", "a")), ok(1, poll("u", (0, "a")))) == {}


def half_polled(*sends: Micro, f: str = "send") -> list[Operation]:
    """An operation of unknown outcome, of which a consumer gets its first record alone, and then nothing more."""
    written = [{**line, "f": f} for line in info(0, *sends)]
    return [written, assign(1, "a", "b"), ok(1, poll("a", (0, 1))), ok(1, ["poll", {}])]


@pytest.mark.parametrize("f", ["send", "txn"])
@pytest.mark.parametrize("offsets", [(None, None), (0, 2)])
def test_a_transaction_is_torn_whatever_it_is_called_and_whether_its_offsets_are_known_or_not(
    f: str, offsets: tuple[int | None, int | None]
) -> None:
    assert found(*half_polled(send("a", 1, offsets[0]), send("b", 2, offsets[1]), f=f)) == {
        "torn-transaction": [("b", 2)]
    }


def test_several_sends_of_one_operation_may_be_torn_where_there_are_no_transactions() -> None:
    judged = judge(*half_polled(send("a", 1), send("b", 2)), transactional=False)
    assert judged.status == "permitted"


def test_an_unread_record_below_others_that_were_read_is_lost_and_counted_once() -> None:
    operations = [ok(2, send("b", 9, 5)), *half_polled(send("a", 1, 0), send("b", 2, 2))]
    assert found(*operations, ok(1, poll("b", (5, 9)))) == {"lost-write": [("b", 2)]}


@pytest.mark.parametrize("names_several", [True, False])
def test_a_failed_send_need_not_be_read_if_sends_are_transactions(names_several: bool) -> None:
    sends = [send("a", 0, 0), send("a", 2, 2)]
    anomalies = found(
        *([ok(0, *sends)] if names_several else [ok(0, each) for each in sends]),
        fail(0, send("a", 1)),
        fail(1, poll("a", (0, 0), (1, 1))),
        ok(2, poll("a", (0, 0), (2, 2))),
    )
    assert ("int-poll-skip" in anomalies) != names_several


def test_precommitted_read() -> None:
    assert found(ok(0, send("t", "a", 0), poll("t", (0, "a")))) == {"precommitted-read": [("t", "a")]}
    assert found(ok(0, poll("t", (0, "a")), send("t", "a", 0))) == {"precommitted-read": [("t", "a")]}
    assert found(ok(0, send("t", "a"), poll("t", (0, "a")))) == {"precommitted-read": [("t", "a")]}


def test_an_earlier_send_of_the_same_process_may_be_read() -> None:
    assert found(ok(0, send("t", "a", 0)), ok(0, poll("t", (0, "a")))) == {}
    assert (
        found(
            ok(0, send("t", "a", 0)),
            ok(0, poll("t", (0, "a")), send("t", "b", 1)),
            ok(1, poll("t", (1, "b"))),
        )
        == {}
    )


def test_the_same_value_of_another_key_is_not_its_own() -> None:
    assert found(ok(0, send("t", "a", 0), poll("u", (0, "a"))), ok(1, poll("t", (0, "a")))) == {}


# Records in partitions that they were not sent to


@pytest.mark.parametrize("type_", ["ok", "fail", "info"])
def test_a_record_that_is_read_in_another_partition_than_it_was_sent_to_is_misrouted(type_: str) -> None:
    sends = ok(1, send("t", "a", 0)), ok(1, send("u", "b", 1))
    polls = ok(2, poll("t", (0, "a"))), ok(3, poll("u", (1, "b")))
    assert found(*sends, operation(4, type_, poll("u", (0, "a"))), *polls) == {"misrouted": [("u", "a")]}


def test_a_partition_whose_producers_were_not_recorded_has_no_misrouted_records() -> None:
    assert found(ok(1, send("t", "a", 0)), ok(2, poll("t", (0, "a"))), ok(3, poll("u", (0, "a")))) == {}


def test_a_record_of_a_producer_that_was_not_recorded_is_not_misrouted() -> None:
    assert found(ok(1, send("t", "a", 0)), ok(2, poll("t", (0, "a"))), ok(3, poll("u", (0, "b")))) == {}


def test_where_two_partitions_have_one_value_it_does_not_tell_records_apart() -> None:
    counted = (ok(1, send("t", 0, 0), send("u", 0, 0)), ok(1, send("t", 1, 1)))
    assert found(*counted, ok(2, poll("t", (0, 0), (1, 1))), ok(3, poll("u", (0, 0), (1, 1)))) == {}

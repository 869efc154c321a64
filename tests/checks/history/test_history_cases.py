"""Findings about records of a history: one small history for each clause of the definitions."""

import pytest

from tests.checks.history.history_builder import (
    ALL,
    Line,
    Micro,
    Operation,
    anomalies,
    assign,
    fail,
    info,
    judge,
    ok,
    operation,
    poll,
    send,
)

# The version order


def test_an_empty_history_is_inconclusive() -> None:
    assert anomalies() == {}
    assert judge().status == "inconclusive"


@pytest.mark.parametrize("next_offset", [1, 2, 7, 10**12])
def test_a_gap_between_offsets_is_not_a_skip(next_offset: int) -> None:
    """Markers of transactions take offsets, and compaction leaves holes."""
    assert anomalies(ok(0, poll("t", (0, "a"))), ok(0, poll("t", (next_offset, "b")))) == {}
    assert anomalies(ok(0, poll("t", (0, "a"), (next_offset, "b")))) == {}
    assert (
        anomalies(
            ok(0, send("t", "a", 0), send("t", "b", next_offset)),
            ok(1, poll("t", (0, "a"), (next_offset, "b"))),
        )
        == {}
    )


@pytest.mark.parametrize("type_", ["ok", "fail", "info"])
def test_polls_of_every_outcome_count_for_the_version_order(type_: str) -> None:
    assert anomalies(
        operation(ALL, type_, poll("t", (1, "b"))), ok(0, poll("t", (0, "a"))), ok(0, poll("t", (2, "c")))
    ) == {"poll-skip": [("t", "c")]}


def test_an_acked_send_counts_for_the_version_order() -> None:
    skipped = anomalies(ok(1, send("t", "b", 1)), ok(0, poll("t", (0, "a"))), ok(0, poll("t", (2, "c"))))
    assert skipped == {"poll-skip": [("t", "c")], "lost-write": [("t", "b")]}


@pytest.mark.parametrize("type_", ["fail", "info"])
def test_an_uncommitted_send_does_not_count_for_the_version_order(type_: str) -> None:
    assert (
        anomalies(
            operation(1, type_, send("t", "b", 1)), ok(0, poll("t", (0, "a"))), ok(0, poll("t", (2, "c")))
        )
        == {}
    )


def test_a_send_of_unknown_outcome_committed_if_it_was_read() -> None:
    """Its own offset and the offset of the read make two copies."""
    history = (info(1, send("t", "b", 1)), ok(0, poll("t", (5, "b"))))
    assert anomalies(*history) == {"duplicate": [("t", "b")]}


def test_a_whole_crashed_transaction_committed_if_a_part_was_read() -> None:
    crashed = info(1, send("t", "a", 0), send("u", "b", 0))
    assert anomalies(crashed, ok(0, poll("t", (0, "a"))), ok(0, poll("u", (1, "c")))) == {
        "lost-write": [("u", "b")]
    }


@pytest.mark.parametrize("type_", ["fail", "info"])
def test_a_read_in_an_aborted_transaction_does_not_commit_a_crashed_one(type_: str) -> None:
    crashed = info(1, send("t", "a", 0), send("u", "b", 0))
    assert anomalies(crashed, operation(0, type_, poll("t", (0, "a"))), ok(2, poll("u", (0, "c")))) == {}


def test_an_operation_without_completion_yields_no_finding() -> None:
    invocations = ok(1, send("t", "a", 0), send("u", "b", 0))[:1]
    assert anomalies(invocations, ok(0, poll("t", (0, "a"))), ok(0, poll("u", (1, "c")))) == {}


def test_a_numeric_key_equals_its_text() -> None:
    history = (ok(0, send(11, "a", 0)), ok(0, send("11", "b", 1)), ok(1, poll("11", (0, "a"), (1, "b"))))
    assert anomalies(*history) == {}
    assert anomalies(*history[:2], ok(1, poll("11", (1, "b")))) == {"lost-write": [("11", "a")]}
    assert anomalies(ok(1, poll("11", (0, "a"))), assign(1, 11), ok(1, poll("11", (0, "a")))) == {
        "nonmonotonic-poll": [("11", "a")]
    }


def test_operations_of_the_nemesis_are_ignored() -> None:
    looks_like_one: Line = {
        "process": "nemesis",
        "type": "ok",
        "f": "send",
        "value": [["send", "t", [0, "b"]]],
    }
    assert anomalies(ok(0, send("t", "a", 0)), [looks_like_one], ok(1, poll("t", (0, "a")))) == {}


# Offsets and values


def test_a_send_and_a_poll_with_different_values_at_one_offset_are_inconsistent() -> None:
    history = (ok(0, send("t", "a", 0)), ok(1, poll("t", (0, "b"))), ok(2, poll("t", (0, "a"))))
    (finding,) = judge(*history).rules["inconsistent-offsets"].findings
    assert (finding.partition, finding.offset) == ("t", 0)
    assert anomalies(*history).keys() == {"inconsistent-offsets"}


def test_two_polls_with_different_values_at_one_offset_are_inconsistent() -> None:
    assert anomalies(ok(0, poll("t", (3, "a"))), fail(1, poll("t", (3, "b")))).keys() == {
        "inconsistent-offsets"
    }


def test_the_same_offset_of_two_keys_is_consistent() -> None:
    assert anomalies(ok(0, poll("t", (0, "a")), poll("u", (0, "b")))) == {}


def test_the_offset_of_an_unread_unknown_send_conflicts_with_nothing() -> None:
    acked = (ok(0, send("t", "a", 0)), ok(1, poll("t", (0, "a"))))
    unknown = info(2, send("t", "b", 0), send("u", "c", 0))
    assert anomalies(*acked, unknown) == {}
    assert anomalies(*acked, unknown, fail(3, poll("u", (0, "c")))) == {}
    # The other write was read, so this one committed at offset 0 too, where no consumer read it.
    assert anomalies(*acked, unknown, ok(3, poll("u", (0, "c")))).keys() == {
        "inconsistent-offsets",
        "lost-write",
    }


def test_a_value_at_two_offsets_of_a_key_is_a_duplicate() -> None:
    assert anomalies(ok(0, poll("t", (0, "a"), (1, "a")))) == {"duplicate": [("t", "a")]}
    assert anomalies(ok(0, send("t", "a", 0)), ok(1, poll("t", (4, "a")))) == {"duplicate": [("t", "a")]}
    assert anomalies(ok(0, poll("t", (0, "a"))), info(1, poll("t", (1, "a")))) == {"duplicate": [("t", "a")]}


def test_a_value_read_twice_at_one_offset_is_no_duplicate() -> None:
    assert anomalies(ok(0, poll("t", (0, "a"))), ok(1, poll("t", (0, "a")))) == {}


def test_the_same_value_of_two_keys_is_no_duplicate() -> None:
    assert (
        anomalies(
            ok(0, send("t", "a", 0), send("u", "a", 1)), ok(1, poll("t", (0, "a")), poll("u", (1, "a")))
        )
        == {}
    )


def test_a_duplicate_at_the_offset_of_another_value_is_inconsistent_too() -> None:
    history = (ok(0, poll("t", (0, "a"))), ok(1, poll("t", (1, "a"))), ok(2, poll("t", (1, "b"))))
    assert anomalies(*history).keys() == {"duplicate", "inconsistent-offsets"}


# Records that no consumer read


def test_an_acked_record_missing_below_later_reads_is_lost() -> None:
    history = (ok(0, send("t", "a", 0)), ok(0, send("t", "b", 1)), ok(1, poll("t", (1, "b"))))
    assert anomalies(*history) == {"lost-write": [("t", "a")]}
    assert judge(*history).status == "violated"


def test_a_read_in_an_aborted_transaction_does_not_prove_a_record_present() -> None:
    sends = (ok(0, send("t", "a", 0)), ok(0, send("t", "b", 1)))
    assert anomalies(*sends, fail(1, poll("t", (0, "a"))), ok(2, poll("t", (1, "b")))) == {
        "lost-write": [("t", "a")]
    }


def test_a_read_in_an_aborted_transaction_does_not_prove_a_record_lost() -> None:
    sends = (ok(0, send("t", "a", 0)), ok(0, send("t", "b", 1)), ok(0, send("t", "c", 2)))
    reads = (ok(1, poll("t", (0, "a"))), fail(2, poll("t", (2, "c"))))
    assert "lost-write" not in anomalies(*sends, *reads)


def test_the_last_offset_of_a_record_decides_whether_it_is_lost() -> None:
    history = (ok(0, send("t", "a", 0)), info(1, poll("t", (2, "a"))), ok(2, poll("t", (1, "b"))))
    assert "lost-write" not in anomalies(*history)
    assert "lost-write" in anomalies(*history, ok(3, poll("t", (3, "c"))))


def test_a_send_of_unknown_outcome_cannot_be_lost() -> None:
    assert anomalies(info(0, send("t", "a", 0)), ok(1, poll("t", (1, "b")))) == {}
    assert anomalies(fail(0, send("t", "a", 0)), ok(1, poll("t", (1, "b")))) == {}


def test_an_acked_record_above_the_last_read_is_unseen() -> None:
    sends = (ok(0, send("t", "a", 0)), ok(0, send("t", "b", 1)))
    history = (*sends, ok(1, poll("t", (0, "a"))), ok(1, ["poll", {}]))
    assert anomalies(*history) == {"unseen": [("t", "b")]}
    assert judge(*history).status == "violated"


def test_an_acked_record_without_an_offset_is_unseen_if_unread() -> None:
    assert anomalies(ok(0, send("t", "a")), ok(1, poll("t", (5, "b")))) == {"unseen": [("t", "a")]}


def test_an_acked_record_of_a_key_without_readers_is_unseen() -> None:
    assert anomalies(ok(0, send("t", "a", 0)), ok(1, poll("u", (5, "b")))) == {"unseen": [("t", "a")]}


def test_an_unacked_send_is_never_unseen() -> None:
    assert anomalies(info(0, send("t", "a", 0)), fail(0, send("t", "b", 1)), ok(1, poll("u", (5, "b")))) == {}


def test_a_read_of_the_same_value_in_another_key_does_not_count() -> None:
    assert anomalies(ok(0, send("t", "a", 0)), ok(1, poll("u", (0, "a")))) == {"unseen": [("t", "a")]}


# Records that were read too early


def test_a_committed_read_of_a_failed_send_is_an_aborted_read() -> None:
    assert anomalies(fail(0, send("t", "a")), ok(1, poll("t", (0, "a")))) == {"G1a": [("t", "a")]}
    assert anomalies(fail(0, send("t", "a", 0), send("u", "b")), ok(1, poll("u", (0, "b")))) == {
        "G1a": [("u", "b")]
    }


@pytest.mark.parametrize("type_", ["fail", "info"])
def test_a_read_within_an_aborted_transaction_is_no_aborted_read(type_: str) -> None:
    assert anomalies(fail(0, send("t", "a")), operation(1, type_, poll("t", (0, "a")))) == {}


def test_the_same_value_in_another_key_is_no_aborted_read() -> None:
    assert anomalies(fail(0, send("t", "a")), ok(1, poll("u", (0, "a")))) == {}


def half_read_operation(*sends: Micro, f: str = "send") -> list[Operation]:
    """Return an operation of unknown outcome and a consumer that reads only its first record."""
    written = [{**line, "f": f} for line in info(0, *sends)]
    return [written, assign(1, "a", "b"), ok(1, poll("a", (0, 1))), ok(1, ["poll", {}])]


@pytest.mark.parametrize("f", ["send", "txn"])
@pytest.mark.parametrize("offsets", [(None, None), (0, 2)])
def test_a_half_read_transaction_is_torn_with_or_without_offsets(
    f: str, offsets: tuple[int | None, int | None]
) -> None:
    assert anomalies(*half_read_operation(send("a", 1, offsets[0]), send("b", 2, offsets[1]), f=f)) == {
        "torn-transaction": [("b", 2)]
    }


def test_an_operation_of_several_sends_may_be_half_read_without_transactions() -> None:
    judged = judge(*half_read_operation(send("a", 1), send("b", 2)), transactional=False)
    assert judged.status == "permitted"


def test_a_missing_record_of_a_half_read_transaction_is_only_counted_as_lost() -> None:
    operations = [ok(2, send("b", 9, 5)), *half_read_operation(send("a", 1, 0), send("b", 2, 2))]
    assert anomalies(*operations, ok(1, poll("b", (5, 9)))) == {"lost-write": [("b", 2)]}


@pytest.mark.parametrize("names_several", [True, False])
def test_a_failed_send_need_not_be_read_if_sends_are_transactions(names_several: bool) -> None:
    sends = [send("a", 0, 0), send("a", 2, 2)]
    found = anomalies(
        *([ok(0, *sends)] if names_several else [ok(0, each) for each in sends]),
        fail(0, send("a", 1)),
        fail(1, poll("a", (0, 0), (1, 1))),
        ok(2, poll("a", (0, 0), (2, 2))),
    )
    assert ("int-poll-skip" in found) != names_several


def test_a_transaction_that_polls_its_own_record_has_a_precommitted_read() -> None:
    assert anomalies(ok(0, send("t", "a", 0), poll("t", (0, "a")))) == {"precommitted-read": [("t", "a")]}
    assert anomalies(ok(0, poll("t", (0, "a")), send("t", "a", 0))) == {"precommitted-read": [("t", "a")]}
    assert anomalies(ok(0, send("t", "a"), poll("t", (0, "a")))) == {"precommitted-read": [("t", "a")]}


def test_an_earlier_send_of_the_same_process_may_be_read() -> None:
    assert anomalies(ok(0, send("t", "a", 0)), ok(0, poll("t", (0, "a")))) == {}
    assert (
        anomalies(
            ok(0, send("t", "a", 0)),
            ok(0, poll("t", (0, "a")), send("t", "b", 1)),
            ok(1, poll("t", (1, "b"))),
        )
        == {}
    )


def test_a_poll_of_the_same_value_in_another_key_is_no_precommitted_read() -> None:
    assert anomalies(ok(0, send("t", "a", 0), poll("u", (0, "a"))), ok(1, poll("t", (0, "a")))) == {}


# Records in partitions that they were not sent to


@pytest.mark.parametrize("type_", ["ok", "fail", "info"])
def test_a_record_read_from_another_partition_than_its_own_is_misrouted(type_: str) -> None:
    sends = ok(1, send("t", "a", 0)), ok(1, send("u", "b", 1))
    polls = ok(2, poll("t", (0, "a"))), ok(3, poll("u", (1, "b")))
    assert anomalies(*sends, operation(4, type_, poll("u", (0, "a"))), *polls) == {"misrouted": [("u", "a")]}


def test_a_partition_without_recorded_sends_has_no_misrouted_records() -> None:
    assert anomalies(ok(1, send("t", "a", 0)), ok(2, poll("t", (0, "a"))), ok(3, poll("u", (0, "a")))) == {}


def test_a_record_without_a_recorded_send_is_not_misrouted() -> None:
    assert anomalies(ok(1, send("t", "a", 0)), ok(2, poll("t", (0, "a"))), ok(3, poll("u", (0, "b")))) == {}


def test_a_value_sent_to_two_partitions_is_never_misrouted() -> None:
    counted = (ok(1, send("t", 0, 0), send("u", 0, 0)), ok(1, send("t", 1, 1)))
    assert anomalies(*counted, ok(2, poll("t", (0, 0), (1, 1))), ok(3, poll("u", (0, 0), (1, 1)))) == {}

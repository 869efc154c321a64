"""Operations of a history: several micro-operations in one, sends and polls mixed."""

from harrow.cluster_model.history import INVOKE, OK, TXN, History, Operation

TRANSACTION = Operation(
    index=1,
    process=0,
    type=OK,
    f=TXN,
    value=(
        ("poll", {"t-0": [(0, "a"), (1, "b")], "t-1": [(4, "c")]}),
        ("send", "t-0", (7, "x")),
        ("poll", {}),
        ("send", "t-1", "y"),
    ),
    time_us=5,
)


def test_a_walk_visits_every_send_and_every_polled_record() -> None:
    assert list(TRANSACTION.sends()) == [("t-0", 7, "x"), ("t-1", None, "y")]
    assert list(TRANSACTION.polls()) == [("t-0", 0, "a"), ("t-0", 1, "b"), ("t-1", 4, "c")]


def test_an_invocation_has_no_offsets_and_no_polled_records() -> None:
    asked = Operation(0, 0, INVOKE, TXN, (("poll",), ("send", "t-0", "x")), 0)
    assert (list(asked.sends()), list(asked.polls())) == ([("t-0", None, "x")], [])
    assert (asked.is_completion, TRANSACTION.is_completion) == (False, True)


def test_a_walk_visits_client_reports_in_the_same_way() -> None:
    history = History()
    history.record_send(0, "t-0", "x", 0)
    history.record_ack(0, "t-0", 3, "x", 1)
    history.record_failure(0, "t-0", "y", 1, "TimeoutException", definite=False)
    history.record_poll(1, {"t-0": [(3, "x")]}, 1, 2)
    completions = [operation for operation in history.operations if operation.is_completion]
    assert [list(operation.sends()) for operation in completions] == [
        [("t-0", 3, "x")],
        [("t-0", None, "y")],
        [],
    ]
    assert [list(operation.polls()) for operation in completions] == [[], [], [("t-0", 3, "x")]]

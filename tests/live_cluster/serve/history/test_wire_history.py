"""Requests and responses of real clients become the history that rules judge."""

from collections.abc import Collection
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.cluster_model import errors
from harrow.cluster_model.coordinators.protocol import (
    NO_GENERATION,
    EndTxnRequest,
    EndTxnResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from harrow.cluster_model.events import GroupOffsetFound, PartitionsAssigned
from harrow.cluster_model.history import History
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.protocol import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    PartitionData,
    ProduceRequest,
    ProduceResponse,
)
from harrow.live_cluster.serve.contents.client_batches import RecordNames
from harrow.live_cluster.serve.contents.record_identity import parse_identity
from harrow.live_cluster.serve.history.wire_history import ConnectionHistory, WireHistory
from harrow.live_cluster.serve.served_target import configured_producers

STATED = """
name: stated
cluster: {brokers: 1, topics: [{name: t}]}
workload:
  producers: [{name: app, settings: {enable.idempotence: false, max.in.flight.requests.per.connection: 1}}]
"""

BY_VALUE: Final = RecordNames(parse_identity("value"))


class Wire:
    """The history of one server with one connection."""

    def __init__(self, names: RecordNames | None = None, demanded: Collection[str] = ()) -> None:
        self.history = History()
        clock = cast("Any", SimpleNamespace(now_us=0))
        self.shared = WireHistory(self.history, clock, lambda _: True, names=names, demanded=demanded)
        self.events: list[Any] = []
        self.connection = self.connect()

    def connect(self, name: str = "client") -> ConnectionHistory:
        return self.shared.connection(name, lambda *event: self.events.append(event))

    def produce(
        self, batch: RecordBatch, *answers: tuple[str, int], acks: int = -1, partition: str = "t-0"
    ) -> None:
        request = ProduceRequest(acks, 0, {partition: batch})
        fetch = self.connection.request(request, 0)
        for answer in answers:
            self.connection.answer(request, ProduceResponse({partition: answer}), fetch)

    def ask(self, request: Any, answer: Any, connection: ConnectionHistory | None = None) -> None:
        connection = connection or self.connection
        connection.answer(request, answer, connection.request(request, 0))

    def fetch(self, offset: int, *batches: RecordBatch) -> None:
        request = FetchRequest(-1, 0, 0, {"t-0": PartitionData(offset, -1)})
        fetch = self.connection.request(request, 0)
        self.connection.answer(
            request, FetchResponse({"t-0": FetchedPartition(errors.NONE, 9, batches)}), fetch
        )

    def lines(self) -> list[tuple[str, str, tuple[Any, ...]]]:
        self.shared.close()
        return [(operation.f, operation.type, operation.value) for operation in self.history.operations]


def batch_of(*values: str, sequence: int = -1, transactional: bool = False) -> RecordBatch:
    producer = (-1, -1) if sequence < 0 else (5, 0)
    return RecordBatch(values, *producer, sequence, is_transactional=transactional)


@pytest.fixture
def wire() -> Wire:
    return Wire()


def test_a_retry_is_no_second_send_whether_it_comes_before_or_after_the_answer(wire: Wire) -> None:
    batch = batch_of("5.0.0", "5.0.1", sequence=0)
    wire.produce(batch)
    wire.produce(batch, (errors.NONE, 0))
    wire.produce(batch, (errors.NONE, 0))
    kinds = [(f, kind) for f, kind, _ in wire.lines()]
    assert kinds == [("send", "invoke")] * 2 + [("send", "ok")] * 2


def test_a_send_without_an_answer_has_an_unknown_outcome(wire: Wire) -> None:
    wire.produce(batch_of("c1.1.0"))
    assert [kind for _, kind, _ in wire.lines()] == ["invoke", "info"]


@pytest.mark.parametrize(
    ("error", "kind"), [("NOT_ENOUGH_REPLICAS", "fail"), ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", "info")]
)
def test_a_refused_send_has_failed_unless_the_leader_may_have_appended_it(
    wire: Wire, error: str, kind: str
) -> None:
    wire.produce(batch_of("c1.1.0"), (error, -1))
    assert [kind for _, kind, _ in wire.lines()] == ["invoke", kind]


def test_a_refused_batch_of_an_idempotent_producer_may_still_be_retried(wire: Wire) -> None:
    batch = batch_of("5.0.0", sequence=0)
    wire.produce(batch, ("NOT_ENOUGH_REPLICAS", -1))
    wire.produce(batch, (errors.NONE, 4))
    assert wire.lines()[-1] == ("send", "ok", (("send", "t-0", (4, "5.0.0")),))


@pytest.mark.parametrize(
    ("demanded", "operations"),
    [
        (
            (),
            [
                ("invoke", "a"),
                ("fail", "a"),
                ("invoke", "b"),
                ("ok", (0, "b")),
                ("invoke", "a"),
                ("ok", (1, "a")),
            ],
        ),
        (("nonmonotonic-send",), [("invoke", "a"), ("invoke", "b"), ("ok", (0, "b")), ("ok", (1, "a"))]),
    ],
)
def test_a_refused_record_that_is_sent_again_keeps_its_place_if_the_campaign_demands_the_order(
    demanded: tuple[str, ...], operations: list[tuple[str, Any]]
) -> None:
    wire = Wire(BY_VALUE, demanded)
    wire.produce(batch_of("a"), ("NOT_ENOUGH_REPLICAS", -1))
    wire.produce(batch_of("b"), (errors.NONE, 0))
    wire.produce(batch_of("a"), (errors.NONE, 1))
    assert [(kind, sent) for _, kind, ((_, _, sent),) in wire.lines()] == operations


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("NOT_ENOUGH_REPLICAS", "fail"),
        ("MESSAGE_TOO_LARGE", "fail"),
        ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", "info"),
    ],
)
def test_a_refused_record_that_is_not_sent_again_has_failed_although_the_campaign_demands_the_order(
    error: str, kind: str
) -> None:
    wire = Wire(BY_VALUE, ["nonmonotonic-send"])
    wire.produce(batch_of("a"), (error, -1))
    assert [kind for _, kind, _ in wire.lines()] == ["invoke", kind]


def test_a_refused_record_that_is_sent_again_without_an_answer_has_an_unknown_outcome() -> None:
    wire = Wire(BY_VALUE, ["nonmonotonic-send"])
    wire.produce(batch_of("a"), ("NOT_ENOUGH_REPLICAS", -1))
    wire.produce(batch_of("a"))
    assert [kind for _, kind, _ in wire.lines()] == ["invoke", "info"]


@pytest.mark.parametrize("sequence", [-1, 0], ids=["plain", "idempotent"])
@pytest.mark.parametrize(("demanded", "sends"), [((), ["t-0", "t-1"]), (("misrouted",), ["t-0"])])
def test_a_record_belongs_to_its_first_partition_if_the_campaign_demands_that(
    demanded: tuple[str, ...], sends: list[str], sequence: int
) -> None:
    wire = Wire(BY_VALUE, demanded)
    for partition in ("t-0", "t-1"):
        wire.produce(batch_of("a", sequence=sequence), (errors.NONE, 0), partition=partition)
    assert [micro[0][1] for _, kind, micro in wire.lines() if kind == "ok"] == sends


@pytest.mark.parametrize("demanded", [(), ("nonmonotonic-send",)])
@pytest.mark.parametrize("refusal", ["NOT_ENOUGH_REPLICAS", "MESSAGE_TOO_LARGE"])
@pytest.mark.parametrize(
    ("first", "kind"),
    [
        ([], "info"),
        ([("REQUEST_TIMED_OUT", -1)], "info"),
        ([("NOT_ENOUGH_REPLICAS", -1)], "fail"),
    ],
    ids=["unanswered", "perhaps appended", "refused"],
)
def test_a_refused_record_has_failed_only_if_no_other_request_may_have_appended_it(
    demanded: tuple[str, ...], refusal: str, first: list[tuple[str, int]], kind: str
) -> None:
    wire = Wire(BY_VALUE, demanded)
    wire.produce(batch_of("a"), *first)
    wire.connection = wire.connect()
    wire.produce(batch_of("a"), (refusal, -1))
    assert wire.lines()[-1] == ("send", kind, (("send", "t-0", "a"),))


def test_a_record_fails_when_the_last_of_its_requests_is_refused() -> None:
    wire = Wire(BY_VALUE)
    request = ProduceRequest(-1, 0, {"t-0": batch_of("a")})
    operations = [wire.connection.request(request, 0) for _ in range(2)]
    for count, each in enumerate(operations, 1):
        wire.connection.answer(request, ProduceResponse({"t-0": ("MESSAGE_TOO_LARGE", -1)}), each)
        assert len(list(wire.history.operations)) == count
    assert [kind for _, kind, _ in wire.lines()] == ["invoke", "fail"]


@pytest.mark.parametrize("answer", [("NOT_ENOUGH_REPLICAS", -1), (errors.NONE, 3)])
def test_a_late_answer_to_an_earlier_request_is_none_to_a_record_that_was_sent_anew(
    answer: tuple[str, int],
) -> None:
    wire = Wire(BY_VALUE)
    request = ProduceRequest(-1, 0, {"t-0": batch_of("a")})
    operation = wire.connection.request(request, 0)
    wire.produce(batch_of("a"), (errors.NONE, 1))
    wire.produce(batch_of("a"))
    wire.connection.answer(request, ProduceResponse({"t-0": answer}), operation)
    sent = ("send", "invoke", (("send", "t-0", "a"),))
    acked = ("send", "ok", (("send", "t-0", (1, "a")),))
    assert wire.lines() == [sent, acked, sent, ("send", "info", (("send", "t-0", "a"),))]


@pytest.mark.parametrize("demanded", [("misrouted",), ("misrouted", "nonmonotonic-send")])
@pytest.mark.parametrize("sequence", [-1, 0], ids=["plain", "idempotent"])
def test_a_record_that_its_first_partition_has_refused_belongs_to_the_next_one(
    demanded: tuple[str, ...], sequence: int
) -> None:
    wire = Wire(BY_VALUE, demanded)
    wire.produce(batch_of("a", sequence=sequence), ("MESSAGE_TOO_LARGE", -1))
    wire.produce(batch_of("a", sequence=sequence), (errors.NONE, 0), partition="t-1")
    assert [micro[0][1] for _, kind, micro in wire.lines() if kind == "ok"] == ["t-1"]


@pytest.mark.parametrize("again", ["t-0", "t-1"])
def test_a_record_that_keeps_its_place_belongs_to_the_partition_it_is_sent_to_after_a_refusal(
    again: str,
) -> None:
    wire = Wire(BY_VALUE, ["misrouted", "nonmonotonic-send"])
    wire.produce(batch_of("a"), ("NOT_ENOUGH_REPLICAS", -1))
    for partition in (again, "t-1"):
        wire.produce(batch_of("a"), (errors.NONE, 0), partition=partition)
    assert {micro[0][1] for _, kind, micro in wire.lines() if kind == "ok"} == {again}


@pytest.mark.parametrize(("committed", "sends"), [(True, {"t-0"}), (False, {"t-0", "t-1"})])
def test_a_record_of_an_aborted_transaction_belongs_to_the_next_partition(
    committed: bool, sends: set[str]
) -> None:
    wire = Wire(BY_VALUE, ["misrouted"])
    for partition in ("t-0", "t-1"):
        batch = batch_of("a", sequence=0, transactional=True)
        wire.produce(batch, (errors.NONE, 0), partition=partition)
        wire.ask(EndTxnRequest("pay", 5, 0, committed), EndTxnResponse(errors.NONE))
    assert {micro[0][1] for _, kind, micro in wire.lines() if kind == "invoke"} == sends


def test_acks_0_acknowledges_without_an_offset(wire: Wire) -> None:
    wire.produce(batch_of("c1.1.0"), acks=0)
    assert wire.lines()[-1] == ("send", "ok", (("send", "t-0", "c1.1.0"),))


@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_completes_as_its_coordinator_decides(wire: Wire, committed: bool) -> None:
    wire.produce(batch_of("5.0.0", sequence=0, transactional=True), (errors.NONE, 7))
    request = EndTxnRequest("pay", 5, 0, committed)
    wire.connection.answer(request, EndTxnResponse(errors.NONE), wire.connection.request(request, 0))
    sent = (7, "5.0.0") if committed else "5.0.0"
    assert wire.lines()[-1] == ("txn", "ok" if committed else "fail", (("send", "t-0", sent),))


def test_a_producer_of_transactions_v2_is_one_process_in_all_of_its_epochs(wire: Wire) -> None:
    for epoch in (0, 1):
        batch = replace(batch_of(f"5.{epoch}.0", sequence=0, transactional=True), producer_epoch=epoch)
        wire.produce(batch, (errors.NONE, 7 + epoch))
        request = EndTxnRequest("pay", 5, epoch, committed=True, is_v2=True)
        wire.ask(request, EndTxnResponse(errors.NONE, 5, epoch + 1))
    assert [kind for _, kind, _ in wire.lines()] == ["invoke", "ok"] * 2
    assert len({operation.process for operation in wire.history.operations}) == 1


def test_a_committed_transaction_does_not_vouch_for_records_without_an_acknowledgement(wire: Wire) -> None:
    wire.produce(batch_of("5.0.0", sequence=0, transactional=True), (errors.NONE, 7))
    wire.produce(batch_of("5.0.1", sequence=1, transactional=True), ("NOT_ENOUGH_REPLICAS", -1))
    request = EndTxnRequest("pay", 5, 0, committed=True)
    wire.connection.answer(request, EndTxnResponse(errors.NONE), wire.connection.request(request, 0))
    outcomes = [(kind, value) for _, kind, value in wire.lines() if kind != "invoke"]
    assert outcomes == [("ok", (("send", "t-0", (7, "5.0.0")),)), ("info", (("send", "t-0", "5.0.1"),))]


@pytest.mark.parametrize("committed", [True, False])
def test_each_of_several_records_with_one_name_has_an_outcome(wire: Wire, committed: bool) -> None:
    wire.produce(batch_of("k", "k", sequence=0, transactional=True), (errors.NONE, 7))
    wire.produce(batch_of("k", sequence=2, transactional=True), (errors.NONE, 9))
    wire.ask(EndTxnRequest("pay", 5, 0, committed), EndTxnResponse(errors.NONE))
    sent = [(offset, "k") for offset in (7, 8, 9)] if committed else ["k"] * 3
    outcome = tuple(("send", "t-0", each) for each in sent)
    assert wire.lines()[3:] == [("txn", "ok" if committed else "fail", outcome)]


@pytest.mark.parametrize(("committed", "kind"), [(True, "info"), (False, "fail")])
def test_a_transaction_without_an_answer_is_unknown_only_if_a_commit_was_sent(
    wire: Wire, committed: bool, kind: str
) -> None:
    wire.produce(batch_of("5.0.0", sequence=0, transactional=True), (errors.NONE, 7))
    wire.connection.request(EndTxnRequest("pay", 5, 0, committed), 0)
    assert [each for f, each, _ in wire.lines() if f == "txn"] == ["invoke", kind]


def test_a_client_that_chooses_another_offset_gets_its_partition_again(wire: Wire) -> None:
    stored = [batch_of("a", "b").stored_at(0, 0), batch_of("c").stored_at(2, 0)]
    wire.fetch(0, *stored)
    wire.fetch(3)
    wire.fetch(1, *stored)
    lines = [(f, value) for f, kind, value in wire.lines() if kind == "ok"]
    assert lines == [
        ("assign", ("t-0",)),
        ("poll", (("poll", {"t-0": [(0, "a"), (1, "b"), (2, "c")]}),)),
        ("assign", ()),
        ("assign", ("t-0",)),
        ("poll", (("poll", {"t-0": [(1, "b"), (2, "c")]}),)),
    ]


def test_a_later_fetch_does_not_change_what_an_earlier_one_asked_for(wire: Wire) -> None:
    early = FetchRequest(-1, 0, 0, {"t-0": PartitionData(0, -1)})
    asked = wire.connection.request(early, 0)
    wire.connection.request(FetchRequest(-1, 0, 0, {"t-0": PartitionData(1, -1)}), 0)
    batches = (batch_of("a").stored_at(0, 0),)
    answer = FetchResponse({"t-0": FetchedPartition(errors.NONE, 9, batches)})
    wire.connection.answer(early, answer, asked)
    assert wire.lines()[-1] == ("poll", "ok", (("poll", {"t-0": [(0, "a")]}),))


def commit(offset: int, group: str = "g", generation: int = 1) -> OffsetCommitRequest:
    return OffsetCommitRequest(group, generation, "m", "", {"t-0": offset})


def join(wire: Wire, group: str = "g") -> None:
    wire.ask(SyncGroupRequest(group, 1, "m", ""), SyncGroupResponse(errors.NONE, ("t-0", "#0:bytes")))


@pytest.mark.parametrize(("error", "kind"), [(errors.NONE, "ok"), (errors.ILLEGAL_GENERATION, "fail")])
def test_a_commit_is_in_the_history_with_its_outcome(wire: Wire, error: str, kind: str) -> None:
    wire.ask(commit(3), OffsetCommitResponse({"t-0": error}))
    value = (("commit", "t-0", 3),)
    assert wire.lines() == [("commit", "invoke", value), ("commit", kind, value)]


def test_a_commit_without_an_answer_is_unknown(wire: Wire) -> None:
    wire.connection.request(commit(3), 0)
    assert [kind for _, kind, _ in wire.lines()] == ["invoke", "info"]


@pytest.mark.parametrize(("committed", "kind"), [(True, "ok"), (False, "fail")])
def test_offsets_of_a_transaction_are_committed_when_it_is(wire: Wire, committed: bool, kind: str) -> None:
    request = TxnOffsetCommitRequest("pay", "g", 5, 0, {"t-0": 3})
    wire.ask(request, TxnOffsetCommitResponse({"t-0": errors.NONE}))
    wire.ask(EndTxnRequest("pay", 5, 0, committed), EndTxnResponse(errors.NONE))
    assert [each for _, each, _ in wire.lines()] == ["invoke", kind]


def test_a_member_gets_its_assignment_and_the_committed_offset(wire: Wire) -> None:
    join(wire)
    wire.ask(OffsetFetchRequest("g", ("t-0",)), OffsetFetchResponse({"t-0": (errors.NONE, 7)}))
    assert wire.events == [
        (PartitionsAssigned, "client", "g", 1, ("t-0",)),
        (GroupOffsetFound, "client", "t-0", 7),
    ]
    assert ("assign", "ok", ("t-0",)) in wire.lines()


def groups_of(wire: Wire) -> set[str]:
    return {settings.group for settings in wire.shared.consumers().values()}


def test_the_connections_of_a_client_belong_to_its_only_group(wire: Wire) -> None:
    join(wire)
    wire.connection = wire.connect()
    wire.fetch(0, batch_of("a").stored_at(0, 0))
    assert groups_of(wire) == {"g"}
    assert len(wire.shared.consumers()) == 2


def test_no_group_of_a_client_with_several_groups_is_judged(wire: Wire) -> None:
    join(wire)
    join(wire, "another")
    wire.fetch(0, batch_of("a").stored_at(0, 0))
    assert groups_of(wire) == {""}


@pytest.mark.parametrize(("begin", "group"), [(1, "g"), (0, "g"), (2, "")])
def test_a_group_whose_client_seeks_forward_is_not_judged(wire: Wire, begin: int, group: str) -> None:
    join(wire)
    wire.fetch(0, batch_of("a").stored_at(0, 0))
    wire.fetch(begin, batch_of("a").stored_at(0, 0), batch_of("b", "c").stored_at(1, 0))
    assert groups_of(wire) == {group}


@pytest.mark.parametrize(
    ("timestamp", "offset", "group"),
    [
        (EARLIEST_TIMESTAMP, 50, "g"),
        (LATEST_TIMESTAMP, 50, "g"),
        (EARLIEST_TIMESTAMP, 0, ""),
        (1_700_000_000_000, 50, ""),
    ],
)
def test_a_group_is_judged_only_if_it_begins_where_it_found_an_end_of_the_partition(
    wire: Wire, timestamp: int, offset: int, group: str
) -> None:
    join(wire)
    request = ListOffsetsRequest(-1, {"t-0": -1}, 0, timestamp)
    wire.ask(request, ListOffsetsResponse({"t-0": (errors.NONE, offset)}))
    wire.fetch(50, batch_of("a").stored_at(50, 0))
    assert groups_of(wire) == {group}


def test_a_client_that_begins_where_its_group_has_committed_does_not_seek(wire: Wire) -> None:
    join(wire)
    wire.fetch(0, batch_of("a").stored_at(0, 0))
    wire.ask(OffsetFetchRequest("g", ("t-0",)), OffsetFetchResponse({"t-0": (errors.NONE, 3)}))
    wire.fetch(3, batch_of("d").stored_at(3, 0))
    assert groups_of(wire) == {"g"}


@pytest.mark.parametrize(("offset", "group"), [(1, "g"), (9, "")])
def test_a_group_is_not_judged_if_another_client_moves_it_ahead(wire: Wire, offset: int, group: str) -> None:
    join(wire)
    wire.fetch(0, batch_of("a").stored_at(0, 0))
    wire.ask(commit(offset, generation=NO_GENERATION), OffsetCommitResponse({"t-0": errors.NONE}))
    assert groups_of(wire) == {group}


@pytest.mark.parametrize(
    ("timestamps", "reset"),
    [
        ((), "latest"),
        ((EARLIEST_TIMESTAMP,), "earliest"),
        ((EARLIEST_TIMESTAMP, LATEST_TIMESTAMP), "latest"),
    ],
)
def test_lookups_of_offsets_show_where_a_group_begins(
    wire: Wire, timestamps: tuple[int, ...], reset: str
) -> None:
    join(wire)
    for timestamp in timestamps:
        wire.ask(ListOffsetsRequest(-1, {"t-0": -1}, 0, timestamp), ListOffsetsResponse({"t-0": ("NONE", 0)}))
    assert {settings.offset_reset for settings in wire.shared.consumers().values()} == {reset}


def test_a_request_may_look_up_the_beginning_of_one_partition_and_the_end_of_another(wire: Wire) -> None:
    join(wire)
    timestamps = {"t-0": EARLIEST_TIMESTAMP, "t-1": LATEST_TIMESTAMP}
    request = ListOffsetsRequest(
        -1, dict.fromkeys(timestamps, -1), 0, EARLIEST_TIMESTAMP, timestamps=timestamps
    )
    wire.ask(request, ListOffsetsResponse(dict.fromkeys(timestamps, ("NONE", 0))))
    assert {settings.offset_reset for settings in wire.shared.consumers().values()} == {"latest"}


def test_a_producer_that_the_campaign_names_has_the_settings_that_the_campaign_states() -> None:
    (plan,) = load_text(STATED, "c.yaml").plans
    history = WireHistory(
        History(), cast("Any", SimpleNamespace(now_us=0)), lambda _: True, configured_producers(plan)
    )
    for name in ("app", "app", "another"):
        history.connection(name, lambda *_: None).request(ProduceRequest(1, 0, {"t-0": batch_of("a")}), 0)
    settings = [(each.name, each.acks, each.max_in_flight) for each in history.producers.values()]
    assert settings == [("app", "1", 1), ("another", "1", 5)]


def test_a_consumer_that_assigns_itself_partitions_reads_for_the_group_that_it_asks_about(wire: Wire) -> None:
    reader, committer = wire.connection, wire.connect("producer")
    wire.ask(OffsetFetchRequest("g", ("t-0",)), OffsetFetchResponse({"t-0": (errors.NONE, -1)}), reader)
    wire.fetch(0, batch_of("a").stored_at(0, 0))
    request = TxnOffsetCommitRequest("pay", "g", 5, 0, {"t-0": 1})
    wire.ask(request, TxnOffsetCommitResponse({"t-0": errors.NONE}), committer)
    assert [(each.name, each.group) for each in wire.shared.consumers().values()] == [
        ("producer", "g"),
        ("client", "g"),
    ]


def test_a_group_is_not_judged_if_no_known_client_of_it_reads_what_it_commits(wire: Wire) -> None:
    wire.fetch(0, batch_of("a").stored_at(0, 0))
    request = TxnOffsetCommitRequest("pay", "g", 5, 0, {"t-0": 1})
    wire.ask(request, TxnOffsetCommitResponse({"t-0": errors.NONE}), wire.connect("producer"))
    assert groups_of(wire) == {""}

"""The user says what identifies a record, and harrow finds records that a program sends twice."""

import gzip
from typing import Any, Final

import pytest
from confluent_kafka import Producer
from kafka.record import MemoryRecordsBuilder

from harrow.campaigns.record.phrases import because
from harrow.checks.finding import HELD, PERMITTED, VIOLATED
from harrow.checks.promise import SENT_IN_TRANSACTIONS
from harrow.cluster_model.history import INVOKE
from harrow.live_cluster.serve.contents.client_batches import InvalidRecordError, RecordNames, read_batch
from harrow.live_cluster.serve.contents.record_identity import identities, parse_identity
from tests.live_cluster.serve.test_client_faults import ack_loss
from tests.live_cluster.serve.test_served_run import run_with
from tests.patience import PATIENCE_S

CAMPAIGN: Final = """
name: unique
kafka: "4.3"
cluster: {brokers: 1, topics: [{name: t}]}
workload: {producers: [{name: unused}], duration: 60s}
"""


def batch_of(*values: bytes | None, compression: int = 0, key: bytes | None = b"key") -> bytes:
    builder = MemoryRecordsBuilder(2, compression, 100_000)
    for number, value in enumerate(values):
        headers = [("id", b"%d" % number), ("other", b"x")]
        builder.append(timestamp=0, key=key, value=value, headers=headers)
    builder.close()
    return bytes(builder.buffer())


@pytest.mark.parametrize("compression", [0, 1], ids=["none", "gzip"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key", ["key", "key"]),
        ("value", ["a", "0xff"]),
        ("header:id", ["0", "1"]),
        ("header:no", [None, None]),
    ],
)
def test_a_record_is_identified_by_its_key_its_value_or_a_header(
    text: str, expected: list[str | None], compression: int
) -> None:
    data = batch_of(b"a", b"\xff", *[b"c" * 1_000] * compression, compression=compression)
    assert list(identities(data, parse_identity(text)))[:2] == expected


@pytest.mark.parametrize("text", ["", "keys", "header:", "header"])
def test_anything_else_identifies_no_record(text: str) -> None:
    with pytest.raises(ValueError, match="is not key, value or header:NAME"):
        parse_identity(text)


def test_a_record_without_the_named_part_has_a_name_of_its_own() -> None:
    names = RecordNames(parse_identity("value"))
    batch = read_batch(batch_of(b"a", None), lambda ms: ms)
    assert names.named("t-0", batch, "r").values == ("a", "t-0:r.1")


def test_a_batch_may_not_expand_without_bound() -> None:
    data = batch_of(b"a" * 1_000, compression=1)
    bomb = data[:61] + gzip.compress(bytes(65 * 1024 * 1024))
    with pytest.raises(ValueError, match="too large"):
        identities(bomb, parse_identity("value"))


def test_torn_records_are_refused() -> None:
    data = batch_of(b"a" * 1_000, compression=1)
    batch = read_batch(data, lambda ms: ms)._replace(data=data[:61] + gzip.compress(b"torn"))
    with pytest.raises(InvalidRecordError, match="torn records"):
        RecordNames(parse_identity("value")).named("t-0", batch, "r")


def send(servers: str, **settings: Any) -> None:
    options = {"bootstrap.servers": servers, "client.id": "app", "retry.backoff.ms": 10, **settings}
    producer = Producer(options)
    producer.produce("t", b"order-7")
    assert producer.flush(PATIENCE_S) == 0


@pytest.mark.parametrize(("demand", "status"), [("", PERMITTED), ("demand: [duplicate]\n", VIOLATED)])
def test_a_record_that_a_program_sends_twice_is_a_duplicate(demand: str, status: str) -> None:
    def use(servers: str) -> None:
        send(servers, **{"enable.idempotence": True})
        send(servers, **{"enable.idempotence": True})

    result = run_with(CAMPAIGN + demand, use, unique="value")
    rule = result.verdict.rules["duplicate"]
    assert (rule.status, [finding.value for finding in rule.findings]) == (status, ["order-7"])
    assert [cause.kind.name for cause in rule.findings[0].causes] == ["resent-by-application"]


def test_a_record_that_a_program_commits_twice_is_its_own_duplicate() -> None:
    def use(servers: str) -> None:
        producer = Producer({"bootstrap.servers": servers, "transactional.id": "x"})
        producer.init_transactions(PATIENCE_S)
        for _ in range(2):
            producer.begin_transaction()
            producer.produce("t", b"order-7")
            producer.commit_transaction(PATIENCE_S)

    rule = run_with(CAMPAIGN, use, unique="value").verdict.rules["duplicate"]
    (finding,) = rule.findings
    assert (rule.status, finding.permitted_by, finding.prevented_by) == (PERMITTED, SENT_IN_TRANSACTIONS, ())
    assert because(finding).endswith("the application sent it 2 times in transactions that it committed")


def test_a_retry_of_a_client_library_is_no_second_send() -> None:
    settings = {"enable.idempotence": False}
    result = run_with(ack_loss(), lambda servers: send(servers, **settings), unique="value")
    sends = [each for each in result.evidence.operations if each.type == INVOKE and each.f == "send"]
    rule = result.verdict.rules["duplicate"]
    assert (len(sends), rule.status, len(rule.findings)) == (1, PERMITTED, 1)
    assert rule.findings[0].permitted_by == "enable.idempotence=false"


def test_an_idempotent_retry_is_one_record() -> None:
    settings = {"enable.idempotence": True}
    result = run_with(ack_loss(), lambda servers: send(servers, **settings), unique="value")
    assert result.verdict.rules["duplicate"].status == HELD

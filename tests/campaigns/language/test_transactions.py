"""A campaign can use transactions, and mistakes in their keys are reported."""

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.language.problem import CampaignError

CAMPAIGN = """name: a
kafka: "{release}"
cluster: {{brokers: {brokers}, topics: [{{name: t, replication_factor: 1}}]}}
workload:
  producers:
    - {{name: app, settings: {{{settings}}}{more}}}
script:
  - do: [{actions}]
"""
ID = "transactional.id: orders"
FACTOR = "transaction.state.log.replication.factor"
REFUSED = "which Kafka refuses: begin_transaction comes first"


def text(
    actions: str = "begin_transaction, {send: m0}, commit_transaction",
    *,
    settings: str = ID,
    brokers: int = 3,
    release: str = "3.9",
    more: str = "",
) -> str:
    return CAMPAIGN.format(actions=actions, settings=settings, brokers=brokers, release=release, more=more)


def plan(source: str) -> Plan:
    (read,) = load_text(source, "a.yaml").plans
    return read


def problems(source: str) -> list[str]:
    with pytest.raises(CampaignError) as refused:
        load_text(source, "a.yaml")
    return str(refused.value).splitlines()


def test_a_producer_with_a_transactional_id_needs_the_topic_of_its_coordinator() -> None:
    read = plan(text())
    assert read.producers[0].internal_topics() == ("__transaction_state",)
    assert [topic.name for topic in read.running_cluster().topics] == ["t", "__transaction_state"]
    ordinary = plan(text("{send: m0}", settings=""))
    assert ordinary.running_cluster() is ordinary.cluster


def test_transactions_are_in_the_digest_only_if_they_are_set() -> None:
    explicit, default = text(more=", transaction: {records: 10}"), text()
    assert plan(explicit).digest() == plan(default).digest()
    assert plan(text(more=", transaction: {records: 11}")).digest() != plan(default).digest()


def test_transactions_are_written_as_they_were_read() -> None:
    actions = "{begin_transaction: app}, {send: m0}, {abort_transaction: app}"
    read = plan(text(actions, more=", transaction: {records: 3, abort_every: 2}"))
    assert plan(campaign_text(read)).digest() == read.digest()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            text(brokers=2),
            f"a.yaml:6:7: 2 brokers cannot create __transaction_state with 3 replicas: set {FACTOR} to at most 2",
        ),
        (
            text(brokers=1),
            f"a.yaml:6:7: 1 broker cannot create __transaction_state with 3 replicas: set {FACTOR} to at most 1",
        ),
        (
            text("{send: m0}"),
            f"a.yaml:8:5: app has a transactional.id and sends `m0` outside a transaction, {REFUSED}",
        ),
        (text("commit_transaction"), "a.yaml:8:5: commit_transaction: app is not in a transaction"),
        (
            text("begin_transaction, begin_transaction"),
            "a.yaml:8:5: begin_transaction: app is in a transaction already",
        ),
        (
            text("begin_transaction", settings=""),
            "a.yaml:8:5: app has no transactional.id, and so no transactions",
        ),
        (
            text("{send: m0}", settings="", more=", transaction: {records: 3}"),
            "a.yaml:6:33: a producer without a transactional.id has no transactions",
        ),
        (
            text(settings=f"{ID}, acks: 1"),
            "a.yaml:6:62: transactional.id (line 6) needs acks=all, not acks=1",
        ),
        (
            text(settings=f"{ID}, enable.idempotence: false"),
            "a.yaml:6:76: transactional.id (line 6) needs enable.idempotence=true",
        ),
    ],
)
def test_transactions_that_kafka_would_refuse_are_reported_with_their_position(
    source: str, message: str
) -> None:
    assert problems(source) == [message]


def test_after_a_fault_on_a_client_its_transactions_are_not_checked() -> None:
    plan(text("begin_transaction, {client_crash: {client: app, restart_after: 1s}}, {send: m0}"))
    plan(text("begin_transaction, {restart_producer: app}, begin_transaction"))


def test_releases_before_transactions_have_none() -> None:
    refused = problems(text("begin_transaction", release="0.10.2", settings=""))
    assert "Kafka 0.10.2 has no begin_transaction; it came with 0.11" in "".join(refused)

"""The section `workload.applications`: its defaults, its mistakes and its round trip."""

from dataclasses import replace

import pytest

from harrow.campaigns.language.loader import CampaignError, load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.plan_file import campaign_text
from harrow.cluster_model.topology import ApplicationSpec

TEXT = """
name: a
kafka: "{kafka}"
{settings}
cluster: {{brokers: 3, topics: [{{name: in, replication_factor: 3}}, {{name: out, replication_factor: 3}}]}}
workload:
  duration: 10s
  producers: [{{rate: 1/s}}]
  applications: [{application}]
"""


def plan(application: str, *, settings: str = "", kafka: str = "3.9") -> Plan:
    text = TEXT.format(application=application, settings=settings, kafka=kafka)
    return load_text(text, "a.yaml").plans[0]


def spec(application: str, **sections: str) -> ApplicationSpec:
    (read,) = plan(application, **sections).applications
    assert isinstance(read, ApplicationSpec)
    return read


def test_the_group_and_the_transactional_id_of_an_application_default_to_its_name() -> None:
    application = spec("{from: in, to: out}")
    assert (application.name, application.group, application.transactional_id) == ("application-0",) * 3
    assert application.internal_topics() == ("__consumer_offsets", "__transaction_state")


def test_an_application_finds_a_topic_to_read_on_any_cluster_and_gets_one_to_write() -> None:
    read = plan("{from: any, to: own}")
    (application,) = read.applications
    assert (application.source, application.target) == ("in", "in-own")
    source, _, own = read.cluster.topics
    assert own == replace(source, name="in-own")
    (again,) = load_text(campaign_text(read), "a.yaml").plans
    assert again.digest() == read.digest()


def test_instances_that_read_one_topic_share_their_own_one() -> None:
    read = plan("{from: in, to: own}, {from: any, to: own}, {from: out, to: own}")
    assert [topic.name for topic in read.cluster.topics] == ["in", "out", "in-own", "out-own"]


def test_a_topic_may_be_called_like_a_word_for_topics() -> None:
    text = TEXT.format(application="{from: any, to: own}", settings="", kafka="3.9")
    text = text.replace("name: in", "name: own").replace("name: out", "name: any")
    (application,) = load_text(text, "a.yaml").plans[0].applications
    assert (application.source, application.target) == ("any", "own")


def test_an_option_replaces_the_own_settings_of_an_application_too() -> None:
    own = (
        "{from: in, to: out, delivery: at_least_once, producer: {acks: all}, consumer: {max.poll.records: 5}}"
    )
    text = TEXT.format(application=own, settings="", kafka="3.9")
    (read,) = load_text(text, "a.yaml", ["acks=1", "max.poll.records=7"]).plans[0].applications
    assert read.producer_settings()["acks"] == "1"
    assert read.consumer_settings()["max.poll.records"] == 7


def test_settings_of_the_campaign_reach_the_clients_of_an_application() -> None:
    application = spec(
        "{from: in, to: out, consumer: {max.poll.records: 5}, producer: {linger.ms: 10ms}}",
        settings="settings: {group.id: g, isolation.level: read_committed, acks: all}",
    )
    assert application.group == "g"
    assert application.consumer_settings()["isolation.level"] == "read_committed"
    assert application.consumer_settings()["max.poll.records"] == 5
    assert application.consumer_settings()["enable.auto.commit"] is False
    assert application.producer_settings()["linger.ms"] == 10
    assert application.producer_settings()["transactional.id"] == "application-0"


def test_only_exactly_once_has_transactions() -> None:
    application = spec("{from: in, to: out, delivery: at_least_once}")
    assert application.transactional_id == ""
    assert "transactional.id" not in application.producer_settings()
    assert application.internal_topics() == ("__consumer_offsets",)


@pytest.mark.parametrize(
    ("application", "message"),
    [
        ("{to: out}", "`from` is missing"),
        ("{from: nowhere, to: out}", "unknown topic `nowhere`"),
        ("{from: in}", "`to` is missing: with `delivery: exactly_once`"),
        ("{from: in, to: in}", "never finishes"),
        (
            "{from: in, to: out, delivery: idempotent_sink}",
            "`to` has no effect with `delivery: idempotent_sink`",
        ),
        ("{from: in, to: out, workers: 3}", "`workers` has no effect with `delivery: exactly_once`"),
        (
            "{from: in, to: out, delivery: auto_commit, group_metadata: false}",
            "`group_metadata` has no effect with `delivery: auto_commit`",
        ),
        ("{from: in, to: out, start: 5s, stop: 2s}", "stops at 2s, which is not after its start at 5s"),
        (
            "{from: in, to: out, consumer: {enable.auto.commit: true}}",
            "contradicts enable.auto.commit=true",
        ),
        (
            "{from: in, to: out, delivery: auto_commit, consumer: {enable.auto.commit: false}}",
            "contradicts enable.auto.commit=false",
        ),
        ("{from: in, to: out, producer: {acks: 1}}", "needs acks=all"),
        ("{from: in, to: out, delivery: twice}", "delivery"),
    ],
)
def test_contradictory_keys_of_an_application_are_refused(application: str, message: str) -> None:
    with pytest.raises(CampaignError, match=message):
        plan(application)


def test_an_option_for_the_delivery_removes_keys_for_another_delivery() -> None:
    text = TEXT.format(
        application="{from: in, to: out, delivery: watermark, workers: 3}", settings="", kafka="3.9"
    )
    options = ("workload.applications.0.delivery=exactly_once",)
    (read,) = load_text(text, "a.yaml", options).plans
    assert read.applications == plan("{from: in, to: out}").applications
    with pytest.raises(CampaignError, match="`workers` has no effect with `delivery: exactly_once`"):
        load_text(text, "a.yaml", (*options, "workload.applications.0.workers=5"))


def test_a_release_without_transactions_has_no_exactly_once() -> None:
    with pytest.raises(CampaignError, match=r"Kafka 0\.10\.2 has no transactions; they came with 0\.11"):
        plan("{from: in, to: out}", kafka="0.10.2")
    assert spec("{from: in, to: out, delivery: at_least_once}", kafka="0.10.2").transactional_id == ""


@pytest.mark.parametrize(
    "application",
    [
        "{from: in, to: out}",
        "{name: a, from: in, delivery: idempotent_sink, work: 5ms}",
        "{name: b, from: in, to: out, delivery: watermark, workers: 3, work: 20ms, rewinds: false}",
        "{name: c, from: in, to: out, group_metadata: false, start: 1s, stop: 5s, consumer: {max.poll.records: 7}}",
    ],
)
def test_an_application_survives_a_round_trip_through_a_file(application: str) -> None:
    read = plan(application, settings="settings: {group.id: g}")
    (again,) = load_text(campaign_text(read), "again.yaml").plans
    assert again.applications == read.applications
    assert again.digest() == read.digest()

"""Variants of a campaign and the options `--set key=value`."""

import pytest

from harrow.campaigns.language.loader import CampaignError, load_text
from harrow.campaigns.language.plan import (
    Expectation,
)
from harrow.cluster_model.release.profiles import NEWEST_RELEASE
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from tests.campaigns.language.campaign_texts import load, plan, problems


def test_variants_merge_mappings_and_replace_the_rest() -> None:
    campaign = load(
        """\
        settings: {acks: all, retries: 3}
        cluster: {brokers: 3, controller: 1}
        faults:
          - {rate: 1/s, until: 10s, do: controller_failover}
        expect: {verdict: violated, lost: [m1]}
        variants:
          other:
            description: Another one.
            settings: {acks: 1}
            cluster: {controller: 2}
            faults: []
            expect: {verdict: held}
        """
    )
    base, other = campaign.plans
    assert base.producers[0].settings == {"acks": "all", "retries": 3}
    assert other.producers[0].settings == {"acks": "1", "retries": 3}
    assert (base.cluster.controller, other.cluster.controller) == (1, 2)
    assert (len(base.faults), len(other.faults)) == (1, 0)
    assert other.expect == Expectation(verdict="held")
    assert (campaign.description, other.description) == ("", "Another one.")


def test_variants_keep_the_order_of_the_file() -> None:
    names = [loaded.variant for loaded in load("variants: {z: {}, a: {}, m: {}}").plans]
    assert names == [None, "z", "a", "m"]


def test_the_key_only_selects_variants() -> None:
    campaign = load(
        """\
        workload: {duration: 10s}
        script:
          - {note: all, at: 1s}
          - {note: base, at: 1s, only: base}
          - {note: a, at: 1s, only: [a]}
          - {note: both, at: 1s, only: [a, base]}
        faults:
          - {only: b, at: 1s, do: controller_failover}
        variants: {a: {}, b: {}}
        """
    )
    assert [[step.note for step in loaded.script] for loaded in campaign.plans] == [
        ["all", "base", "both"],
        ["all", "a", "both"],
        ["all"],
    ]
    assert [len(loaded.faults) for loaded in campaign.plans] == [0, 0, 1]


def test_steps_of_other_variants_may_refer_to_names_that_only_those_have() -> None:
    assert load(
        """\
        script: [{only: big, do: {broker_crash: {broker: 3}}}]
        variants: {big: {cluster: {brokers: 4}}}
        """
    ).plans


def test_an_override_applies_to_the_base_and_all_variants() -> None:
    campaign = load(
        """\
        kafka: 0.11
        settings: {acks: 0}
        cluster: {topics: [{name: t, settings: {min.insync.replicas: 1}}]}
        workload: {duration: 10s, producers: [{rate: 10/s, settings: {acks: 1}}]}
        variants: {new: {kafka: "2.4", settings: {acks: 1}}}
        """,
        "acks=all",
        "min.insync.replicas=2",
        "kafka=2.0",
        "workload.producers.0.rate=20/s",
        "cluster.brokers=5",
        "behaviours.follower_truncation=high_watermark",
        "name=renamed",
        "expect.lost=[m1, m2]",
    )
    assert campaign.name == "renamed"
    for loaded in campaign.plans:
        assert loaded.kafka == "2.0"
        assert loaded.producers[0].settings == {"acks": "all"}
        assert loaded.producers[0].interval_us == 50 * US_PER_MS
        assert loaded.cluster.settings == {"min.insync.replicas": 2}
        assert loaded.cluster.topics[0].settings == {}
        assert len(loaded.cluster.brokers) == 5
        assert loaded.behaviours == {"follower_truncation": "high_watermark"}
        assert loaded.expect.lost == ("m1", "m2")


def test_an_override_creates_missing_keys() -> None:
    loaded = plan(
        "workload: {duration: 5s}\ncluster:\n  topics: [{name: t}]\n", "workload.producers.0.rate=1/s"
    )
    assert loaded.producers[0].name == "producer-0"
    loaded = plan("cluster: {topics: [{name: t}]}", "cluster.topics.0.settings.min.insync.replicas=2")
    assert loaded.cluster.topics[0].settings == {"min.insync.replicas": 2}
    assert plan("kafka: '2.4'", "kafka='0.11'").kafka == "0.11"


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("acks", "write key=value"),
        ("=1", "write key=value"),
        ("acks=7", "acks: `7` is not one of 0, 1, all"),
        ("acks=", "acks: there is no value"),
        ("aks=1", "neither a setting nor a key of a campaign: `aks`; did you mean `acks`?"),
        ("cluster.brokrs=3", "unknown key `brokrs`; did you mean `brokers`?"),
        ("cluster.brokers=two", "expected a whole number, not `two`"),
        ("cluster.brokers.0.rack=a", "`cluster.brokers` is `3` here, and has no `0`"),
        ("cluster.topics.2.name=u", "`cluster.topics` is a list: write a number from 0 to 1, not `2`"),
        ("cluster.topics.x.name=u", "`cluster.topics` is a list: write a number from 0 to 1, not `x`"),
        ("kafka=0.9", "release `0.9` is not modelled"),
        ("variants.v.kafka=0.11", "an option applies to all variants"),
        ("expect.lost=[a", "not valid YAML"),
        ("expect.lost=[a] b", "not valid YAML"),
        (f"cluster.{'a.' * 5_000}a=1", "more than 64 levels deep"),
        ("description=\ud800", "characters that cannot be printed"),
    ],
)
def test_an_invalid_option_is_reported_with_its_reason(option: str, message: str) -> None:
    text = "cluster: {brokers: 3, topics: [{name: t}]}\nvariants: {v: {kafka: '2.0'}}\n"
    (problem,) = problems(text, option)
    assert problem.startswith("--set: ")
    assert message in problem
    assert problem.isprintable()


def test_latest_is_the_newest_release_of_the_model_and_plans_have_its_number() -> None:
    assert plan("kafka: latest").kafka == NEWEST_RELEASE


NEW_AND_OLD = """\
kafka: "2.4"
variants:
  idempotent:
    settings: {enable.idempotence: true}
  plain: {}
"""


def test_an_option_has_to_suit_the_named_variants() -> None:
    campaign = load_text(NEW_AND_OLD, "some.yaml", ["kafka=0.10.2"], ["base", "plain"])
    assert [(plan.variant, plan.kafka) for plan in campaign.plans] == [(None, "0.10.2"), ("plain", "0.10.2")]


@pytest.mark.parametrize("named", [("idempotent",), ("plain", "idempotent")])
def test_an_option_that_does_not_suit_a_named_variant_is_refused(named: tuple[str, ...]) -> None:
    with pytest.raises(CampaignError, match=r"no enable\.idempotence.*in variant idempotent"):
        load_text(NEW_AND_OLD, "some.yaml", ["kafka=0.10.2"], named)


def test_a_mistake_in_the_file_is_reported_whichever_variants_are_named() -> None:
    with pytest.raises(CampaignError, match=r"no enable\.idempotence"):
        load_text(NEW_AND_OLD.replace("2.4", "0.10.2"), "some.yaml", (), ["plain"])

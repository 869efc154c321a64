"""Cluster files: `cluster: FILE` in a campaign, and the option `cluster=FILE`."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harrow.campaigns.language.loader import Campaign, CampaignError, load_campaign, load_text
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.language.yaml_positions import MAX_BYTES
from harrow.campaigns.record.campaign_copy import campaign_copy
from harrow.campaigns.sweep.definition import Vary, define, load_stored_cell
from harrow.cluster_model.release.switch import DEFAULT_RELEASE
from harrow.cluster_model.topology import PARTITIONS_MAX

SHOP = """\
kafka: "3.9"
settings: {min.insync.replicas: 2, acks: all}
brokers:
  - {id: 1, rack: a}
  - {id: 2, rack: b}
  - {id: 3, rack: c}
topics:
  - {name: orders, partitions: 3, settings: {min.insync.replicas: 1}}
"""
CAMPAIGN = """\
name: restart
cluster: shop.yaml
workload: {duration: 5s, producers: [{name: p}]}
"""


def put(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Campaign]:
    """Return a function that loads a campaign beside the cluster file ``shop.yaml``."""
    put(tmp_path / "shop.yaml", SHOP)

    def load(text: str, *overrides: str) -> Campaign:
        put(tmp_path / "restart.yaml", text)
        return load_campaign(tmp_path / "restart.yaml", overrides)

    return load


def mistakes(load: Callable[..., Campaign], text: str, *overrides: str) -> list[str]:
    with pytest.raises(CampaignError) as refused:
        load(text, *overrides)
    return [
        f"{Path(problem.file).name}:{problem.line}:{problem.column}: {problem.message}"
        for problem in refused.value.problems
    ]


def test_a_campaign_has_the_release_brokers_topics_and_settings_of_its_cluster_file(
    load: Callable[..., Campaign],
) -> None:
    (plan,) = load(CAMPAIGN).plans
    assert plan.kafka == "3.9"
    assert [(broker.id, broker.rack) for broker in plan.cluster.brokers] == [(1, "a"), (2, "b"), (3, "c")]
    assert plan.cluster.partition_names() == ("orders-0", "orders-1", "orders-2")
    assert plan.cluster.settings == {"min.insync.replicas": 2}
    assert plan.producers[0].settings == {"acks": "all"}


def test_the_keys_of_a_campaign_replace_those_of_its_cluster_file(load: Callable[..., Campaign]) -> None:
    text = CAMPAIGN.replace(
        "shop.yaml", "{file: shop.yaml, controller: 2, topics: [{name: t}]}\nsettings: {acks: 1}"
    )
    (plan,) = load(text).plans
    assert plan.cluster.controller == 2
    assert plan.cluster.partition_names() == ("t-0",)
    assert plan.producers[0].settings == {"acks": "1"}
    assert plan.cluster.settings == {"min.insync.replicas": 2}


def test_a_variant_may_change_the_cluster_or_have_a_file_of_its_own(
    tmp_path: Path, load: Callable[..., Campaign]
) -> None:
    put(tmp_path / "small.yaml", "brokers: 1\ntopics: [{name: orders}]\n")
    text = f"{CAMPAIGN}variants: {{led: {{cluster: {{controller: 3}}}}, small: {{cluster: small.yaml}}}}"
    base, led, small = load(text).plans
    assert [len(plan.cluster.brokers) for plan in (base, led, small)] == [3, 3, 1]
    assert (base.cluster.controller, led.cluster.controller) == (None, 3)
    # Nothing of the campaign's own file is left.
    assert (small.cluster.settings, small.producers[0].settings) == ({}, {})


def test_an_option_runs_any_campaign_on_a_cluster_file(tmp_path: Path, load: Callable[..., Campaign]) -> None:
    text = """\
name: any
kafka: "2.4"
settings: {acks: 1, retries: 3}
cluster: {brokers: 5, controller: 4, topics: [{name: t}]}
workload: {duration: 5s, producers: [{name: p, settings: {acks: 0}}]}
"""
    (plan,) = load(text, f"cluster={tmp_path / 'shop.yaml'}").plans
    assert (plan.kafka, plan.cluster.controller) == ("3.9", None)
    assert plan.cluster.partition_names() == ("orders-0", "orders-1", "orders-2")
    assert plan.producers[0].settings == {"acks": "all", "retries": 3}
    # The settings of a topic in the file stay.
    assert plan.cluster.topics[0].settings == {"min.insync.replicas": 1}


def test_topics_stay_those_of_the_campaign_if_the_cluster_file_has_none(
    tmp_path: Path, load: Callable[..., Campaign]
) -> None:
    put(tmp_path / "bare.yaml", "brokers: 4\n")
    text = "cluster: {brokers: 2, controller: 1, topics: [{name: mine}]}"
    (plan,) = load(text, f"cluster={tmp_path / 'bare.yaml'}").plans
    assert (len(plan.cluster.brokers), plan.cluster.controller) == (4, None)
    assert plan.cluster.partition_names() == ("mine-0",)


def test_an_option_leaves_nothing_of_the_cluster_file_that_a_campaign_or_a_variant_names(
    tmp_path: Path, load: Callable[..., Campaign]
) -> None:
    put(tmp_path / "bare.yaml", "brokers: 4\n")
    text = CAMPAIGN.replace("shop.yaml", "{file: shop.yaml, controller: 2}\nsettings: {retries: 3}")
    text += "variants: {again: {cluster: shop.yaml, settings: {linger.ms: 5}}}\n"
    base, again = load(text, f"cluster={tmp_path / 'bare.yaml'}").plans
    for plan, own in ((base, {"retries": 3}), (again, {"retries": 3, "linger.ms": 5})):
        assert (plan.kafka, len(plan.cluster.brokers)) == (DEFAULT_RELEASE, 4)
        assert plan.cluster.settings == {}
        # What the campaign itself sets stays.
        assert plan.producers[0].settings == own
        assert "orders" not in {topic.name for topic in plan.cluster.topics}


def test_expectations_are_about_the_release_of_the_cluster_file_that_an_option_replaces(
    tmp_path: Path, load: Callable[..., Campaign]
) -> None:
    put(tmp_path / "old.yaml", 'kafka: "2.4"\nbrokers: 3\n')
    (plan,) = load(CAMPAIGN, f"cluster={tmp_path / 'old.yaml'}").plans
    assert (plan.kafka, plan.written_for) == ("2.4", "Kafka 3.9")


def test_other_options_change_the_cluster_file_in_any_order(
    tmp_path: Path, load: Callable[..., Campaign]
) -> None:
    for options in (
        ["acks=1", f"cluster={tmp_path / 'shop.yaml'}"],
        [f"cluster={tmp_path / 'shop.yaml'}", "acks=1"],
    ):
        (plan,) = load("name: x", *options).plans
        assert plan.producers[0].settings == {"acks": "1"}


def test_a_cluster_file_closes_the_choices_of_a_swarm(tmp_path: Path, load: Callable[..., Campaign]) -> None:
    swarm = """\
workload: {duration: 5s}
swarm:
  kafka: ["2.4", "3.9"]
  brokers: 1..5
  partitions: 1..4
  settings: {acks: [1, all], retries: [0, 5]}
"""
    (plan,) = load(swarm, f"cluster={tmp_path / 'shop.yaml'}").plans
    assert plan.swarm is not None
    assert (plan.swarm.releases, plan.swarm.brokers, plan.swarm.partitions) == ((), None, None)
    assert plan.swarm.settings == (("retries", (0, 5)),)


def test_a_mistake_in_a_cluster_file_has_its_place_there(
    tmp_path: Path, load: Callable[..., Campaign]
) -> None:
    put(tmp_path / "shop.yaml", SHOP.replace("id: 2", "id: two").replace("partitions", "partition"))
    wrong = mistakes(load, CAMPAIGN)
    assert [mistake.split(" ")[0] for mistake in wrong] == ["shop.yaml:5:10:", "shop.yaml:8:20:"]


def test_a_name_that_the_cluster_lacks_is_reported_with_both_places(load: Callable[..., Campaign]) -> None:
    text = """\
name: lacks
cluster: shop.yaml
workload:
  duration: 5s
  producers: [{name: p, partitions: [orders-3, t-0]}]
faults:
  - at: 1s
    do: {broker_crash: {broker: 0}}
  - at: 2s
    do: {broker_crash: {broker: leader of t-0}}
"""
    assert [
        mistake.replace(mistake[mistake.find("(") + 1 : mistake.find("shop.yaml")], "")
        for mistake in mistakes(load, text)
    ] == [
        "restart.yaml:5:38: unknown partition `orders-3`; topic orders has orders-0 to orders-2 (shop.yaml:7)",
        "restart.yaml:5:48: unknown partition `t-0`; known: orders-0, orders-1, orders-2 (shop.yaml:7)",
        "restart.yaml:8:33: unknown broker 0; the brokers are 1, 2, 3 (shop.yaml:3)",
        "restart.yaml:10:33: unknown partition `t-0`; known: orders-0, orders-1, orders-2 (shop.yaml:7)",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("brokers: 3\ncluster: restart.yaml\n", "shop.yaml:2:1: a cluster file names no other file"),
        (
            "cluster: {brokers: 3}\n",
            "shop.yaml:1:1: the keys of a cluster file have no section: remove `cluster:` and write its keys at the top",
        ),
        (
            "broker.id=1\n",
            "shop.yaml:1:1: a cluster file is a mapping (`key: value`); `harrow import` makes one",
        ),
        ("apiVersion: v1\nkind: Kafka\n", "shop.yaml:1:1: it is no cluster file; `harrow import` makes one"),
        ("services: {}\nbrokers: 3\n", "shop.yaml:1:1: it is no cluster file; `harrow import` makes one"),
        ("brokers: 3\nworkload: {}\n", "shop.yaml:2:1: `workload` belongs to a campaign"),
        ("brokers: 3\nbootstrap: b:9092\n", "shop.yaml:2:1: `bootstrap` belongs to a target file"),
        ("brokers: 3\ntopic: []\n", "shop.yaml:2:1: unknown key `topic`; did you mean `topics`?"),
        ("brokers: !!python/object:os.system x\n", "shop.yaml:1:10: the tag"),
        ("- brokers\n", "shop.yaml:1:1: a cluster file is a mapping"),
        ("brokers: [\n", "shop.yaml:2:1: not valid YAML"),
        ("", "shop.yaml:1:1: the file is empty"),
        ("a: &a [*a]\n", "shop.yaml:1:"),
        (
            "x" * (MAX_BYTES + 1),
            "restart.yaml:2:10: cluster: `shop.yaml` cannot be read: it is larger than 1 MiB",
        ),
        ("\xe9", "restart.yaml:2:10: cluster: `shop.yaml` cannot be read: it is not UTF-8: the byte 0xe9"),
        ("\xff\xfeb\x00", "restart.yaml:2:10: cluster: `shop.yaml` cannot be read: it is UTF-16"),
    ],
    ids=range(16),
)
def test_a_file_that_describes_no_cluster_gives_one_line(
    tmp_path: Path, load: Callable[..., Campaign], content: str, message: str
) -> None:
    (tmp_path / "shop.yaml").write_bytes(content.encode("latin-1"))
    (mistake,) = mistakes(load, CAMPAIGN)
    assert mistake.startswith(message)


def test_a_cluster_file_is_a_regular_file_and_no_link_leads_out_of_the_folder(
    tmp_path: Path, load: Callable[..., Campaign]
) -> None:
    outside = tmp_path / "outside.yaml"
    put(outside, SHOP)
    folder = tmp_path / "inside"
    folder.mkdir()
    (folder / "linked.yaml").symlink_to(outside)
    (folder / "turn.yaml").symlink_to("turn.yaml")
    os.mkfifo(folder / "pipe.yaml")
    for name, reason in {
        "linked.yaml": "a link leads out of the campaign's folder",
        "turn.yaml": "",
        "pipe.yaml": "it is not a file",
        "missing.yaml": "No such file",
        "/dev/zero": "it is not a file",
        ".": "Is a directory",
        "../missing.yaml": "No such file",
    }.items():
        with pytest.raises(CampaignError) as refused:
            load_text(f"cluster: {name}", str(folder / "any.yaml"))
        (problem,) = refused.value.problems
        assert problem.message.startswith(f"cluster: `{name}` cannot be read: {reason}")
        assert (problem.line, problem.column) == (1, 10)
    assert load_text("cluster: ../outside.yaml", str(folder / "any.yaml")).plans
    (folder / "beside.yaml").symlink_to("real.yaml")
    put(folder / "real.yaml", SHOP)
    assert load_text("cluster: beside.yaml", str(folder / "any.yaml")).plans


def test_a_recorded_run_has_its_cluster_inline(tmp_path: Path, load: Callable[..., Campaign]) -> None:
    for campaign, overrides in (
        (load(CAMPAIGN), ()),
        (
            load("name: restart\n", f"cluster={tmp_path / 'shop.yaml'}"),
            (f"cluster={tmp_path / 'shop.yaml'}",),
        ),
    ):
        (plan,) = campaign.plans
        text = campaign_copy(campaign, plan, 0, overrides)
        (again,) = load_text(text, "elsewhere.yaml", cluster_files={}).plans
        assert again.digest() == plan.digest()
        assert load_text(campaign_text(plan), "x.yaml").plans[0].digest() == plan.digest()


def test_a_sweep_keeps_the_cluster_files_of_its_campaign_and_its_grid(
    tmp_path: Path, load: Callable[..., Campaign]
) -> None:
    small = tmp_path / "small.yaml"
    put(small, "brokers: 1\ntopics: [{name: t}]\n")
    values = (str(tmp_path / "shop.yaml"), str(small))
    sweep = define([(load(CAMPAIGN), "restart")], range(1), varies=[Vary(key="cluster", values=values)])
    (source,) = sweep.sources
    for cell in sweep.cells:
        # The files may have changed since.
        put(small, "brokers: [")
        (plan,) = load_stored_cell(source, "elsewhere/x.yaml", cell.settings).plans
        assert plan.digest() == cell.digest
    with pytest.raises(CampaignError, match="is not stored with this campaign"):
        load_stored_cell(source, "elsewhere/x.yaml", [("cluster", "/etc/hostname")])
    assert f"--set cluster={small}" in sweep.reproduce(sweep.cells[1], 0)


@pytest.mark.parametrize("partitions", [3, 500])
def test_a_cluster_file_has_as_many_topics_as_a_campaign(
    tmp_path: Path, load: Callable[..., Campaign], partitions: int
) -> None:
    topics = "".join(f"  - {{name: topic-{number}}}\n" for number in range(partitions))
    put(tmp_path / "shop.yaml", f"brokers: 3\ntopics:\n{topics}")
    if partitions > PARTITIONS_MAX:
        (mistake,) = mistakes(load, CAMPAIGN)
        assert mistake.endswith(f"too many partitions in all: at most {PARTITIONS_MAX}")
    else:
        (plan,) = load(CAMPAIGN).plans
        assert len(plan.cluster.topics) == partitions

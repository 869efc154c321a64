"""A note reports keys of a campaign without effect, such as keys for ZooKeeper in KRaft."""

import pytest

from harrow.campaigns.language.library_index import library_names, resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.language.problem import UnsuitedError
from harrow.cluster_model.topology import node_id, quorum_counterpart
from tests.campaigns.language.campaign_texts import load

CAMPAIGN = """
kafka: "2.4"
settings: {zookeeper.session.timeout.ms: 4s, control.plane.listener.name: CONTROL_PLANE, acks: all}
cluster: {zookeeper: {servers: 3}}
workload: {duration: 5s}
faults: [{at: 1s, do: {broker_crash: {broker: zookeeper-2}}}]
"""


def notes(text: str, *overrides: str) -> list[tuple[int, str]]:
    return [(note.line, note.message) for note in load(text, *overrides).notes]


def test_a_key_that_has_an_effect_is_not_noted() -> None:
    assert notes(CAMPAIGN) == []
    assert notes(CAMPAIGN, "kafka=3.9", "cluster.metadata=zookeeper") == []


def test_keys_about_zookeeper_are_ignored_in_kraft() -> None:
    why = "Kafka 3.9 keeps its metadata in KRaft here"
    assert notes(CAMPAIGN, "kafka=3.9") == [
        (3, f"zookeeper.session.timeout.ms is ignored: {why}"),
        (3, f"control.plane.listener.name is ignored: {why} (brokers refuse to start with it)"),
        (4, f"cluster.zookeeper is ignored: {why}"),
        (6, "there is no ZooKeeper: zookeeper-2 stands for controller-3001 of the quorum"),
    ]


def test_automatic_commits_that_all_share_hold_only_for_members_of_groups() -> None:
    text = """
kafka: "3.9"
settings: {enable.auto.commit: true}
workload: {duration: 5s, consumers: [{name: plain}, {name: member, settings: {group.id: g}}]}
"""
    assert notes(text) == [(3, "enable.auto.commit holds only for consumers with a group.id")]
    (plan,) = load(text).plans
    settings = {consumer.name: consumer.settings for consumer in plan.consumers}
    assert settings == {"plain": {}, "member": {"enable.auto.commit": True, "group.id": "g"}}
    (again,) = load(campaign_text(plan)).plans
    assert again.digest() == plan.digest()


@pytest.mark.parametrize(("kafka", "refuses"), [("2.4", True), ("4.3", False)])
def test_brokers_without_a_rack_beside_others_are_noted(kafka: str, refuses: bool) -> None:
    brokers = "brokers: [{id: 0, rack: a}, {id: 1}, {id: 2, rack: b}, {id: 3}]"
    ((line, message),) = notes(f'kafka: "{kafka}"\ncluster: {{{brokers}}}\n')
    assert line == 2
    assert message.startswith("no `rack` for brokers 1, 3: replicas are placed")
    assert ("ZooKeeper" in message) == refuses
    placed = "topics: [{name: t, assignment: [[0, 1]]}]"
    assert notes(f'kafka: "{kafka}"\ncluster: {{{brokers}, {placed}}}\n') == []


def test_a_setting_of_a_removed_control_plane_is_ignored() -> None:
    assert notes(CAMPAIGN, "kafka=4.0")[:2] == [
        (3, "zookeeper.session.timeout.ms is ignored: Kafka 4.0 no longer has it"),
        (3, "control.plane.listener.name is ignored: Kafka 4.0 no longer has it"),
    ]


def test_keys_about_kraft_are_ignored_with_zookeeper() -> None:
    text = (
        "settings: {broker.session.timeout.ms: 4s}\ncluster: {kraft: {voters: 5}}\nworkload: {duration: 5s}\n"
    )
    why = "Kafka 3.9 keeps its metadata in ZooKeeper here"
    assert notes(text, "kafka=3.9", "cluster.metadata=zookeeper") == [
        (1, f"broker.session.timeout.ms is ignored: {why}"),
        (2, f"cluster.kraft is ignored: {why}"),
    ]
    assert notes(text, "kafka=latest") == []


@pytest.mark.parametrize("release", ["4.0", "4.3"])
def test_every_campaign_of_the_library_runs_without_zookeeper_or_gives_a_reason(release: str) -> None:
    unsuited = []
    for name in library_names():
        for path in resolve(name):
            try:
                assert load_campaign(path, [f"kafka={release}"]).plans
            except UnsuitedError as error:
                unsuited += [(name, problem.message) for problem in error.problems]
    why = f"message rule `notified` never matches: Kafka {release} keeps its metadata in KRaft here"
    assert unsuited == [
        ("isr-change-notification", why),
        ("isr-change-notification", f"{why} (in variant batched)"),
    ]


@pytest.mark.parametrize(
    ("server", "quorum", "expected"),
    [
        (1, (3_000, 3_001, 3_002), 3_000),
        (3, (3_000, 3_001, 3_002), 3_002),
        (4, (3_000, 3_001, 3_002), None),
        (2, (0, 1, 2), 1),
        (1, (), None),
    ],
)
def test_in_kraft_a_zookeeper_server_stands_for_the_voter_in_its_place(
    server: int, quorum: tuple[int, ...], expected: int | None
) -> None:
    node = node_id(f"zookeeper-{server}")
    assert node is not None
    assert quorum_counterpart(node, quorum) == expected


def test_a_zookeeper_server_stands_for_no_voter_if_there_is_zookeeper() -> None:
    servers = tuple(node for number in (1, 2, 3) if (node := node_id(f"zookeeper-{number}")) is not None)
    assert [quorum_counterpart(server, servers) for server in servers] == [None, None, None]

"""Which probes a run can reach follows from its control plane, groups and transactions."""

from collections.abc import Sequence
from typing import Any

import pytest

from harrow.campaigns.language.plan_reach import reach_of, reach_of_all
from harrow.campaigns.probes.probes import PROBES, in_reach, never_reached
from harrow.campaigns.probes.reach import ProbeReach
from harrow.campaigns.record.report import document, run_as_mapping
from harrow.checks.finding import HELD
from harrow.cluster_model.release.profiles import SWITCHES
from harrow.cluster_model.topology import CONSUMER_OFFSETS, KRAFT, TRANSACTION_STATE, ZOOKEEPER
from tests.campaigns.language.campaign_texts import load, plan, problems
from tests.campaigns.record.run_results import run_result
from tests.campaigns.sweep.sweep_campaigns import TEXT, definition
from tests.scenarios.library_plans import library_plans

IN_ZOOKEEPER = 'kafka: "2.4"\n'
IN_KRAFT = 'kafka: "4.0"\n'
PRODUCER = "workload: {duration: 1s, producers: [{rate: 1/s}]}\n"
GROUP = "workload: {duration: 1s, consumers: [{settings: {group.id: g}}]}\n"
BY_COORDINATOR = GROUP.replace("group.id: g", "group.id: g, group.protocol: consumer")
TRANSACTIONS = "workload: {duration: 1s, producers: [{rate: 1/s, settings: {transactional.id: x}}]}\n"


def reached_by(text: str) -> tuple[str, ...]:
    return in_reach(reach_of(plan(text)))


@pytest.mark.parametrize(
    ("text", "within", "beyond"),
    [
        (IN_ZOOKEEPER, "stale-broker-epoch-refused", "registration-refused"),
        (IN_ZOOKEEPER, "controller-lost-its-session", "uncommitted-metadata-truncated"),
        (IN_KRAFT, "registration-refused", "stale-broker-epoch-refused"),
        ('kafka: "4.3"\n', "elr-member-elected", "controller-lost-its-session"),
        ('kafka: "4.3"\n', "last-known-leader-elected", "stale-controller-refused"),
        (IN_KRAFT, "quorum-majority-lost", "elr-member-elected"),
        ('kafka: "3.6"\n', "ineligible-replica-refused", "quorum-majority-lost"),
        ('kafka: "3.6"\nbehaviours: {check_quorum: true}\n', "quorum-majority-lost", "elr-member-elected"),
        ('kafka: "2.8"\n', "alter-partition-fenced", "ineligible-replica-refused"),
        (IN_ZOOKEEPER, "isr-write-refused", "alter-partition-outdated"),
        (
            'kafka: "3.6"\ncluster: {metadata: zookeeper}\n',
            "ineligible-replica-refused",
            "last-known-leader-elected",
        ),
        (IN_KRAFT + GROUP, "group-rebalanced", "member-asked-to-revoke"),
        (IN_KRAFT + BY_COORDINATOR, "member-asked-to-revoke", "transaction-timed-out"),
        (IN_KRAFT + BY_COORDINATOR, "static-member-unreleased", "producer-fenced"),
        (IN_KRAFT + PRODUCER, "session-expired", "group-rebalanced"),
        (IN_KRAFT + PRODUCER, "alter-partition-fenced", "transaction-timed-out"),
        (IN_KRAFT + GROUP, "group-rebalanced", "producer-fenced"),
        (IN_KRAFT + GROUP, "member-session-expired", "coordinator-moved-with-pending-offsets"),
        (IN_KRAFT + TRANSACTIONS, "producer-fenced", "member-fenced"),
        (IN_KRAFT + TRANSACTIONS, "lso-held-back", "coordinator-moved-with-pending-offsets"),
    ],
)
def test_a_plan_reaches_the_probes_of_its_cluster_and_clients(text: str, within: str, beyond: str) -> None:
    reached = reached_by(text)
    assert within in reached
    assert beyond not in reached


def test_a_swarm_reaches_everything_that_one_of_its_draws_can() -> None:
    swarm_plan = plan("swarm: {kafka: ['2.4', '4.0'], brokers: 3..3}\n")
    assert reach_of(swarm_plan).control_planes == {ZOOKEEPER, KRAFT}
    assert reach_of(plan("swarm: {kafka: ['2.4', '2.8'], brokers: 3..3}\n")).control_planes == {ZOOKEEPER}
    assert "alter-partition-outdated" in reached_by("swarm: {kafka: ['2.0', '2.8'], brokers: 3..3}\n")
    assert "alter-partition-outdated" not in reached_by("swarm: {kafka: ['2.0', '2.4'], brokers: 3..3}\n")
    protocols = "swarm: {brokers: 3..3, settings: {group.protocol: [classic, consumer]}}\n"
    assert "member-asked-to-revoke" in reached_by(IN_KRAFT + GROUP + protocols)


def test_campaigns_together_reach_everything_that_one_of_them_can() -> None:
    plans = [plan(text) for text in (IN_ZOOKEEPER + GROUP, IN_KRAFT + TRANSACTIONS)]
    joint = ProbeReach(
        control_planes=frozenset({ZOOKEEPER, KRAFT}), topics=frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE})
    )
    reach = reach_of_all(plans)
    assert (reach.control_planes, reach.topics) == (joint.control_planes, joint.topics)
    assert set(PROBES) - set(in_reach(reach)) == {
        *("elr-member-elected", "last-known-leader-elected"),
        *("member-asked-to-revoke", "static-member-unreleased"),
    }
    newest_release = plan('kafka: "4.3"\n' + BY_COORDINATOR)
    assert in_reach(reach_of_all([*plans, newest_release])) == tuple(PROBES)


def test_unknown_behaviours_of_runs_may_reach_any_probe() -> None:
    joint = ProbeReach(
        control_planes=frozenset({ZOOKEEPER, KRAFT}), topics=frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE})
    )
    assert in_reach(joint) == tuple(PROBES)
    assert in_reach(reach_of(plan(IN_ZOOKEEPER)) | joint) == tuple(PROBES)
    assert in_reach(ProbeReach()) == ()


def test_a_probe_needs_its_switch_on_releases_that_lack_it() -> None:
    switches = {probe.switch for probe in PROBES.values() if probe.switch is not None}
    assert switches <= SWITCHES.keys()
    assert all(SWITCHES[switch].history()[0] == ("", False) for switch in switches)


def test_every_probe_can_be_reached_with_some_control_plane() -> None:
    assert all(probe.control_planes() for probe in PROBES.values())


def test_library_campaigns_reach_their_aims() -> None:
    aiming = [each for each in library_plans().values() if each.swarm is not None and each.swarm.aims]
    assert aiming
    for each in aiming:
        assert each.swarm is not None
        assert each.swarm.aims is not None
        assert {aim.probe for aim in each.swarm.aims.kinds} <= set(in_reach(reach_of(each)))


# Probes without a run that reaches them


def test_a_document_lists_the_probes_that_its_runs_could_have_reached() -> None:
    run = run_as_mapping(run_result(), "harrow run c")
    assert (run["metadata"], run["internal_topics"]) == (ZOOKEEPER, [])
    within = ProbeReach(control_planes=frozenset({ZOOKEEPER}))
    assert document([run])["probes_never_reached"] == list(never_reached([run["probes"]], in_reach(within)))
    other: dict[str, Any] = {**run, "metadata": KRAFT, "internal_topics": [CONSUMER_OFFSETS]}
    names = document([run, other])["probes_never_reached"]
    assert {"stale-broker-epoch-refused", "registration-refused", "group-rebalanced"} <= set(names)
    assert "producer-fenced" not in names


def test_a_document_lists_all_probes_if_its_runs_have_no_control_plane() -> None:
    assert document([{"verdict": HELD, "probes": {}}])["probes_never_reached"] == list(PROBES)


@pytest.mark.parametrize(
    ("text", "beyond"),
    [
        (TEXT, ("registration-refused", "group-rebalanced", "transaction-timed-out")),
        (TEXT.replace('"2.4"', '"4.0"'), ("stale-controller-refused", "controller-lost-its-session")),
    ],
)
def test_a_sweep_looks_for_the_probes_that_its_cells_can_reach(text: str, beyond: Sequence[str]) -> None:
    assert definition(text=text).probes() == reached_by(text)
    assert not set(beyond) & set(definition(text=text).probes())


# Campaigns that require probes


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            f"{IN_KRAFT}expect: {{probes: [truncated, stale-broker-epoch-refused]}}\n",
            "2:30: stale-broker-epoch-refused is never reached: it needs ZooKeeper, and Kafka 4.0 keeps its metadata in KRaft here",
        ),
        (
            f"{IN_ZOOKEEPER}expect: {{probes: metadata-snapshot-fetched}}\n",
            "2:18: metadata-snapshot-fetched is never reached: it needs KRaft, and Kafka 2.4 keeps its metadata in ZooKeeper here",
        ),
        (
            'kafka: "3.6"\nexpect: {probes: [elr-member-elected]}\n',
            "2:19: elr-member-elected is never reached: it needs eligible_leader_replicas, which Kafka has since 4.1",
        ),
        (
            f"{IN_ZOOKEEPER}expect: {{probes: [alter-partition-fenced]}}\n",
            "2:19: alter-partition-fenced is never reached: it needs isr_altered_by_controller, which Kafka has since 2.7",
        ),
        (
            f"{IN_KRAFT}{GROUP}expect:\n  probes: [member-asked-to-revoke]\n",
            "4:12: member-asked-to-revoke is never reached: no client has group.protocol=consumer",
        ),
        (
            f"{IN_KRAFT}{PRODUCER}expect:\n  probes: [group-rebalanced]\n",
            "4:12: group-rebalanced is never reached: no client is a member of a group",
        ),
        (
            f"{IN_KRAFT}{GROUP}expect:\n  probes: [producer-fenced]\n",
            "4:12: producer-fenced is never reached: no client has transactions",
        ),
    ],
)
def test_a_required_probe_that_no_run_can_reach_is_a_mistake(text: str, problem: str) -> None:
    assert problems(text) == [problem]


def test_a_probe_may_be_required_if_some_seeds_can_reach_it() -> None:
    text = "swarm: {kafka: ['2.4', '4.0'], brokers: 3..3}\nexpect: {probes: registration-refused}\n"
    assert plan(text).expect.probes == ("registration-refused",)


def test_a_plan_is_left_out_on_a_release_that_cannot_reach_its_required_probe() -> None:
    required = "expect: {probes: [stale-controller-refused]}"
    text = f"{IN_ZOOKEEPER}{PRODUCER}variants: {{strict: {{{required}}}, plain: {{settings: {{acks: 1}}}}}}\n"
    campaign = load(text, "kafka=4.0")
    assert [of_campaign.variant for of_campaign in campaign.plans] == [None, "plain"]
    (note,) = campaign.notes
    assert (note.line, note.column) == (3, 39)
    assert "strict is left out: stale-controller-refused is never reached" in note.message


def test_an_aim_at_a_probe_that_is_out_of_reach_is_noted() -> None:
    aims = "aims: {share: 0.5, any_of: [{probe: stale-controller-refused, brokers: 3..3}]}"
    text = f"{IN_ZOOKEEPER}swarm: {{brokers: 3..3, {aims}}}\n"
    assert load(text).notes == ()
    (note,) = load(text, "kafka=4.0").notes
    assert note.line == 2
    assert note.message.startswith("stale-controller-refused is never reached: it needs ZooKeeper")

"""At its end a run may heal only some brokers, its core. Campaigns set the core, swarms draw the
order in which brokers are considered for it, and shrinking reduces it.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import pytest

from harrow.campaigns.language.loader import CampaignError, load_text
from harrow.campaigns.language.plan import Core, Plan, Swarm, SwarmFaults
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.run.core_recovery import CoreRecovery, recovery_time_us, sufficient_core
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.swarm import draw_for_seed
from harrow.campaigns.search.simpler_cluster import with_defaults, with_fewer_replicas, with_plain_numbers
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.message_rule import DROP, HOLD, REQUEST, RESPONSE, MessageRule
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec, NetworkSpec, ProducerSpec, TopicSpec
from harrow.faults.brokers import BrokerCrash
from tests.cluster_model.sim.test_network import NetworkHarness

# The brokers of a core


@pytest.mark.parametrize(
    ("order", "wanted", "core"),
    [
        ((0, 1, 2), [(0, 1)], (0,)),
        ((2, 1, 0), [(0, 1)], (1,)),
        ((0, 1, 2), [(2,)], (2,)),
        ((0, 1, 2), [(0, 1), (1, 2)], (1,)),
        ((0, 2, 1), [(0, 1), (1, 2)], (0, 2)),
        ((3, 0, 1, 2), [(0,), (1,)], (0, 1)),
        ((2, 0, 1), [], (2,)),
    ],
)
def test_a_core_is_the_smallest_sufficient_set_of_brokers_in_the_healing_order(
    order: Sequence[int], wanted: Sequence[Collection[int]], core: tuple[int, ...]
) -> None:
    assert sufficient_core(order, wanted) == core


# The faults that remain outside the core


def test_a_cut_link_with_an_end_outside_the_core_stays_cut() -> None:
    net = NetworkHarness()
    for link in (("client", "server"), ("client", "other"), ("other", "server")):
        net.network.cut(*link)
    net.network.restore_all_but(frozenset({"other"}))
    assert not net.network.is_cut("client", "server")
    assert net.network.is_cut("other", "client")
    assert net.network.is_cut("server", "other")
    net.network.restore_all()
    assert not net.network.is_cut("server", "other")


@pytest.mark.parametrize(("outside", "passes"), [("other", True), ("server", False)])
@pytest.mark.parametrize("action", [HOLD, DROP])
def test_a_message_rule_with_an_end_outside_the_core_stays(outside: str, passes: bool, action: str) -> None:
    net = NetworkHarness()
    connection = net.connect()
    net.network.add_rule(MessageRule(name="rule", action=action, kind=REQUEST))
    net.network.restore_all_but(frozenset({outside}))
    net.ask(connection, "fetch")
    net.simulator.run_until(1_000)
    assert bool(net.server.received) is passes


def test_held_messages_within_the_core_are_delivered() -> None:
    net = NetworkHarness()
    connection = net.connect()
    net.network.add_rule(MessageRule(name="rule", action=HOLD, kind=REQUEST))
    net.ask(connection, "fetch")
    net.simulator.run_until(1_000)
    assert not net.server.received
    net.network.restore_all_but(frozenset({"other"}))
    net.simulator.run_until(2_000)
    assert net.server.received


@pytest.mark.parametrize("end", ["senders", "receivers"])
@pytest.mark.parametrize(("outside", "passes"), [("client", True), ("server", False)])
@pytest.mark.parametrize("action", [HOLD, DROP])
def test_a_message_rule_ends_if_it_names_no_process_outside_the_core(
    end: str, outside: str, passes: bool, action: str
) -> None:
    """A rule that stayed would also disturb messages with processes outside the core."""
    net = NetworkHarness()
    connection = net.connect()
    kind = REQUEST if end == "receivers" else RESPONSE
    rule = MessageRule(name="rule", action=action, kind=kind)
    setattr(rule, end, frozenset({"server"}))
    net.network.add_rule(rule)
    net.network.restore_all_but(frozenset({outside}))
    assert net.network.disturbs("server") is not passes
    net.ask(connection, "fetch")
    net.reply(connection, "records")
    net.simulator.run_until(1_000)
    delivered = net.server.received if end == "receivers" else net.client.received
    assert bool(delivered) is passes


def test_a_process_is_disturbed_if_a_cut_or_a_message_rule_names_it() -> None:
    net = NetworkHarness()
    net.network.cut("a", "b")
    net.network.add_rule(MessageRule(name="rule", action=DROP, senders=frozenset({"c"})))
    assert [name for name in "abcd" if net.network.disturbs(name)] == ["a", "b", "c"]
    net.network.add_rule(MessageRule(name="rule", action=DROP))
    assert net.network.disturbs("d")


# The recovery time


def cluster(**settings: int) -> Cluster:
    spec = ClusterSpec(
        brokers=(BrokerSpec(id=0), BrokerSpec(id=1)),
        topics=(TopicSpec(name="t"),),
        settings={name.replace("_", "."): value for name, value in settings.items()},
    )
    plan = Plan(campaign="c", cluster=spec)
    return Cluster(spec, "2.4", plan.behaviour_switches(), Choices.from_seed(0))


def recovery_time(cluster: Cluster) -> int:
    configs = [cluster.broker_config(broker) for broker in cluster.processes]
    registration_us = max(map(cluster.control_plane.registration_time_max_us, configs))
    return recovery_time_us(cluster.spec, configs, registration_us)


@pytest.mark.parametrize(
    ("setting", "times"),
    [
        ("zookeeper_session_timeout_ms", 2),
        ("controller_socket_timeout_ms", 1),
        ("request_timeout_ms", 1),
        ("replica_lag_time_max_ms", 3),
    ],
)
def test_the_recovery_time_follows_from_the_settings(setting: str, times: int) -> None:
    one, more = (recovery_time(cluster(**{setting: seconds * 1_000})) for seconds in (20, 25))
    assert more - one == times * 5 * US_PER_SECOND


# Plans and files


def open_plan(*, core: bool, order: tuple[int, ...] | None = None) -> Plan:
    faults = SwarmFaults(
        kinds=(BrokerCrash(broker=0), BrokerCrash(broker=1)), in_play=(0, 2), mean_us=(1_000_000, 9_000_000)
    )
    return Plan(
        campaign="open",
        cluster=ClusterSpec(brokers=(BrokerSpec(id=0),), topics=(TopicSpec(name="t"),)),
        producers=(ProducerSpec(name="p"),),
        core=None if order is None else Core(order=order, within_us=7),
        swarm=Swarm(brokers=(2, 4), duration_us=(1_000_000, 9_000_000), faults=faults, core=core),
    )


def test_a_swarm_draws_the_healing_order_after_everything_else() -> None:
    orders = set()
    for seed in range(60):
        without_core, with_core = (
            draw_for_seed(open_plan(core=False), seed),
            draw_for_seed(open_plan(core=True), seed),
        )
        assert with_core.plan.core is not None
        assert replace(with_core.plan, core=None) == without_core.plan
        order = with_core.plan.core.order
        assert sorted(order) == [broker.id for broker in with_core.plan.cluster.brokers]
        assert with_core.values == (*without_core.values, ("core", " ".join(map(str, order))))
        orders.add(order)
    assert {len(order) for order in orders} == {2, 3, 4}
    assert {(0, 1), (1, 0)} <= orders


def test_drawing_the_healing_order_keeps_the_recovery_time() -> None:
    core = draw_for_seed(open_plan(core=True, order=(0,)), 1).plan.core
    assert core is not None
    assert core.within_us == 7


def test_the_healing_order_leaves_out_brokers_that_were_not_drawn() -> None:
    orders = [draw_for_seed(open_plan(core=False, order=(3, 1)), seed).plan.core for seed in range(30)]
    assert {core.order for core in orders if core is not None} == {(1,), (3, 1)}


@pytest.mark.parametrize(
    ("text", "core"),
    [
        ("", None),
        ("core: {}\n", Core()),
        ("core:\n", Core()),
        ("core: {order: 1}\n", Core(order=(1,))),
        ("core: {within: 90s}\n", Core(within_us=90 * US_PER_SECOND)),
        ("core: {order: [2, 0], within: 90s}\n", Core(order=(2, 0), within_us=90 * US_PER_SECOND)),
    ],
)
def test_a_campaign_file_sets_the_core(text: str, core: Core | None) -> None:
    plan = load_text(f"kafka: 2.4\n{text}", "f.yaml").plans[0]
    assert plan.core == core
    assert load_text(campaign_text(plan), "g.yaml").plans[0].core == core


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("core: {order: [0, 3]}\n", (1, 19), "unknown broker 3; the brokers are 0, 1, 2"),
        ("core: {order: [0, 1, 0]}\n", (1, 22), "broker 0 is listed twice"),
        ("core: {within: 0s}\n", (1, 16), "0s is too short"),
        ("expect: {rules: {unavailable: held}}\n", (1, 18), "unavailable is not judged without a `core`"),
        ("demand: [unavailable]\n", (1, 10), "unavailable is not judged without a `core`"),
        (
            "found: {version: 0.1.0, rule: unavailable, status: open}\n",
            (1, 31),
            "unavailable is not judged without a `core`",
        ),
    ],
)
def test_an_invalid_core_is_reported(text: str, place: tuple[int, int], message: str) -> None:
    with pytest.raises(CampaignError) as caught:
        load_text(text, "f.yaml")
    (problem,) = caught.value.problems
    assert (problem.line, problem.column) == place
    assert message in problem.message


def test_a_campaign_with_a_core_can_expect_its_core_to_be_available() -> None:
    for core in ("core: {}", "swarm: {core: true}"):
        plan = load_text(f"{core}\nexpect: {{rules: {{unavailable: held}}}}\n", "f.yaml").plans[0]
        assert plan.expect.rules == (("unavailable", "held"),)


def test_a_core_need_not_serve_records_deleted_within_a_batch() -> None:
    text = """
        settings: {acks: all, linger.ms: 100ms}
        cluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}
        script:
          - at: 1s
            do: {send: {value: m, count: 4}}
          - when: {acked: [m-0, m-1, m-2, m-3]}
            do: {delete_records: {partition: t-0, offset: 2}}
          - when: {event: {delete_records_answered: {error: NONE}}}
        core: {}
        """
    (plan,) = load_text(dedent(text), "f.yaml").plans
    assert run_plan(plan, 0).verdict.rules["unavailable"].status == "held"


def target_with(replica: Any) -> Any:
    """Return a target whose only partition, led by broker 4, has this replica on every broker."""
    observer = SimpleNamespace(
        controller=lambda: 4,
        is_impaired=lambda _: False,
        broker_state=lambda _: "up",
        partition_state=lambda _: (4, 1, (4, 7)),
        recovery_sets=lambda _: ((4, 7),),
        replica=lambda *_: replica,
    )
    settings = SimpleNamespace(allows_unclean_election=lambda _: False, replicas=(4, 7))
    return SimpleNamespace(
        observer=observer,
        environment=SimpleNamespace(broker_ids=lambda: (4, 2, 7), is_stopping=lambda _: False),
        partition_settings=lambda: {"t-0": settings},
        broker_config=lambda _: None,
        registration_time_max_us=0,
        now_us=5,
        heal_core=lambda _: None,
    )


def test_a_leader_unaware_of_its_election_need_not_serve() -> None:
    # On real brokers, a replica that considers itself a follower does not know the log ends of
    # other replicas.
    unaware = SimpleNamespace(role="follower", leader_epoch=0, isr=(4, 7), remote={}, leo=3, hw=2, records=())
    core = Core(within_us=0)
    service = CoreRecovery(target_with(unaware), small_plan(core), core).run().partitions["t-0"]
    assert (service.leader, service.leader_state, service.isr_end) == (4, "unaware", 0)


def test_a_core_need_not_serve_records_appended_after_its_leader_was_first_observed() -> None:
    records = [(0, "first")]
    leader = SimpleNamespace(
        role="leader", leader_epoch=1, isr=(4, 7), remote={7: 1}, leo=1, hw=1, records=records
    )
    target = target_with(leader)
    reader = SimpleNamespace(consumed=lambda: {"first"}, stop=lambda: None)
    target.clients = SimpleNamespace(start_core_reader=lambda _: reader)

    def advance(until_us: int) -> None:
        target.now_us = until_us
        records.append((leader.leo, f"later-{leader.leo}"))
        leader.leo = leader.hw = len(records)

    target.advance = advance
    core = Core(within_us=US_PER_SECOND)
    service = CoreRecovery(target, small_plan(core), core).run().partitions["t-0"]
    assert len(records) > 1
    assert service.unread == ()


# Smaller plans


def small_plan(core: Core) -> Plan:
    brokers = tuple(BrokerSpec(id=number) for number in (4, 2, 7))
    topic = TopicSpec(name="t", replication_factor=2, assignment=((7, 4),))
    spec = ClusterSpec(brokers=brokers, topics=(topic,), network=NetworkSpec())
    return Plan(campaign="small", cluster=spec, producers=(ProducerSpec(name="producer-0"),), core=core)


def test_removing_a_broker_removes_it_from_the_healing_order() -> None:
    plans = [p for p in with_fewer_replicas(small_plan(Core(order=(2, 7, 4)))) if len(p.cluster.brokers) == 2]
    assert [p.core.order for p in plans if p.core is not None] == [(2, 4), (7, 4), (2, 7)]


def test_renumbering_brokers_renumbers_the_healing_order() -> None:
    renumbered = next(with_plain_numbers(small_plan(Core(order=(2, 7)))))
    assert renumbered.cluster.topics[0].assignment == ((0, 1),)
    assert renumbered.core == Core(order=(2, 0))


def test_shrinking_tries_simpler_cores_and_no_core() -> None:
    cores = [plan.core for plan in with_defaults(small_plan(Core(order=(2, 7), within_us=5)))]
    assert cores[0] is None
    assert cores[1:4] == [Core(within_us=5), Core(order=(2,), within_us=5), Core(order=(2, 7))]


def test_a_default_core_is_written_as_an_empty_mapping() -> None:
    assert "\ncore: {}\n" in campaign_text(small_plan(Core()))
    assert "\ncore: {within: 5s}\n" in campaign_text(small_plan(Core(within_us=5_000_000)))
    assert "\ncore: {order: [2, 7]}\n" in campaign_text(small_plan(Core(order=(2, 7))))

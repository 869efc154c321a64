"""A plan can be written as a campaign file, unless it has a value that no file can express."""

from dataclasses import replace
from textwrap import dedent
from typing import Any

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Expectation, Plan, Step
from harrow.campaigns.language.plan_file import UnwritablePlanError, campaign_text
from harrow.cluster_model.topology import (
    BrokerSpec,
    ClusterSpec,
    ConsumerSpec,
    DiskSpec,
    NetworkSpec,
    ProducerSpec,
    TopicSpec,
)
from harrow.faults.action import Action
from harrow.faults.actions import ElectPreferredLeaders, Expect, RestartProducer, Send, Wait
from harrow.faults.brokers import BrokerCrash
from harrow.faults.condition import Condition
from harrow.faults.control_plane import ControllerFailover
from harrow.faults.event_pattern import EventPattern
from harrow.faults.facts import ReplicaIs
from harrow.faults.injection import At, Every, Injection, Rate, When
from harrow.faults.links import NetworkAckLoss
from harrow.faults.messages import Message, Release
from tests.conditions import condition
from tests.properties.drawn_clusters import HOSTILE

MS = 1_000
SECOND = 1_000_000

BROKERS = tuple(BrokerSpec(id=number) for number in range(3))
CLUSTER = ClusterSpec(brokers=BROKERS, topics=(TopicSpec(name="t", replication_factor=3),))
SMALL = Plan(campaign="small", cluster=CLUSTER, producers=(ProducerSpec(name="producer-0"),))


def script_of(*steps: Step) -> Plan:
    return replace(SMALL, script=steps)


def script_with_actions(*actions: Action) -> Plan:
    return script_of(Step(actions=actions))


def round_trip_text(plan: Plan) -> str:
    """Return the text of a plan after a check of its round trip."""
    text = campaign_text(plan)
    again = load_text(text, "written.yaml").plans[0]
    assert again.digest() == plan.digest()
    assert campaign_text(again) == text
    return text


def section_text(plan: Plan, key: str) -> str:
    """Return one section as text."""
    lines = round_trip_text(plan).splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"{key}:"))
    rest = [number for number, line in enumerate(lines) if number > start and not line.startswith(" ")]
    return "\n".join(lines[start : rest[0] if rest else None]) + "\n"


def test_a_plan_with_every_section_has_its_recorded_text() -> None:
    plan = Plan(
        campaign="golden",
        description="All kinds of things happen here, one after the other, and the reader is told what: " * 2,
        kafka="2.4",
        behaviours={"hw_waits_for_whole_isr": True, "truncation_drops_empty_last_epoch": True},
        cluster=ClusterSpec(
            brokers=(
                BrokerSpec(id=0, rack="a"),
                BrokerSpec(id=1, rack="b", settings={"min.insync.replicas": 2}),
            ),
            topics=(
                TopicSpec(
                    name="t", replication_factor=2, assignment=((0, 1),), settings={"flush.messages": 1}
                ),
                TopicSpec(name="u", partitions=2, replication_factor=1, settings={"flush.messages": 1}),
            ),
            controller=1,
            settings={"replica.lag.time.max.ms": 1_500, "replica.fetch.wait.max.ms": 250},
            network=NetworkSpec(latency_min_us=500, latency_max_us=2_500),
            disk=DiskSpec(writeback_us=None),
            zookeeper_tick_us=SECOND,
        ),
        producers=(
            ProducerSpec(
                name="p",
                settings={"acks": "all"},
                interval_us=100 * MS,
                stop_us=60 * SECOND,
                partitions=("t-0",),
            ),
            ProducerSpec(
                name="q", settings={"acks": "all", "linger.ms": 5}, interval_us=7 * SECOND, stop_us=SECOND
            ),
            ProducerSpec(name="r", settings={"acks": "0"}),
        ),
        consumers=(ConsumerSpec(name="c", settings={"request.timeout.ms": 10_000}, poll_interval_us=SECOND),),
        script=(
            Step(
                note="the beginning: all is well",
                at_us=1_500 * MS,
                actions=(
                    Send(producer="r", value="m0", partition="t-0"),
                    *(Send(producer="p", value=f"v-{number}") for number in range(20)),
                    ElectPreferredLeaders(),
                ),
            ),
            Step(
                after_us=250 * MS,
                when=condition(
                    replicas=(ReplicaIs(partition="t-0", broker=1, leo=2, hw=1),),
                    leader=(("t-0", 1),),
                    acked=("m0",),
                    event=(EventPattern(event="truncate", fields=(("to_offset", 1), ("broker", 1))),),
                ),
                actions=(BrokerCrash(broker=1, kind="power_loss", restart_after=(SECOND, 10 * SECOND)),),
            ),
            Step(when=condition(brokers=((1, "up"),)), actions=(Wait(),)),
        ),
        faults=(
            Injection(timing=At(at_us=(2 * SECOND, 2 * SECOND)), faults=(ControllerFailover(),)),
            Injection(
                timing=When(condition=condition(controller=(0,)), times=2), faults=(BrokerCrash(broker=0),)
            ),
            Injection(
                timing=Every(period_us=10 * SECOND, start_us=0, stop_us=60 * SECOND),
                faults=(ControllerFailover(how="delete_znode"), BrokerCrash(broker="leader of t-0")),
            ),
            Injection(
                timing=Rate(mean_us=5 * SECOND, start_us=SECOND, stop_us=50 * SECOND),
                faults=(NetworkAckLoss(probability=0.25, client="p"),),
            ),
        ),
        duration_us=60 * SECOND,
        script_limit_us=120 * SECOND,
        invariants=("hw-monotonic", "log-matching"),
        demand=("duplicate", "lost-write"),
        expect=Expectation(
            verdict="violated",
            rules=(("lost-write", "violated"),),
            lost=("m0",),
            duplicated=(),
            final=condition(isr=(("t-0", (0, 1)),)),
        ),
    )
    assert round_trip_text(plan) == dedent("""\
        name: golden
        description: >-
          All kinds of things happen here, one after the other, and the reader is told
          what: All kinds of things happen here, one after the other, and the reader is
          told what:
        kafka: "2.4"
        behaviours:
          hw_waits_for_whole_isr: true
          truncation_drops_empty_last_epoch: true
        settings:
          replica.lag.time.max.ms: 1.5s
          replica.fetch.wait.max.ms: 250
          flush.messages: 1
          acks: all
        cluster:
          brokers:
            - {id: 0, rack: a}
            - {id: 1, rack: b, settings: {min.insync.replicas: 2}}
          controller: 1
          topics:
            - {name: t, assignment: [[0, 1]]}
            - {name: u, partitions: 2, replication_factor: 1}
          network: {latency: 500us..2.5ms}
          disk: {writeback: never}
          zookeeper: {tick: 1s}
        workload:
          duration: 60s
          producers:
            - {name: p, rate: 10/s, partitions: [t-0]}
            - {name: q, rate: 1/7s, stop: 1s, settings: {linger.ms: 5}}
            - {name: r, settings: {acks: 0}}
          consumers:
            - {name: c, poll_interval: 1s, settings: {request.timeout.ms: 10s}}
        script:
          - note: "the beginning: all is well"
            at: 1.5s
            do:
              - send: {value: m0, partition: t-0, producer: r}
              - send: {value: v, count: 20, producer: p}
              - elect_preferred_leaders
          - after: 250ms
            when:
              replicas: {t-0: {1: {leo: 2, hw: 1}}}
              leader: {t-0: 1}
              acked: m0
              event: {truncate: {broker: 1, to_offset: 1}}
            do: {broker_crash: {broker: 1, kind: power_loss, restart_after: 1s..10s}}
          - when: {brokers: {1: up}}
        faults:
          - at: 2s
            do: controller_failover
          - when: {controller: 0}
            times: 2
            do: {broker_crash: {broker: 0}}
          - every: 10s
            any_of:
              - controller_failover: {how: delete_znode}
              - broker_crash: {broker: leader of t-0}
          - rate: 12/m
            from: 1s
            until: 50s
            do: {network_ack_loss: {client: p, probability: 0.25}}
        limits: {script: 2m}
        invariants: [hw-monotonic, log-matching]
        demand: [duplicate, lost-write]
        expect:
          verdict: violated
          rules: {lost-write: violated}
          lost: [m0]
          duplicated: []
          final: {isr: {t-0: [0, 1]}}
        """)


@pytest.mark.parametrize(
    ("plan", "key", "text"),
    [
        (SMALL, "cluster", "cluster:\n  brokers: 3\n  topics:\n    - {name: t, replication_factor: 3}\n"),
        (
            script_with_actions(Send(producer="producer-0", value="m0")),
            "script",
            "script:\n  - do: {send: m0}\n",
        ),
        (script_with_actions(), "script", "script:\n  - do: wait\n"),
        (
            script_with_actions(Wait(), ControllerFailover()),
            "script",
            "script:\n  - do:\n      - wait\n      - controller_failover\n",
        ),
        (
            script_with_actions(RestartProducer(producer="producer-0")),
            "script",
            "script:\n  - do: {restart_producer: producer-0}\n",
        ),
        (
            script_of(Step(actions=(), after_us=90 * SECOND)),
            "script",
            "script:\n  - after: 90s\n",
        ),
        (replace(SMALL, producers=()), "workload", "workload:\n  producers: []\n"),
        (replace(SMALL, invariants=()), "invariants", "invariants: none\n"),
        (replace(SMALL, expect=Expectation(lost=())), "expect", "expect:\n  lost: []\n"),
    ],
)
def test_a_section_has_its_shortest_form(plan: Plan, key: str, text: str) -> None:
    assert section_text(plan, key) == text


def test_defaults_are_left_out() -> None:
    assert round_trip_text(SMALL) == dedent("""\
        name: small
        kafka: "2.4"
        cluster:
          brokers: 3
          topics:
            - {name: t, replication_factor: 3}
        """)


def test_comments_are_wrapped() -> None:
    command = "harrow run " + "a/very/long/path/" * 8
    text = campaign_text(SMALL, comments=["word " * 30, command, "two\nlines\x1b", "", f"    {command}"])
    comments = text.partition("name:")[0].splitlines()
    assert comments[:2] == ["# " + "word " * 14 + "word", "# " + "word " * 14 + "word"]
    assert comments[2:] == [
        "# harrow run",
        f"# {'a/very/long/path/' * 8}",
        "# two",
        "# lines\\x1b",
        "#",
        f"#     {command}",
    ]


def test_an_indented_comment_continues_with_a_deeper_indent() -> None:
    comments = campaign_text(SMALL, comments=["  " + "word " * 20]).partition("name:")[0].splitlines()
    assert comments == ["#   " + "word " * 14 + "word", "#     " + "word " * 4 + "word"]


def test_a_variant_can_have_its_own_name() -> None:
    plan = load_text(campaign_text(SMALL, name="smaller"), "written.yaml").plans[0]
    assert plan.campaign == "smaller"
    assert plan.digest() == replace(SMALL, campaign="smaller").digest()


def test_shared_settings_are_written_under_settings() -> None:
    acks: dict[str, Any] = {"acks": "all"}
    producers = tuple(ProducerSpec(name=f"p{number}", settings=acks) for number in range(3))
    special = ProducerSpec(name="q", settings={"acks": "1", "linger.ms": 5})
    consumer = ConsumerSpec(name="c", settings={"retry.backoff.ms": 5})
    plan = replace(SMALL, producers=(*producers, special), consumers=(consumer,))
    assert section_text(plan, "settings") == "settings:\n  acks: all\n"
    assert "- {name: p0}\n" in round_trip_text(plan)
    assert "- {name: q, settings: {acks: 1, linger.ms: 5}}\n" in round_trip_text(plan)
    # Consumers have this setting too, but producers leave it unset.
    assert "- {name: c, settings: {retry.backoff.ms: 5}}\n" in round_trip_text(plan)


@pytest.mark.parametrize(
    ("interval_us", "rate"),
    [
        (100, "10000/s"),
        (100 * MS, "10/s"),
        (333_333, "3/s"),
        (333_334, "1/333.334ms"),
        (5 * SECOND, "12/m"),
        (90 * SECOND, "40/h"),
        (77_777_777, "1/77.777777s"),
        (360_000 * SECOND, "1/100h"),
    ],
)
def test_a_rate_is_written_without_loss(interval_us: int, rate: str) -> None:
    timing = Rate(mean_us=interval_us, start_us=0, stop_us=SECOND)
    plan = replace(SMALL, faults=(Injection(timing=timing, faults=(ControllerFailover(),)),))
    assert f"  - rate: {rate}\n" in round_trip_text(plan)


@pytest.mark.parametrize("probability", [0.1, 1 / 3, 0.0001234567890123456, 1e-7, 1.5e-10, 5e-324, 0.0])
def test_a_probability_is_written_without_loss(probability: float) -> None:
    round_trip_text(script_with_actions(NetworkAckLoss(probability=probability)))


def test_a_replica_with_two_conditions_has_two_tables() -> None:
    rows = tuple(
        ReplicaIs(partition=partition, broker=broker, leo=leo)
        for partition, broker, leo in [("t-0", 0, 1), ("u-0", 0, 1), ("t-0", 1, 1), ("t-0", 1, 2)]
    )
    topics = (TopicSpec(name="t"), TopicSpec(name="u"))
    plan = replace(
        script_with_actions(Expect(condition=condition(replicas=rows))),
        cluster=replace(CLUSTER, topics=topics),
    )
    assert "- {t-0: {0: {leo: 1}}, u-0: {0: {leo: 1}}}" in round_trip_text(plan)


def test_long_lists_are_filled() -> None:
    values = tuple(f"producer-0:{number}" for number in range(20))
    lines = section_text(replace(SMALL, expect=Expectation(lost=values)), "expect").splitlines()
    assert lines[1].startswith("  lost: [producer-0:0, producer-0:1, ")
    assert all(len(line) <= 100 for line in lines)
    assert len(lines) < 6


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_values_survive_a_round_trip(value: str) -> None:
    brokers = tuple(BrokerSpec(id=number, rack=value) for number in range(3))
    plan = Plan(
        campaign="hostile",
        description=value,
        cluster=replace(CLUSTER, brokers=brokers),
        producers=SMALL.producers,
        script=(
            Step(
                note=value,
                actions=(Send(producer="producer-0", value=value), Message(action="hold", id=value)),
            ),
            Step(
                when=condition(
                    acked=(value,),
                    consumed=(value, value),
                    replicas=(ReplicaIs(partition="t-0", broker=0, log=(value,)),),
                    event=(
                        EventPattern(event="append", fields=(("values", value),)),
                        EventPattern(event="fault", fields=(("details", (value, 1, True, None)),)),
                    ),
                ),
                actions=(Release(id=value),),
            ),
        ),
        expect=Expectation(lost=(value,), duplicated=(value, value)),
    )
    again = load_text(round_trip_text(plan), "written.yaml").plans[0]
    assert again.script[0].note == value
    assert again.description == value.strip()


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (replace(SMALL, campaign="a b"), "is not a valid campaign name"),
        (script_with_actions(Send(producer="nobody", value="m0")), "unknown producer"),
        (
            script_with_actions(Send(producer="producer-0", value="\ud800")),
            "no campaign file can express this plan",
        ),
        (script_with_actions(Release(id="gone")), "unknown message rule"),
        (script_with_actions(Expect(condition=Condition())), "the condition is empty"),
        (
            script_with_actions(Expect(condition=condition(leader=(("t-0", 0), ("t-0", 1))))),
            "t-0 is listed twice",
        ),
        (replace(SMALL, invariants=("log-matching", "hw-monotonic")), "would change invariants"),
        (
            replace(SMALL, faults=(Injection(timing=At(at_us=(5, 5)), faults=(BrokerCrash(broker=0),)),)),
            "never strikes",
        ),
    ],
)
def test_a_plan_that_no_file_can_express_is_refused(plan: Plan, message: str) -> None:
    with pytest.raises(UnwritablePlanError, match=message):
        campaign_text(plan)

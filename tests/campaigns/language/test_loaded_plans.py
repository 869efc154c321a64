"""Valid campaign files become plans."""

from dataclasses import replace

import pytest
import yaml
from jsonschema import Draft202012Validator

from harrow.campaigns.language.literals import LiteralError, setting_value
from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Expectation, Origin, Plan, Step
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.language.schema import json_schema
from harrow.cluster_model.invariants.catalogue import INVARIANTS
from harrow.cluster_model.settings import ASSIGNMENT_STRATEGY, CONSUMER, SETTINGS, Setting
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND
from harrow.cluster_model.topology import ApplicationSpec, BrokerSpec, ConsumerSpec, ProducerSpec, TopicSpec
from harrow.faults.actions import AddPartitions, ElectPreferredLeaders, Expect, RestartProducer, Send, Wait
from harrow.faults.brokers import BrokerCrash
from harrow.faults.event_pattern import EventPattern
from harrow.faults.facts import ReplicaIs
from harrow.faults.injection import At, Every, Rate, When
from harrow.faults.links import NetworkAckLoss, NetworkPartition
from harrow.faults.messages import Message
from tests.campaigns.language.campaign_texts import load, plan, problems, reference_example
from tests.conditions import condition


def test_the_reference_example_has_its_documented_plans() -> None:
    campaign = load_text(reference_example(), "reference.yaml")
    base, variant = campaign.plans
    assert campaign.name == base.campaign == variant.campaign == "loss-by-hw-truncation"
    assert (base.variant, variant.variant) == (None, "0.11")
    assert (base.kafka, variant.kafka) == ("0.10.2", "0.11")
    assert base.behaviours == {"isr_expansion_checks_epoch_start": True}
    assert base.cluster.settings == {"min.insync.replicas": 1, "replica.lag.time.max.ms": 10_000}
    assert base.cluster.controller == 2
    assert base.cluster.topics == (
        TopicSpec(name="t", replication_factor=2, assignment=((0, 1),), settings={"min.insync.replicas": 2}),
    )
    assert (base.cluster.network.latency_min_us, base.cluster.network.latency_max_us) == (200, 1_000)
    assert base.cluster.disk.writeback_us == 30 * US_PER_SECOND
    assert base.duration_us == 60 * US_PER_SECOND
    assert base.producers == (
        ProducerSpec(
            name="producer-0",
            settings={"acks": "all"},
            partitions=("t-0",),
            interval_us=100 * US_PER_MS,
            stop_us=60 * US_PER_SECOND,
        ),
    )
    assert base.consumers == (ConsumerSpec(name="consumer-0", partitions=("t-0",)),)
    assert [injection.timing for injection in base.faults] == [
        At(at_us=(2 * US_PER_SECOND, 2 * US_PER_SECOND)),
        When(condition=condition(leader=(("t-0", 1),))),
        Every(period_us=10 * US_PER_SECOND, start_us=0, stop_us=60 * US_PER_SECOND),
        Rate(mean_us=5 * US_PER_SECOND, start_us=0, stop_us=60 * US_PER_SECOND),
    ]
    assert [len(injection.faults) for injection in base.faults] == [1, 1, 1, 2]
    assert base.expect.rules == (("duplicate", "held"), ("lost-write", "violated"))
    assert base.expect.lost == ("m1",)
    assert base.expect.duplicated == ()
    assert variant.expect == Expectation(verdict="held", lost=())
    assert base.digest() != variant.digest()


def test_steps_and_faults_keep_their_line_numbers() -> None:
    lines = reference_example().splitlines()
    (base, _) = load_text(reference_example(), "reference.yaml").plans
    assert [lines[step.line - 1].lstrip()[:8] for step in base.script] == ["- note: ", "- do: {s"]
    assert [lines[entry.line - 1].split("#")[0].strip() for entry in base.faults] == [
        "- at: 2s",
        "- when: {leader: {t-0: 1}}",
        "- every: 10s",
        "- rate: 12/m",
    ]


def test_an_empty_campaign_has_the_documented_defaults() -> None:
    loaded = plan("description: Nothing but defaults.\n")
    assert loaded.campaign == "file"
    assert loaded.kafka == "2.4"
    assert loaded.cluster.brokers == (BrokerSpec(id=0), BrokerSpec(id=1), BrokerSpec(id=2))
    assert loaded.cluster.topics == (TopicSpec(name="t", replication_factor=3),)
    assert loaded.producers == (ProducerSpec(name="producer-0"),)
    assert (loaded.consumers, loaded.script, loaded.faults, loaded.duration_us) == ((), (), (), 0)
    assert loaded == Plan(
        campaign="file", cluster=loaded.cluster, producers=loaded.producers, description=loaded.description
    )


def test_the_default_name_is_derived_from_the_file_name() -> None:
    assert load_text("kafka: '2.4'", "a/my campaign!.yaml").name == "my-campaign-"
    assert load_text("kafka: '2.4'", "-").name == "campaign"


def test_replication_factor_is_at_most_the_number_of_brokers() -> None:
    assert plan("cluster: {brokers: 2}").cluster.topics[0].replication_factor == 2
    assert plan("cluster: {brokers: 5, topics: [{name: u, partitions: 2}]}").cluster.topics == (
        TopicSpec(name="u", partitions=2, replication_factor=3),
    )


def test_no_producer_is_added_to_a_campaign_that_sends_nothing() -> None:
    assert plan("workload: {consumers: [{}]}").producers == ()
    assert plan("workload: {consumers: [{}]}\nscript: [{do: {send: m}}]").producers[0].name == "producer-0"
    assert plan("workload: {producers: [{}, {name: x}, {}]}").producers == tuple(
        ProducerSpec(name=name) for name in ("producer-0", "x", "producer-2")
    )


@pytest.mark.parametrize("written", ["2.4", "'2.4'", '"2.4"', "0.10.2", "0.11", "2.0"])
def test_a_release_is_read_with_or_without_quotes(written: str) -> None:
    assert plan(f"kafka: {written}").kafka == written.strip("'\"")


@pytest.mark.parametrize(
    ("setting", "written", "value"),
    [
        ("acks", "0", "0"),
        ("acks", "'1'", "1"),
        ("acks", "-1", "all"),
        ("acks", '"all"', "all"),
        ("linger.ms", "5", 5),
        ("linger.ms", "1.5s", 1_500),
        ("delivery.timeout.ms", "3m", 180_000),
        ("retries", "2147483647", 2_147_483_647),
    ],
)
def test_the_spellings_of_a_producer_setting_have_one_value(
    setting: str, written: str, value: object
) -> None:
    assert plan(f"settings: {{{setting}: {written}}}").producers[0].settings == {setting: value}


def test_settings_go_to_every_scope_that_has_them() -> None:
    loaded = plan(
        """\
        settings:
          acks: all
          min.insync.replicas: 2
          unclean.leader.election.enable: true
          flush.messages: 1
          request.timeout.ms: 1s
          leader.imbalance.check.interval.seconds: 1m
          max.poll.records: 5
        cluster:
          brokers: [{id: 4, settings: {min.insync.replicas: 1}}, {id: 5}]
          topics: [{name: t}, {name: u, settings: {flush.messages: 7, min.insync.replicas: 1}}]
        workload:
          producers: [{}, {settings: {acks: 1}}]
          consumers: [{settings: {max.poll.records: 6}}]
        """
    )
    assert loaded.cluster.settings == {
        "min.insync.replicas": 2,
        "unclean.leader.election.enable": True,
        "leader.imbalance.check.interval.seconds": 60,
    }
    assert loaded.cluster.brokers[0].settings == {"min.insync.replicas": 1}
    assert [topic.settings for topic in loaded.cluster.topics] == [
        {"flush.messages": 1},
        {"flush.messages": 7, "min.insync.replicas": 1},
    ]
    assert [producer.settings for producer in loaded.producers] == [
        {"acks": "all", "request.timeout.ms": 1_000},
        {"acks": "1", "request.timeout.ms": 1_000},
    ]
    assert loaded.consumers[0].settings == {"request.timeout.ms": 1_000, "max.poll.records": 6}


def test_settings_that_kafka_accepts_together_are_accepted() -> None:
    idempotent = "settings: {enable.idempotence: true, acks: -1, max.in.flight.requests.per.connection: 5}"
    assert plan(idempotent).producers[0].settings["acks"] == "all"
    assert plan("kafka: 0.11\nsettings: {enable.idempotence: true}").producers
    assert plan("settings: {enable.idempotence: false, acks: 0, retries: 0}").producers
    # Only acks=all waits for the ISR.
    assert plan("settings: {acks: 1, min.insync.replicas: 4}").producers
    # A producer that does not write to the topic may use acks=all.
    assert plan(
        """\
        settings: {acks: all}
        cluster: {topics: [{name: t, settings: {min.insync.replicas: 4}}, {name: u}]}
        workload: {producers: [{partitions: [u-0]}]}
        """
    ).producers


def test_each_action_of_a_script_is_read() -> None:
    loaded = plan(
        """\
        workload: {producers: [{name: p}]}
        script:
          - do: {send: m0}
          - do: {send: {value: 1, partition: t-0, producer: p}}
          - do: [{restart_producer: p}, elect_preferred_leaders, {elect_preferred_leaders: {}}]
          - do: {expect: {acked: [m0, 1]}}
          - {at: 1s, after: 2s, when: {controller: 0}, note: wait}
          - do: {broker_crash: {broker: leader  of t-0, kind: power_loss, restart_after: 1s..2s}}
          - do: {partition: {between: 0, and: [1, zookeeper, p], one_way: true}}
          - do: {message: {action: delay, api: Fetch, kind: response, from: 0, to: p, skip: 2, delay: 5ms}}
          - do: controller_failover
        """
    )
    assert [step.actions for step in loaded.script[:5]] == [
        (Send(producer="p", value="m0"),),
        (Send(producer="p", value="1", partition="t-0"),),
        (RestartProducer(producer="p"), ElectPreferredLeaders(), ElectPreferredLeaders()),
        (Expect(condition=condition(acked=("m0", "1"))),),
        (Wait(),),
    ]
    assert loaded.script[4] == Step(
        actions=(Wait(),),
        at_us=US_PER_SECOND,
        after_us=2 * US_PER_SECOND,
        when=condition(controller=(0,)),
        note="wait",
        line=7,
    )
    assert [step.actions[0] for step in loaded.script[5:8]] == [
        BrokerCrash(
            broker="leader of t-0", kind="power_loss", restart_after=(US_PER_SECOND, 2 * US_PER_SECOND)
        ),
        NetworkPartition(between=(0,), and_=(1, "zookeeper", "p"), one_way=True),
        Message(action="delay", api="Fetch", kind="response", from_=0, to="p", skip=2, delay=5_000),
    ]


def test_each_key_of_a_condition_is_read() -> None:
    (step,) = plan(
        """\
        script:
          - when:
              replicas:
                t-0:
                  0: {role: leader, leo: 2, hw: 1, remote: {1: 1}, epochs: [[0, 0], [2, 1]], log: [m0, 7]}
                  1: {leader_epoch: 0, flushed: 2}
              leader: {t-0: -1}
              leader_epoch: {t-0: 3}
              isr: {t-0: [0, 1]}
              controller: 2
              brokers: {1: up, 2: down}
              registered: {1: true}
              acked: m1
              not_acked: [m2, 3]
              failed: m4
              consumed: m5
              not_consumed: m6
              event: {truncate: {broker: 1, to_offset: 1, partition: t-0}}
              no_event:
                - election
                - append: {values: 7, base_offset: 2}
                - election: {isr: [0, 1], unclean: true, leader: -1}
        """
    ).script
    assert step.when == condition(
        replicas=(
            ReplicaIs(
                partition="t-0",
                broker=0,
                role="leader",
                leo=2,
                hw=1,
                remote=((1, 1),),
                epochs=((0, 0), (2, 1)),
                log=("m0", "7"),
            ),
            ReplicaIs(partition="t-0", broker=1, leader_epoch=0, flushed=2),
        ),
        leader=(("t-0", -1),),
        leader_epoch=(("t-0", 3),),
        isr=(("t-0", (0, 1)),),
        controller=(2,),
        brokers=((1, "up"), (2, "down")),
        registered=((1, True),),
        acked=("m1",),
        not_acked=("m2", "3"),
        failed=("m4",),
        consumed=("m5",),
        not_consumed=("m6",),
        event=(
            EventPattern(event="truncate", fields=(("broker", 1), ("partition", "t-0"), ("to_offset", 1))),
        ),
        no_event=(
            EventPattern(event="election"),
            EventPattern(event="append", fields=(("base_offset", 2), ("values", "7"))),
            EventPattern(event="election", fields=(("leader", -1), ("isr", (0, 1)), ("unclean", True))),
        ),
    )


def test_offsets_of_an_event_are_numbers() -> None:
    loaded = plan(
        "script: [{when: {event: [{log_cleaned: {removed: 0}}, {log_cleaned: {removed: [1, 3]}}]}}]"
    )
    assert loaded.script[0].when == condition(
        event=(
            EventPattern(event="log_cleaned", fields=(("removed", 0),)),
            EventPattern(event="log_cleaned", fields=(("removed", (1, 3)),)),
        )
    )


def test_a_step_without_actions_waits() -> None:
    loaded = plan("script: [{at: 1s}, {at: 1s, do: wait}, {do: [{wait: {}}, elect_preferred_leaders]}]")
    assert [step.actions for step in loaded.script] == [
        (Wait(),),
        (Wait(),),
        (Wait(), ElectPreferredLeaders()),
    ]
    assert Step(actions=()) == Step(actions=(Wait(),))


def test_a_condition_may_constrain_several_replicas() -> None:
    loaded = plan("script: [{when: {replicas: [{t-0: {0: {leo: 2}}}, {t-0: {0: {hw: 1}, 1: {hw: 1}}}]}}]")
    assert loaded.script[0].when == condition(
        replicas=(
            ReplicaIs(partition="t-0", broker=0, leo=2),
            ReplicaIs(partition="t-0", broker=0, hw=1),
            ReplicaIs(partition="t-0", broker=1, hw=1),
        )
    )


def test_each_timing_of_a_fault_is_read() -> None:
    loaded = plan(
        """\
        workload: {duration: 30s}
        faults:
          - {at: 5s, do: [{broker_crash: {broker: 1}}]}
          - {when: {leader: {t-0: 1}}, times: 3, do: controller_failover}
          - {every: 2s, from: 1s, until: 20s, any_of: [controller_failover, {broker_pause: {broker: any}}]}
          - {rate: 1/h, do: controller_failover}
          - {rate: 2/15s, do: {network_ack_loss: {probability: 1.5e-07}}}
        """
    )
    assert [entry.timing for entry in loaded.faults] == [
        At(at_us=(5 * US_PER_SECOND, 5 * US_PER_SECOND)),
        When(condition=condition(leader=(("t-0", 1),)), times=3),
        Every(period_us=2 * US_PER_SECOND, start_us=US_PER_SECOND, stop_us=20 * US_PER_SECOND),
        Rate(mean_us=3_600 * US_PER_SECOND, start_us=0, stop_us=30 * US_PER_SECOND),
        Rate(mean_us=7_500 * US_PER_MS, start_us=0, stop_us=30 * US_PER_SECOND),
    ]
    assert loaded.faults[-1].faults == (NetworkAckLoss(probability=1.5e-07),)
    assert [[fault.name for fault in entry.faults] for entry in loaded.faults] == [
        ["broker_crash"],
        ["controller_failover"],
        ["controller_failover", "broker_pause"],
        ["controller_failover"],
        ["network_ack_loss"],
    ]


@pytest.mark.parametrize(
    ("synonym", "word"),
    [
        ("partition: {between: brokers, and: quorum}", "partition: {between: brokers, and: zookeeper}"),
        ("broker_crash: {broker: leader of quorum}", "broker_crash: {broker: leader of zookeeper}"),
        ("partition: {between: followers  of quorum}", "partition: {between: followers of zookeeper}"),
    ],
)
def test_quorum_is_a_synonym_of_zookeeper(synonym: str, word: str) -> None:
    faults = [
        plan(f'kafka: "4.3"\nworkload: {{duration: 5s}}\nfaults: [{{at: 1s, do: {{{text}}}}}]\n').faults
        for text in (synonym, word)
    ]
    assert faults[0] == faults[1]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("quarum", ("did you mean `quorum`?",)),
        ("xyz", ("0, 1, 2", "brokers", "quorum", "controller-3000", "controller-3002")),
    ],
)
def test_controllers_can_be_ends_of_links(written: str, expected: tuple[str, ...]) -> None:
    (problem,) = problems(
        f'kafka: "4.3"\nworkload: {{duration: 5s}}\nfaults: [{{at: 1s, do: {{partition: {{between: brokers, and: {written}}}}}}}]\n'
    )
    assert all(text in str(problem) for text in expected)


def test_settings_of_disks_limits_and_zookeeper_are_read() -> None:
    loaded = plan(
        "cluster: {disk: {writeback: never}, zookeeper: {tick: 3s}}\nlimits: {script: 1m, recovery: 2m}\n"
    )
    assert loaded.cluster.disk.writeback_us is None
    assert loaded.cluster.zookeeper_tick_us == 3 * US_PER_SECOND
    assert (loaded.script_limit_us, loaded.recovery_limit_us) == (60 * US_PER_SECOND, 120 * US_PER_SECOND)


@pytest.mark.parametrize(
    ("written", "watched"),
    [
        ("", tuple(INVARIANTS)),
        ("invariants: all\n", tuple(INVARIANTS)),
        ("invariants: [all]\n", tuple(INVARIANTS)),
        ("invariants: none\n", ()),
        ("invariants: []\n", ()),
        ("invariants: log-matching\n", ("log-matching",)),
        ("invariants: [log-matching, hw-monotonic, log-matching]\n", ("hw-monotonic", "log-matching")),
    ],
)
def test_a_campaign_watches_its_listed_invariants(written: str, watched: tuple[str, ...]) -> None:
    assert plan(f"kafka: 2.4\n{written}").invariants == watched


def test_an_option_selects_the_watched_invariants() -> None:
    text = "invariants: [log-matching]\nvariants: {all: {invariants: all}}\n"
    assert [len(p.invariants) for p in load_text(text, "f.yaml").plans] == [1, len(INVARIANTS)]
    assert [p.invariants for p in load_text(text, "f.yaml", ["invariants=none"]).plans] == [(), ()]
    option = "invariants=[hw-monotonic, one-leader-per-epoch]"
    invariants = load_text(text, "f.yaml", [option]).plans[0].invariants
    assert invariants == ("hw-monotonic", "one-leader-per-epoch")


def test_aliases_repeat_their_anchors() -> None:
    loaded = plan(
        """\
        faults:
          - &crash {rate: 1/s, until: 10s, do: {broker_crash: {broker: 1}}}
          - *crash
        """
    )
    assert loaded.faults[0] == loaded.faults[1]


def test_a_byte_order_mark_is_skipped() -> None:
    assert load_text("\ufeffkafka: 0.11\n", "f.yaml").plans[0].kafka == "0.11"


def test_the_origin_of_a_failure_is_read() -> None:
    text = """\
        kafka: "0.10.2"
        found: {version: 0.1.0, rule: lost-write, status: open}
        variants:
          fixed:
            kafka: "0.11"
            found: {status: fixed, seed: 7}
        """
    base, variant = load(text).plans
    assert base.found == Origin(version="0.1.0", rule="lost-write", status="open", line=2)
    assert variant.found is not None
    assert (variant.found.version, variant.found.status, variant.found.seed) == ("0.1.0", "fixed", 7)
    assert replace(base, found=None).digest() == base.digest(), "the origin changes the run"
    (again,) = load_text(campaign_text(variant), "file.yaml").plans
    assert again.found == replace(variant.found, line=again.found.line if again.found else 0)


def test_a_wrong_origin_of_a_failure_is_refused() -> None:
    assert problems("found: {version: 0.1.0, rule: lost-wright, status: open}") == [
        "1:31: unknown rule `lost-wright`; did you mean `lost-write`?"
    ]
    assert problems("found: {version: latest, rule: lost-write, status: shut}") == [
        "1:18: version: expected a version of harrow such as 0.1.0, not `latest`",
        "1:52: status: `shut` is not one of open, fixed",
    ]
    assert problems("invariants: none\nfound: {version: 0.1.0, rule: hw-monotonic, status: open}") == [
        "2:31: hw-monotonic is not judged, because `invariants` leaves it out"
    ]
    assert problems("found: 3") == ["1:8: found: expected a mapping (`key: value`), not a single value"]


@pytest.mark.parametrize(
    ("release", "switches", "is_refused"),
    [
        ("3.6", "", True),
        ("3.9", "", False),
        ("4.3", "", False),
        ("4.3", "min_isr_limited_to_replica_count: false", True),
        ("3.6", "min_isr_limited_to_replica_count: true", False),
    ],
)
def test_acks_all_that_can_never_succeed_is_refused_on_releases_that_allow_it(
    release: str, switches: str, is_refused: bool
) -> None:
    """Since 3.7 min.insync.replicas counts at most as the number of replicas (KAFKA-15583)."""
    text = f"""\
        kafka: "{release}"
        behaviours: {{{switches}}}
        cluster: {{brokers: 2, topics: [{{name: t, replication_factor: 2}}]}}
        settings: {{acks: all, min.insync.replicas: 3}}
        """
    if is_refused:
        assert ["with min.insync.replicas=3 and 2 replicas" in each for each in problems(text)] == [True]
    else:
        assert plan(text).cluster.topics[0].replication_factor == 2


def test_a_campaign_may_refer_to_partitions_that_its_script_adds() -> None:
    text = """\
        cluster: {brokers: 3, topics: [{name: t}, {name: u}]}
        workload: {duration: 5s, producers: [{name: p}], consumers: [{name: c, partitions: [t-2]}]}
        script:
          - {at: 1s, do: {add_partitions: {topic: t, partitions: 3}}}
          - {when: {leader: {t-2: 2}}, do: {send: {value: m, partition: %s}}}
        """
    loaded = plan(text % "t-2")
    assert loaded.script[0].actions == (AddPartitions(topic="t", partitions=3),)
    assert loaded.cluster.partition_names() == ("t-0", "u-0")
    assert ["topic t has t-0 to t-2" in each for each in problems(text % "t-3")] == [True]
    assert ["topic u has only u-0" in each for each in problems(text % "u-1")] == [True]


def test_partitions_can_only_be_added_to_an_existing_topic() -> None:
    (problem,) = problems(
        """\
        cluster: {brokers: 3, topics: [{name: orders}]}
        script:
          - do: {add_partitions: {topic: oders, partitions: 2}}
        """
    )
    assert problem == "3:34: unknown topic `oders`; did you mean `orders`?"


@pytest.mark.parametrize(
    "setting", [each for each in SETTINGS.values() if each.aliases], ids=lambda each: each.name
)
def test_kafkas_other_words_for_a_value_are_read_and_accepted_by_editors(setting: Setting) -> None:
    editor = Draft202012Validator(json_schema())
    for alias, word in setting.aliases:
        assert setting_value(setting, alias) == word
        text = f"settings: {{{setting.name}: {alias!r}}}"
        assert list(editor.iter_errors(yaml.safe_load(text))) == []


def test_a_list_of_assignors_may_mix_names_and_classes() -> None:
    strategy = SETTINGS[CONSUMER, ASSIGNMENT_STRATEGY]
    text = "range, org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    assert setting_value(strategy, text) == "range,cooperative-sticky"
    with pytest.raises(LiteralError, match="is not one of range, "):
        setting_value(strategy, "range,com.example.OwnAssignor")


def test_a_prefix_sets_for_one_kind_of_client_what_both_kinds_have() -> None:
    text = """\
        settings: {request.timeout.ms: 9s, consumer.request.timeout.ms: 7s}
        workload:
          producers: [{}, {settings: {request.timeout.ms: 1s}}]
          consumers: [{}, {settings: {request.timeout.ms: 2s}}]
          applications: [{name: a, from: t, to: t2}]
        cluster: {topics: [{name: t}, {name: t2}]}
        """

    def timeouts(*options: str) -> list[object]:
        loaded = load(text, *options).plans[0]
        (application,) = loaded.applications
        assert isinstance(application, ApplicationSpec)
        own = [application.producer, application.consumer]
        for client in (*loaded.producers, *loaded.consumers):
            assert isinstance(client, ProducerSpec | ConsumerSpec)
            own.append(client.settings)
        return [settings.get("request.timeout.ms") for settings in own]

    assert timeouts() == [9_000, 7_000, 9_000, 1_000, 7_000, 2_000]
    assert timeouts("consumer.request.timeout.ms=3s") == [9_000, 3_000, 9_000, 1_000, 3_000, 3_000]
    assert timeouts("request.timeout.ms=4s") == [4_000] * 6


def test_a_prefix_is_only_for_settings_that_both_kinds_of_clients_have() -> None:
    (problem,) = problems("settings: {producer.linger.ms: 5}")
    assert problem == "1:12: unknown setting `producer.linger.ms`; only producers have it: write `linger.ms`"
    (problem,) = problems("kafka: 2.4", "consumer.group.id=g")
    assert problem.endswith("`consumer.group.id`; only consumers have it: write `group.id`")
    (problem,) = problems("workload: {producers: [{settings: {producer.retry.backoff.ms: 5}}]}")
    assert problem.endswith("unknown setting `producer.retry.backoff.ms`; here write `retry.backoff.ms`")

"""`--set kafka=...` and `--set cluster.metadata=...` change which variants of a campaign run."""

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign, load_text
from harrow.campaigns.language.problem import UnsuitedError
from harrow.campaigns.language.release_options import BrokerRelease
from tests.campaigns.language.campaign_texts import load, problems
from tests.conditions import condition

WITH_RELEASES = """\
kafka: "2.4"
expect: {verdict: held}
variants:
  plain: {}
  old: {kafka: "3.6"}
  new: {kafka: "4.4"}
"""
WITH_ZOOKEEPER = """\
kafka: "2.4"
script:
  - when: {event: {ensemble_leader_elected: {}}}
variants:
  patient: {description: waits too}
  kraft:
    kafka: "4.3"
    script:
      - when: {event: {controller_elected: {}}}
  older: {kafka: "0.11"}
"""
IN_KRAFT = "Kafka 4.0 keeps its metadata in KRaft here"


def names(text: str, *overrides: str, only: tuple[str, ...] = ()) -> list[tuple[str | None, str]]:
    return [(plan.variant, plan.kafka) for plan in load_text(text, "file.yaml", overrides, only).plans]


def notes(text: str, *overrides: str) -> list[tuple[int, int, str]]:
    return [(note.line, note.column, note.message) for note in load(text, *overrides).notes]


def test_variants_that_name_a_release_are_left_out_on_another_one_with_a_note() -> None:
    assert names(WITH_RELEASES, "kafka=4.0") == [(None, "4.0"), ("plain", "4.0")]
    assert notes(WITH_RELEASES, "kafka=4.0") == [
        (
            5,
            9,
            "old, new name releases of their own and are left out; `--variant NAME --set kafka=4.0` runs one anyway",
        )
    ]


def test_a_variant_that_names_the_same_release_stays() -> None:
    assert names(WITH_RELEASES, "kafka=4.4") == [(None, "4.4"), ("plain", "4.4"), ("new", "4.4")]
    assert names(WITH_RELEASES, "kafka=latest") == names(WITH_RELEASES, "kafka=4.4")


def test_a_variant_named_by_the_user_runs_on_the_release_of_the_option() -> None:
    assert ("old", "4.0") in names(WITH_RELEASES, "kafka=4.0", only=("old",))


def test_other_options_leave_no_variant_out() -> None:
    assert len(names(WITH_RELEASES, "acks=1")) == 4


def test_a_variant_for_one_control_plane_is_left_out_on_the_other() -> None:
    text = 'kafka: "3.9"\nvariants: {old: {cluster: {metadata: zookeeper}}}\n'
    assert names(text, "cluster.metadata=kraft") == [(None, "3.9")]
    assert names(text, "cluster.metadata=zookeeper") == [(None, "3.9"), ("old", "3.9")]


def test_counterparts_run_if_the_campaign_is_about_the_other_control_plane() -> None:
    assert names(WITH_ZOOKEEPER, "kafka=4.0") == [("kraft", "4.0")]
    assert notes(WITH_ZOOKEEPER, "kafka=4.0") == [
        (3, 20, f"base, patient are left out: ensemble_leader_elected never happens: {IN_KRAFT}"),
        (
            10,
            11,
            "older names a release of its own and is left out; `--variant older --set kafka=4.0` runs it anyway",
        ),
    ]


def test_counterparts_run_beside_variants_that_suit_a_release_that_the_campaign_does_not() -> None:
    text = f"{WITH_ZOOKEEPER}  other: {{script: [{{at: 1s, do: {{broker_crash: {{broker: 0}}}}}}]}}\n"
    assert names(text, "kafka=4.0") == [("other", "4.0"), ("kraft", "4.0")]


def test_no_counterpart_runs_for_a_variant_that_is_left_out() -> None:
    text = f"{WITH_RELEASES}  waits: {{script: [{{when: {{event: {{ensemble_leader_elected: {{}}}}}}}}]}}\n"
    assert names(text, "kafka=4.0") == [(None, "4.0"), ("plain", "4.0")]


def test_a_plan_that_does_not_suit_the_release_is_left_out_and_the_others_run() -> None:
    text = 'kafka: "2.4"\nvariants: {idempotent: {settings: {enable.idempotence: true}}}\n'
    assert names(text, "kafka=0.10.2") == [(None, "0.10.2")]
    assert notes(text, "kafka=0.10.2") == [
        (2, 36, "idempotent is left out: Kafka 0.10.2 has no enable.idempotence; it came with 0.11")
    ]


AIMING = """\
workload: {duration: 5s, producers: [{}]}
swarm:
  aims:
    share: 0.5
    any_of:
      - {probe: log-compacted, keys: [2]}
      - probe: read-replica-preferred
        settings:
          replica.selector.class: [org.apache.kafka.common.replica.RackAwareReplicaSelector]
          client.rack: [rack-0]
variants: {plain: {}}
"""
NO_SELECTOR = "Kafka 1.1 has no replica.selector.class; it came with 2.4"


def aims(text: str, *overrides: str) -> list[list[str]]:
    swarms = [plan.swarm for plan in load(text, *overrides).plans]
    return [[aim.probe for aim in swarm.aims.kinds] if swarm and swarm.aims else [] for swarm in swarms]


def test_an_aim_that_a_release_cannot_reach_is_left_out_and_the_others_are_drawn() -> None:
    assert aims(AIMING) == [["log-compacted", "read-replica-preferred"]] * 2
    assert aims(AIMING, "kafka=1.1") == [["log-compacted"]] * 2
    assert notes(AIMING, "kafka=1.1") == [
        (9, 11, f"the aim `read-replica-preferred` is left out: {NO_SELECTOR}")
    ]


def test_if_no_aim_suits_a_release_seeds_have_no_aim() -> None:
    text = AIMING.replace("      - {probe: log-compacted, keys: [2]}\n", "")
    assert aims(text, "kafka=1.1") == [[], []]
    assert len(notes(text, "kafka=1.1")) == 1


def test_an_impossible_aim_is_a_mistake_if_the_file_names_the_release() -> None:
    text = f'kafka: "1.1"\n{AIMING}'
    assert problems(text)[0] == f"10:11: {NO_SELECTOR}"
    assert problems(text, "kafka=2.0")[0] == f"10:11: {NO_SELECTOR.replace('1.1', '2.0')}"


DRAWING = """\
kafka: "4.3"
swarm:
  settings:
    acks: [1, all]
    group.protocol: [classic, consumer]
"""
NO_PROTOCOL = "Kafka 3.6 has no group.protocol; it came with 4.0"


def swarm_settings(text: str, *overrides: str) -> list[str]:
    (plan,) = load(text, *overrides).plans
    assert plan.swarm is not None
    return [name for name, _ in plan.swarm.settings]


def test_a_swarm_does_not_draw_a_setting_that_the_release_of_an_option_lacks() -> None:
    assert swarm_settings(DRAWING) == ["acks", "group.protocol"]
    assert swarm_settings(DRAWING, "kafka=3.6") == ["acks"]
    assert notes(DRAWING, "kafka=3.6") == [(5, 5, f"group.protocol is not drawn: {NO_PROTOCOL}")]


def test_an_impossible_open_setting_is_a_mistake_if_the_file_names_the_release() -> None:
    assert problems(DRAWING.replace("4.3", "3.6")) == [f"5:5: {NO_PROTOCOL}"]


@pytest.mark.parametrize("release", ["0.11", "1.1", "2.0", "2.4", "2.8", "3.6", "3.9", "4.0"])
@pytest.mark.parametrize("swarm", ["swarm", "swarm-kraft", "swarm-eos", "swarm-disks"])
def test_a_swarm_of_the_library_runs_on_every_release_that_has_its_subject(swarm: str, release: str) -> None:
    loaded = load_campaign(resolve(swarm)[0], (f"kafka={release}",))
    assert loaded.plans


def test_a_plan_with_mistakes_besides_its_aims_is_left_out() -> None:
    text = f"{AIMING}settings: {{client.rack: a}}\n"
    with pytest.raises(UnsuitedError, match=r"12:12: Kafka 1\.1 has no client\.rack"):
        load(text, "kafka=1.1")


def test_a_campaign_is_refused_if_no_plan_suits_the_release() -> None:
    with pytest.raises(UnsuitedError, match=r"3:20: ensemble_leader_elected never happens"):
        load_text(WITH_ZOOKEEPER, "file.yaml", ["kafka=4.0"], ["base"])


@pytest.mark.parametrize(
    ("waited_for", "problem"),
    [
        ("event: {ensemble_server_suspended: {}}", "3:20: ensemble_server_suspended never happens"),
        (
            "event: {controller_elected: {broker: 2}}",
            "3:49: broker 2 is never the controller, which is one of",
        ),
        ("event: {election: {controller: 1}}", "3:43: broker 1 is never the controller"),
        ("controller: 2", "3:24: broker 2 is never the controller"),
        ("controller: controller-3003", "3:24: controller-3003 is never the controller"),
        ("event: {message_rule: {api: LeaderAndIsr}}", "3:40: LeaderAndIsr is never sent"),
        ("event: {message_rule: {rule: held}}", "3:41: message rule `held` never matches"),
    ],
)
def test_waiting_for_an_event_that_never_happens_in_kraft_is_reported(waited_for: str, problem: str) -> None:
    hold = "{message: {action: hold, api: UpdateMetadata, id: held}}"
    text = f'kafka: "4.0"\nscript:\n  - when: {{{waited_for}}}\n  - do: {hold}\n'
    (problem,) = problems(text)
    assert problem.startswith(problem)
    assert problem.endswith(IN_KRAFT)
    if "3003" not in waited_for:
        assert load(text, "kafka=2.4").plans


@pytest.mark.parametrize("written", ["controller-3001", "3001"])
def test_a_step_can_wait_for_a_controller_of_the_quorum(written: str) -> None:
    (plan,) = load_text(f'kafka: "4.0"\nscript:\n  - when: {{controller: {written}}}\n', "file.yaml").plans
    assert plan.script[0].when == condition(controller=(3001,))
    (problem,) = problems(f'kafka: "2.4"\nscript:\n  - when: {{controller: {written}}}\n')
    assert problem == (
        "3:24: controller-3001 is never the controller, which is a broker: Kafka 2.4 keeps its metadata in ZooKeeper here"
    )


def test_a_node_that_cannot_be_controller_is_reported() -> None:
    (problem,) = problems("script:\n  - when: {controller: foo}\n")
    assert problem == (
        "2:24: controller: `foo` is not a controller: write a broker's id, or in KRaft one such as `controller-3000`"
    )
    (problem,) = problems("script:\n  - when: {controller: zookeeper-1}\n")
    assert problem.startswith("2:24: zookeeper-1 is never the controller, which is a broker")


def test_waiting_for_an_event_of_kraft_is_reported_with_zookeeper() -> None:
    text = 'kafka: "2.4"\nscript: [{when: {event: {metadata_snapshot_taken: {}}}}]\n'
    (problem,) = problems(text)
    assert problem.endswith(
        "metadata_snapshot_taken never happens: Kafka 2.4 keeps its metadata in ZooKeeper here"
    )


def test_a_step_may_state_that_an_event_of_the_other_control_plane_has_not_happened() -> None:
    assert load('kafka: "4.0"\nscript: [{do: {expect: {no_event: {ensemble_leader_elected: {}}}}}]\n').plans


def test_controllers_that_are_brokers_can_be_the_controller() -> None:
    text = 'kafka: "4.0"\ncluster: {kraft: {combined: true}}\nscript: [{when: {controller: 2}}]\n'
    assert load(text).plans


def test_faults_for_messages_of_the_other_control_plane_are_noted() -> None:
    text = 'kafka: "2.4"\nworkload: {duration: 5s}\nfaults: [{at: 1s, do: {message: {action: drop, api: LeaderAndIsr}}}]\n'
    assert notes(text) == []
    assert notes(text, "kafka=4.0") == [(3, 24, f"this never matches a message: {IN_KRAFT}")]


@pytest.mark.parametrize(("count", "others"), [(1, "nor does 1 other fault"), (2, "nor do 2 other faults")])
def test_other_faults_for_messages_that_are_never_sent_are_counted(count: int, others: str) -> None:
    fault = "{at: 1s, do: {message: {action: drop, api: LeaderAndIsr}}}"
    text = f'kafka: "2.4"\nworkload: {{duration: 5s}}\nfaults: [{", ".join([fault] * (1 + count))}]\n'
    assert notes(text, "kafka=4.0") == [(3, 24, f"this never matches a message ({others}): {IN_KRAFT}")]


def test_a_wrong_file_and_a_wrong_option_stay_mistakes() -> None:
    assert problems(WITH_RELEASES, "kafka=9.9")[0].startswith("--set: kafka=9.9: ")
    assert "acks" in problems(f"{WITH_RELEASES}settings: {{acks: 7}}\n", "kafka=4.0")[0]
    (problem,) = problems('kafka: "2.4"\n', "kafka=0.10.2", "enable.idempotence=true")
    assert problem.startswith("--set: enable.idempotence=true: Kafka 0.10.2 has no")


def test_a_plan_records_the_release_that_it_was_written_for() -> None:
    def written_for(text: str, *overrides: str) -> list[str | None]:
        return [plan.written_for for plan in load(text, *overrides).plans]

    assert written_for(WITH_RELEASES) == [None] * 4
    assert written_for(WITH_RELEASES, "kafka=4.0") == ["Kafka 2.4", "Kafka 2.4"]
    assert written_for(WITH_RELEASES, "kafka=4.4") == ["Kafka 2.4", "Kafka 2.4", None]
    assert written_for("expect: {verdict: held}\n", "kafka=4.0") == [None]
    assert written_for('kafka: "3.9"\n', "cluster.metadata=zookeeper") == ["Kafka 3.9 with KRaft"]


def test_the_release_that_a_plan_was_written_for_does_not_change_its_digest() -> None:
    (moved, _), named = (
        load(WITH_RELEASES, "kafka=4.0").plans,
        load(WITH_RELEASES.replace("2.4", "4.0")).plans[0],
    )
    assert moved.digest() == named.digest()


@pytest.mark.parametrize(
    "name", ["message.timestamp.difference.max.ms", "log.message.timestamp.difference.max.ms"]
)
def test_a_setting_that_a_release_no_longer_has_is_refused(name: str) -> None:
    text = f'kafka: "3.9"\nsettings: {{{name}: 5s}}\n'
    assert load(text).plans
    (problem,) = problems(text, "kafka=4.0")
    assert problem.startswith(f"2:12: Kafka 4.0 no longer has {name}; 3.9 was the last release with it: use ")


def for_brokers(text: str, kafka: str, metadata: str, *overrides: str) -> list[tuple[str | None, str, str]]:
    campaign = load_text(text, "file.yaml", overrides, (), BrokerRelease(kafka, metadata))
    return [(plan.variant, plan.kafka, plan.metadata) for plan in campaign.plans]


def test_a_plan_that_names_no_release_gets_that_of_the_brokers() -> None:
    text = 'expect: {}\nvariants:\n  plain: {}\n  old: {kafka: "3.6"}\n  quorum: {kafka: "4.3", cluster: {metadata: kraft}}\n'
    named = [("old", "3.6", "kraft"), ("quorum", "4.3", "kraft")]
    assert for_brokers(text, "4.4", "kraft") == [(None, "4.4", "kraft"), ("plain", "4.4", "kraft"), *named]
    assert for_brokers(text, "3.9", "zookeeper")[:2] == [
        (None, "3.9", "zookeeper"),
        ("plain", "3.9", "zookeeper"),
    ]
    # An option names a release.
    assert for_brokers("expect: {}", "4.4", "kraft", "kafka=2.8") == [(None, "2.8", "zookeeper")]


def test_a_plan_that_the_brokers_release_does_not_suit_keeps_the_default_release() -> None:
    assert for_brokers(WITH_ZOOKEEPER.replace('kafka: "2.4"\n', "", 1), "4.4", "kraft")[0] == (
        None,
        "2.4",
        "zookeeper",
    )

"""Kafka's `.properties` files become a cluster file, and no line is lost."""

import pytest

from harrow.campaigns.language.kafka_settings import (
    hidden_without,
    is_without_effect,
    kafka_has,
    releases_with,
    setting_names,
)
from harrow.campaigns.language.loader import CampaignError, load_text
from harrow.campaigns.sources.description import Fate
from harrow.campaigns.sources.kinds import description_of
from harrow.campaigns.sources.setting_lines import OTHER_UNITS
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import SETTINGS
from tests.campaigns.sources.texts import fates, import_texts, plan_on

SERVER = """\
# one of three
broker.id=4
broker.rack = a
zookeeper.connect=z1:2181,z2:2181,z3:2181/kafka
listeners=PLAINTEXT://:9092
min.insync.replicas: 2
log.retention.hours=168
log.retention.minutes=30
unclean.leader.election.enable true
remote.log.storage.system.enable=true
log.flush.intervall.messages=1
num.io.threads=4
num.io.threads=\\
   16
"""


def test_every_line_of_a_source_ends_in_one_of_four_lists() -> None:
    imported = import_texts([("server.properties", SERVER)], release="3.9")
    assert fates(imported) == {
        (2, "broker.id"): Fate.TAKEN,
        (3, "broker.rack"): Fate.LACKING,
        (4, "zookeeper.connect"): Fate.TAKEN,
        (5, "listeners"): Fate.UNAFFECTED,
        (6, "min.insync.replicas"): Fate.TAKEN,
        (7, "log.retention.hours"): Fate.UNAFFECTED,
        (8, "log.retention.minutes"): Fate.TAKEN,
        (9, "unclean.leader.election.enable"): Fate.TAKEN,
        (10, "remote.log.storage.system.enable"): Fate.LACKING,
        (11, "log.flush.intervall.messages"): Fate.UNKNOWN,
        (12, "num.io.threads"): Fate.UNAFFECTED,
        (13, "num.io.threads"): Fate.TAKEN,
    }
    plan = plan_on(imported)
    assert [broker.id for broker in plan.cluster.brokers] == [4, 5, 6]
    assert (plan.cluster.metadata, plan.cluster.zookeeper_servers) == ("zookeeper", 3)
    assert plan.cluster.settings == {
        "min.insync.replicas": 2,
        "log.retention.ms": 1_800_000,
        "unclean.leader.election.enable": True,
        "num.io.threads": 16,
    }


def test_several_files_are_a_broker_each_with_what_differs() -> None:
    files = []
    for number, rack, threads in ((1, "a", 8), (2, "b", 4)):
        lines = (
            *(f"node.id={number}", f"broker.rack={rack}", f"num.io.threads={threads}"),
            *("process.roles=broker,controller", "controller.quorum.voters=1@a:1,2@b:1"),
            *("min.insync.replicas=2", "request.timeout.ms=9000"),
        )
        files.append((f"{number}.properties", "\n".join(lines)))
    imported = import_texts(files)
    plan = plan_on(imported)
    own = [(broker.id, broker.rack, dict(broker.settings)) for broker in plan.cluster.brokers]
    assert own == [
        (1, "a", {"num.io.threads": 8, "request.timeout.ms": 9000}),
        (2, "b", {"num.io.threads": 4, "request.timeout.ms": 9000}),
    ]
    assert plan.cluster.settings == {"min.insync.replicas": 2}
    # A broker's request.timeout.ms is not that of the clients.
    assert "request.timeout.ms" not in plan.producers[0].settings
    assert (plan.cluster.metadata, plan.cluster.voters, plan.cluster.combined) == ("kraft", 2, True)
    assert {line.fate for line in imported.lines} == {Fate.TAKEN}


def test_brokers_may_lack_a_rack_that_others_have() -> None:
    files = [(f"{number}.properties", f"broker.id={number}\n") for number in (1, 2)]
    files.append(("3.properties", "broker.id=3\nbroker.rack=a\n"))
    racks = {broker.id: broker.rack for broker in plan_on(import_texts(files)).cluster.brokers}
    assert racks == {1: None, 2: None, 3: "a"}


def test_a_setting_that_needs_one_that_is_not_taken_over_stays_out_of_the_file_too() -> None:
    producer = "acks=all\nclient.rack=a\npartitioner.rack.aware=true\n"
    imported = import_texts([("s", "node.id=1\n"), ("producer.properties", producer)], release="4.4")
    assert fates(imported)[2, "client.rack"] == Fate.LACKING
    assert fates(imported)[3, "partitioner.rack.aware"] == Fate.LACKING
    assert plan_on(imported).producers[0].settings == {"acks": "all"}


def test_producers_and_consumers_keep_their_own_values_of_a_setting_that_both_have() -> None:
    """The default of request.timeout.ms is longer than this delivery.timeout.ms."""
    files = [
        ("producer.properties", "acks=all\nrequest.timeout.ms=10000\ndelivery.timeout.ms=20000\n"),
        ("consumer.properties", "request.timeout.ms=7000\nmax.poll.records=5\n"),
    ]
    imported = import_texts(files)
    assert {line.fate for line in imported.lines} == {Fate.TAKEN}
    text = "name: x\ncluster: c.yaml\nworkload: {producers: [{}], consumers: [{}]}"
    (plan,) = load_text(text, "x.yaml", cluster_files={"c.yaml": imported.text}).plans
    assert plan.producers[0].settings["request.timeout.ms"] == 10_000
    assert plan.consumers[0].settings["request.timeout.ms"] == 7_000


@pytest.mark.parametrize(
    ("value", "hides"),
    [
        (
            "partition.assignment.strategy=com.example.OwnAssignor",
            "how assignors of your own spread partitions",
        ),
        ("auto.offset.reset=by_duration:PT1H", "where a consumer without a position begins"),
        ("max.poll.records=0", None),
        ("auto.offset.reset=sometimes", None),
    ],
)
def test_a_value_that_only_kafka_has_is_no_mistake(value: str, hides: str | None) -> None:
    files = [("server.properties", SERVER), ("consumer.properties", f"group.id=g\n{value}\n")]
    if hides is None:
        with pytest.raises(CampaignError, match=r"^consumer.properties:2:1: "):
            import_texts(files)
        return
    (line,) = (line for line in import_texts(files).lines if f"{line.entry.name}={line.entry.value}" == value)
    assert line.fate == Fate.LACKING
    assert line.note.endswith(f": {hides}")


def test_the_settings_of_clients_are_taken_over_unless_they_would_reach_others() -> None:
    producer = (
        "bootstrap.servers=b:9092\nacks=all\nlinger.ms=20\nrequest.timeout.ms=1000\ntransactional.id=t\n"
    )
    imported = import_texts([("producer.properties", producer)])
    assert plan_on(imported).producers[0].settings == {
        "acks": "all",
        "linger.ms": 20,
        "request.timeout.ms": 1000,
    }
    assert [line.fate for line in imported.lines] == [Fate.UNAFFECTED, *[Fate.TAKEN] * 3, Fate.LACKING]


def test_nothing_is_taken_over_from_a_controller_in_which_it_differs_from_the_brokers() -> None:
    common = "controller.quorum.voters=9@c:1\nnum.io.threads=4\n"
    broker = f"node.id=1\nprocess.roles=broker\n{common}num.network.threads=2\n"
    controller = f"node.id=9\nprocess.roles=controller\n{common}num.network.threads=7\n"
    imported = import_texts([("b", broker), ("c", controller)], brokers=1)
    plan = plan_on(imported)
    assert plan.cluster.settings == {"num.io.threads": 4, "num.network.threads": 2}
    assert [broker.id for broker in plan.cluster.brokers] == [1]
    assert (plan.cluster.voters, plan.cluster.combined) == (1, False)
    others = [
        (line.entry.file, line.entry.name, line.fate) for line in imported.lines if line.fate != Fate.TAKEN
    ]
    assert others == [("c", "node.id", Fate.UNAFFECTED), ("c", "num.network.threads", Fate.LACKING)]


def test_a_wrong_value_has_its_place() -> None:
    with pytest.raises(CampaignError, match=r"server.properties:1:1: node.id: expected a whole number"):
        import_texts([("server.properties", "node.id=${ID}\nnum.io.threads=1\n")])
    with pytest.raises(CampaignError, match=r"1.properties, 2.properties: duplicate broker 1"):
        import_texts([("1.properties", "node.id=1\n"), ("2.properties", "node.id=1\n")])
    with pytest.raises(CampaignError, match=r"server.properties:2:1: num.io.threads: "):
        import_texts([("server.properties", "broker.id=1\nnum.io.threads=many\n")])
    assert description_of("notes.txt", "hello world\n") is None


@pytest.mark.parametrize(
    "line",
    [
        f"node.id={'9' * 5000}",
        "node.id=1001",
        "node.id=-2",
        "node.id=\u0663",
        f"num.io.threads={'9' * 5000}",
        f"log.retention.hours={'9' * 5000}",
        "log.retention.hours=2147483648",
        "log.retention.hours=10s",
        "log.retention.minutes=0",
        "log.retention.ms=0",
        "log.roll.hours=0",
        "replica.lag.time.max.ms=30s",
        "unclean.leader.election.enable=perhaps",
    ],
)
def test_a_value_that_kafka_or_the_model_refuses_has_its_file_and_line(line: str) -> None:
    with pytest.raises(CampaignError) as refused:
        import_texts([("s.properties", f"min.insync.replicas=2\n{line}\n")])
    (problem,) = refused.value.problems
    assert str(problem).startswith(f"s.properties:2:1: {line.partition('=')[0]}: ")
    assert len(str(problem)) < 250


def test_a_value_that_kafka_refuses_is_said_so_even_if_the_model_lacks_the_setting() -> None:
    text = "node.id=1\nlog.cleaner.threads=-1\nnum.recovery.threads.per.data.dir=x\ndelete.topic.enable=yes\nsecurity.inter.broker.protocol=NONE\nmax.connections=1\n"
    notes = {line.entry.name: line.note for line in import_texts([("s", text)]).lines}
    assert notes["log.cleaner.threads"].endswith("refuses the value: at least 0")
    assert notes["num.recovery.threads.per.data.dir"].endswith("refuses the value: expected a number")
    assert notes["delete.topic.enable"].endswith("refuses the value: expected true or false")
    assert "expected one of PLAINTEXT" in notes["security.inter.broker.protocol"]
    assert notes["max.connections"] == "connections that a broker refuses"


def test_numbers_are_read_as_java_reads_them() -> None:
    imported = import_texts([("s", "node.id=007\nmin.insync.replicas=+2\nlog.retention.hours=-1\n")])
    plan = plan_on(imported)
    assert plan.cluster.brokers[0].id == 7
    assert plan.cluster.settings == {"min.insync.replicas": 2, "log.retention.ms": -1}


def test_a_broker_whose_id_kafka_generates_gets_one_from_0_on() -> None:
    imported = import_texts([("s", "broker.id=-1\nzookeeper.connect=z:2181\n")], brokers=2)
    assert [broker.id for broker in plan_on(imported).cluster.brokers] == [0, 1]
    assert fates(imported)[1, "broker.id"] == Fate.LACKING


@pytest.mark.parametrize(
    ("release", "taken"),
    [
        ("2.4", set()),
        ("2.8", {"node.id"}),
        ("3.9", {"node.id", "process.roles", "controller.quorum.voters"}),
    ],
)
def test_settings_of_the_other_way_to_keep_metadata_are_not_taken_over(release: str, taken: set[str]) -> None:
    text = "node.id=4\nprocess.roles=broker\ncontroller.quorum.voters=1@a:9093\nzookeeper.connect=z:2181\n"
    imported = import_texts([("s", text)], release=release, brokers=1)
    assert {line.entry.name for line in imported.lines if line.fate == Fate.TAKEN} == taken
    (broker,) = plan_on(imported).cluster.brokers
    assert broker.id == (4 if "node.id" in taken else 0)
    assert ("kraft" in imported.text) == ("process.roles" in taken)


@pytest.mark.parametrize("scope", ["producer", "consumer"])
def test_a_setting_is_taken_over_only_if_all_clients_of_a_kind_have_that_value(scope: str) -> None:
    same, differs = {
        "producer": ("linger.ms=5\n", ("acks=all\n", "acks=1\n", "")),
        "consumer": ("auto.commit.interval.ms=5\n", ("max.poll.records=7\n", "max.poll.records=8\n", "")),
    }[scope]
    for other in differs[1:]:
        imported = import_texts([("one", same + differs[0]), ("two", same + other)])
        taken = {line.entry.name for line in imported.lines if line.fate == Fate.TAKEN}
        assert taken == {same.partition("=")[0]}
        assert differs[0].partition("=")[0] not in imported.text
        assert plan_on(imported).producers


def test_the_model_has_each_setting_only_in_releases_in_which_kafka_has_it() -> None:
    extra = {
        (scope, name, release)
        for (scope, name), setting in SETTINGS.items()
        for release in RELEASES
        if releases_with(name, (scope,))
        and setting.exists_in(release)
        and not kafka_has(scope, name, release)
    }
    assert extra == set()


def test_every_setting_that_the_model_lacks_says_what_that_can_hide_or_that_it_hides_nothing() -> None:
    silent = {
        name
        for scope, name in setting_names()
        if (scope, name) not in SETTINGS and not is_without_effect(name) and not hidden_without(name)
    }
    # These decide which brokers there are, or another unit of a setting that the model has.
    topology = {"broker.id", "node.id", "broker.rack", "process.roles", "zookeeper.connect"}
    assert silent == {*topology, *OTHER_UNITS}


def test_only_settings_without_a_config_definition_are_unknown_to_the_table_of_kafkas_settings() -> None:
    unknown = {name for scope, name in SETTINGS if not releases_with(name, (scope,))}
    # Kafka sets the rates only at run time, and 0.8 is older than the table.
    assert unknown == {
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.lag.max.messages",
    }


def test_a_setting_of_kafka_that_the_model_lacks_is_no_misspelling() -> None:
    text = """\
settings:
  compression.type: zstd
  ssl.protocol: TLSv1.3
  background.threads: 1
  zookeeper.set.acl: true
  acsk: all
"""
    with pytest.raises(CampaignError) as refused:
        load_text(text, "x.yaml", ["buffer.memory=1"])
    option, *others = (problem.message for problem in refused.value.problems)
    hidden = "; Kafka has it and the model lacks it, which can hide"
    assert option.endswith(
        f"`buffer.memory`{hidden} a producer that blocks, or fails sends, because its memory is full"
    )
    assert others == [
        f"unknown setting `compression.type`{hidden} the bytes that compression saves on disks and links",
        "unknown setting `ssl.protocol`; Kafka has it and the model is not affected: leave it out",
        f"unknown setting `background.threads`{hidden} how long work waits for a thread",
        "unknown setting `zookeeper.set.acl`; Kafka has it and the model is not affected: leave it out",
        "unknown setting `acsk`; did you mean `acks`?",
    ]

"""`harrow import` as a process."""

import json
from pathlib import Path

from harrow.campaigns.language.loader import load_text
from tests.cli.conftest import Harrow

SERVER = "broker.id=1\nzookeeper.connect=z:2181\nmin.insync.replicas=2\nlog.dirs=/d\nnum.replica.fetchers=1\nfoo=\x1b[31m\n"


def test_import_prints_four_lists_and_writes_a_cluster_file(harrow: Harrow, folder: Path) -> None:
    (folder / "server.properties").write_text(SERVER, encoding="utf-8")
    ended = harrow("import", "server.properties", "-o", "mine.yaml", "--brokers", "2")
    assert (ended.returncode, ended.stderr) == (
        0,
        "harrow: see what it survives: harrow assess mine.yaml\n",
    )
    assert ended.stdout.splitlines() == [
        "Kafka 3.9; 6 lines",
        "taken over: 3",
        "  server.properties:1 `broker.id=1`",
        "  server.properties:2 `zookeeper.connect=z:2181`",
        "  server.properties:3 `min.insync.replicas=2`",
        "Kafka has it and the model is not affected: 1",
        "  server.properties:4 `log.dirs=/d`",
        "Kafka has it and the model lacks it: 1",
        "  server.properties:5 `num.replica.fetchers=1` (how fast a follower with many partitions catches up)",
        "no such setting in this release: 1",
        "  server.properties:6 `foo=\\x1b[31m`",
    ]
    assert harrow("validate", "mine.yaml").returncode == 0
    assert harrow("run", "calm.yaml", "--cluster", "mine.yaml").returncode == 0
    again = harrow("import", "server.properties", "-o", "mine.yaml")
    assert (again.returncode, again.stdout) == (2, "")
    assert "mine.yaml already exists" in again.stderr


def test_a_quiet_import_prints_no_messages(harrow: Harrow, folder: Path) -> None:
    (folder / "server.properties").write_text(SERVER, encoding="utf-8")
    loud = harrow("import", "server.properties", "-o", "loud.yaml")
    quiet = harrow("import", "server.properties", "-o", "quiet.yaml", "-q")
    assert loud.stderr
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, loud.stdout, "")


def test_a_setting_that_several_brokers_share_is_one_line_of_the_lists(harrow: Harrow, folder: Path) -> None:
    broker = (
        "    image: apache/kafka:3.9.0\n    environment: {{KAFKA_NODE_ID: {id}, KAFKA_NUM_IO_THREADS: 4}}\n"
    )
    services = "".join(f"  kafka-{number}:\n{broker.format(id=number)}" for number in (1, 2))
    (folder / "compose.yml").write_text(f"services:\n{services}", encoding="utf-8")
    shown = harrow("import", "compose.yml", "-o", "mine.yaml").stdout
    assert "  compose.yml:4,7 `num.io.threads=4`\n" in shown
    assert "  compose.yml:4 `node.id=1`\n  compose.yml:7 `node.id=2`\n" in shown.replace(
        "  compose.yml:4,7 `num.io.threads=4`\n", ""
    )


def test_import_refuses_what_it_cannot_read_in_one_line(harrow: Harrow, folder: Path) -> None:
    (folder / "notes.properties").write_text("hello=world\n", encoding="utf-8")
    (folder / "wrong.properties").write_text("broker.id=1\nnum.io.threads=x\n", encoding="utf-8")
    large = "\u00e9" * 9_000_000  # more than 16 MiB of bytes, but fewer characters
    (folder / "large.properties").write_text(f"broker.id=1\n# {large}\nacks=all\n", encoding="utf-8")
    (folder / "digits.properties").write_text(f"broker.id={'9' * 5000}\n", encoding="utf-8")
    for name in (
        "large.properties",
        "digits.properties",
        "missing.properties",
        "notes.properties",
        "wrong.properties",
    ):
        ended = harrow("import", name)
        assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
        assert name in ended.stderr


def test_import_prints_no_secret(harrow: Harrow, folder: Path) -> None:
    secrets = {
        "ssl.keystore.password": "hunter2hunter2",
        "ssl.keystore.key": "hunter2hunter2",
        "sasl.jaas.config": 'org.x required username="a" password="hunter2hunter2";',
        "unknown.secret": "hunter2hunter2",
        "metric.reporters": "https://name:hunter2hunter2@host/",
    }
    text = "".join(f"{name}={value}\n" for name, value in secrets.items())
    (folder / "server.properties").write_text(f"broker.id=1\n{text}", encoding="utf-8")
    ended = harrow("import", "server.properties", "-o", "mine.yaml")
    assert ended.returncode == 0
    assert all(name in ended.stdout for name in secrets)
    assert "hunter2" not in ended.stdout + ended.stderr + (folder / "mine.yaml").read_text(encoding="utf-8")


def test_the_lists_are_also_json(harrow: Harrow, folder: Path) -> None:
    (folder / "server.properties").write_text("broker.id=1\nsome.password=hunter2hunter2\n", encoding="utf-8")
    document = json.loads(harrow("import", "server.properties", "-o", "json.yaml", "--format", "json").stdout)
    position = {"file": "server.properties", "line": 1, "name": "broker.id", "value": "1"}
    assert document["lines"][0] == {**position, "fate": "taken", "note": ""}
    assert (document["lines"][1]["value"], document["kafka"]) == ("...", "4.4")


def test_a_new_campaign_has_the_settings_of_each_client(harrow: Harrow, folder: Path) -> None:
    files = {
        "server": "node.id=1\nmin.insync.replicas=2\n",
        "producer": "linger.ms=5\nrequest.timeout.ms=1000\nkey.serializer=x\nbatch.size=100\n",
        "consumer": "group.id=readers\nrequest.timeout.ms=9000\nkey.deserializer=x\n",
    }
    options = []
    for name, text in files.items():
        (folder / f"{name}.properties").write_text(text, encoding="utf-8")
        options += ["--from", f"{name}.properties"]
    assert harrow("new", "ours", *options).returncode == 0
    (plan,) = load_text((folder / "ours.yaml").read_text(encoding="utf-8"), "ours.yaml").plans
    assert plan.cluster.settings == {"min.insync.replicas": 2}
    assert plan.producers[0].settings["request.timeout.ms"] == 1_000
    assert plan.consumers[0].settings == {"group.id": "readers", "request.timeout.ms": 9_000}


def test_the_number_of_brokers_is_noted_only_where_harrow_assumes_it(harrow: Harrow, folder: Path) -> None:
    (folder / "server.properties").write_text("broker.id=0\n", encoding="utf-8")
    note = "the file of one broker stands for 3"
    assert note in harrow("import", "server.properties", "-o", "a.yaml").stderr
    assert note in harrow("assess", "server.properties", "--show", "broker-dies", "--runs", "1").stderr
    assert "stands for" not in harrow("import", "server.properties", "-o", "b.yaml", "--brokers", "2").stderr

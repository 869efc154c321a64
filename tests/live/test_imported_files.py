"""What `harrow import` takes over from files is what a broker with these files reports."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from harrow.campaigns.sources.cluster_import import import_cluster
from harrow.campaigns.sources.description import Fate
from harrow.campaigns.sources.kinds import description_of
from harrow.cluster_model.settings import BROKER, SETTINGS
from harrow.live_cluster.local.java_program import OPTIONS, class_path, properties
from harrow.live_cluster.local.kraft_controller import new_uuid
from harrow.live_cluster.local.started_brokers import StartedBrokers
from harrow.live_cluster.processes.ports import Ports
from harrow.live_cluster.releases.kafka_release import KRAFT
from harrow.live_cluster.users.surveyed_cluster import surveyed_cluster
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.survey import ReportedSetting, Survey, reported_settings, survey_cluster
from tests.campaigns.sources.texts import plan_on
from tests.live.conftest import Wait

SERVER = """\
process.roles=broker,controller
node.id=7
broker.rack = east
controller.quorum.voters=7@127.0.0.1:{control}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={logs}/a,{logs}/b
log.cleaner.dedupe.buffer.size=4194304
num.network.threads=3
num.io.threads=08
min.insync.replicas=2
unclean.leader.election.enable=true
log.retention.hours=48
log.retention.check.interval.ms=60000
log.segment.bytes=1048576
log.cleanup.policy=compact,delete
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
num.partitions=4
compression.type=zstd
nonsense.setting=1
"""
COMPOSE = """\
services:
  kafka:
    image: apache/kafka:3.9.0
    environment:
      KAFKA_PROCESS_ROLES: broker,controller
      KAFKA_NODE_ID: 7
      KAFKA_CONTROLLER_QUORUM_VOTERS: 7@127.0.0.1:{control}
      KAFKA_CONTROLLER_LISTENER_NAMES: CONTROLLER
      KAFKA_LISTENERS: PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
      KAFKA_LOG_DIRS: {logs}/a
      KAFKA_LOG_CLEANER_DEDUPE_BUFFER_SIZE: 4194304
      KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS: 0
      KAFKA_MIN_INSYNC_REPLICAS: 1
      KAFKA_REPLICA_LAG_TIME_MAX_MS: 20000
      KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR: 1
"""


@contextmanager
def broker_with(settings: dict[str, str], brokers: StartedBrokers, folder: Path) -> Iterator[None]:
    file = folder / "server.properties"
    file.write_text(properties(settings), encoding="utf-8")
    java = (str(brokers.java), *OPTIONS, "-cp", class_path(brokers.jars))
    format_command = (
        *java,
        "kafka.tools.StorageTool",
        "format",
        "--cluster-id",
        new_uuid(),
        "--config",
        file,
    )
    subprocess.run(format_command, check=True, stdout=subprocess.DEVNULL)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen((*java, "kafka.Kafka", file), cwd=folder, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.kill()
            process.wait()


@pytest.mark.parametrize("source", [SERVER, COMPOSE], ids=["properties", "compose"])
def test_a_broker_reports_every_value_that_an_import_takes_over_from_its_files(
    brokers: StartedBrokers, source: str, tmp_path: Path, wait_until: Wait
) -> None:
    if brokers.metadata != KRAFT:
        pytest.skip("the files are those of KRaft")
    with Ports() as ports:
        port, control = ports.reserve(), ports.reserve()
        text = source.format(port=port, control=control, logs=tmp_path)
        description = description_of(str(tmp_path / "source"), text)
        assert description is not None
        settings = {entry.name: entry.value for entry in description.servers[0].entries}
        answers: list[tuple[Survey, dict[str, ReportedSetting]]] = []

        def answers_come() -> bool:
            with suppress(ConnectionLostError), BrokerConnection(("127.0.0.1", port), timeout_s=5) as link:
                survey = survey_cluster(link)
                if survey.brokers:
                    answers.append((survey, reported_settings(link, 7)))
            return bool(answers)

        with broker_with(settings, brokers, tmp_path):
            wait_until(answers_come)
    ((survey, reported),) = answers
    release = brokers.release.model_release
    imported = import_cluster([("source", description)], release=release, brokers=1)
    taken = {
        line.entry.name: line.entry.value
        for line in imported.lines
        if line.fate == Fate.TAKEN and line.entry.name in settings
    }
    assert len(taken) >= 6
    different = {
        name: (value, reported[name].value)
        for name, value in taken.items()
        if not same(value, reported[name].value)
    }
    assert different == {}
    # What the broker says about itself makes the same cluster.
    live = import_cluster([("live", surveyed_cluster("live", survey, {7: reported}, {}))], release=release)
    ours, theirs = plan_on(imported).cluster, plan_on(live).cluster
    assert (ours.brokers, ours.disk, ours.metadata, ours.voters, ours.combined) == (
        *(theirs.brokers, theirs.disk, theirs.metadata, theirs.voters, theirs.combined),
    )
    for name, value in ours.settings.items():
        assert theirs.settings.get(name, SETTINGS[BROKER, name].default(release)) == value, name


def same(value: str, reported: str) -> bool:
    return value == reported or (value.isdigit() and reported.isdigit() and int(value) == int(reported))

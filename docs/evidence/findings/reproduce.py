"""Two flaws of current Kafka on three real brokers, caused by signals alone, without harrow.

    python reproduce.py re-elected-leader JARS FOLDER
    python reproduce.py reverted-log-start JARS FOLDER

JARS is a folder with all jars of a release from 3.7 on, such as ``libs/`` of its distribution.
FOLDER is new and gets the data and the brokers' logs. The script needs Java 17 and confluent-kafka,
and one to two minutes. It prints its observations, and exits with 0 if the acknowledged record is
lost, and with 1 if not: the exact length of each pause depends on the machine, so try again.
"""

import argparse
import base64
import json
import signal
import struct
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

BROKERS: Final = (0, 1, 2)
CONTROLLER: Final = 9
TOPIC: Final = "t"
JAVA: Final = (
    *("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    "-Dlog4j.shutdownHookEnabled=false",  # keep what a broker logs while it stops
)
PATIENCE_S: Final = 120.0

LOG4J: Final = """\
appender.stdout.type=Console
appender.stdout.name=stdout
appender.stdout.layout.type=PatternLayout
appender.stdout.layout.pattern=[%d] %p %m (%c)%n
rootLogger.level=INFO
rootLogger.appenderRef.stdout.ref=stdout
"""
NODE_PROPERTIES: Final = """\
process.roles={role}
node.id={node}
listeners={listener}://127.0.0.1:{port}
controller.listener.names=CONTROLLER
controller.quorum.voters={controller}@127.0.0.1:{controller_port}
log.dirs={folder}/data
"""
BROKER_PROPERTIES: Final = """\
offsets.topic.num.partitions=3
log.cleaner.dedupe.buffer.size=4194304
auto.leader.rebalance.enable=false
"""
"""A small offsets topic, and no leader that moves by itself; other settings have defaults."""

PRODUCER: Final = """\
import json, sys
from confluent_kafka import Producer
producer = Producer({
    "bootstrap.servers": sys.argv[1], "acks": "all", "enable.idempotence": True, "linger.ms": 0,
    "delivery.timeout.ms": 600000, "request.timeout.ms": 5000, "log_level": 2,
})
producer.list_topics("t", timeout=20)
print("ready", flush=True)
def tell(error, message):
    report = {"value": message.value().decode(), "offset": message.offset(), "error": error and str(error)}
    print(json.dumps(report), flush=True)
for line in sys.stdin:
    producer.produce("t", line.strip().encode(), partition=0, on_delivery=tell)
    while len(producer):
        producer.poll(0.05)
"""
"""A producer in its own process, which can be paused like a broker."""

Record = tuple[int, int, str]
"""Offset, leader epoch and value of a record."""
State = tuple[int, list[int]] | None
"""Leader and ISR of the partition, None if no broker reports them."""

start_s = time.monotonic()


def say(*words: object) -> None:
    print(f"{time.monotonic() - start_s:7.2f}s", *words, flush=True)


class Cluster:
    """A controller and three brokers of KRaft on loopback, each with its own folder."""

    def __init__(self, jars: Path, folder: Path, first_port: int) -> None:
        self._jars = jars.resolve()
        self._folder = folder.resolve()
        self._first_port = first_port
        self._id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._folder.mkdir(parents=True)

    def start(self, node: int) -> None:
        """Start a node. Format its storage before its first start."""
        folder = self._folder / str(node)
        properties = folder / "server.properties"
        if not folder.exists():
            folder.mkdir()
            is_broker = node != CONTROLLER
            text = NODE_PROPERTIES.format(
                role="broker" if is_broker else "controller",
                listener="PLAINTEXT" if is_broker else "CONTROLLER",
                node=node,
                port=self._first_port + node,
                controller=CONTROLLER,
                controller_port=self._first_port + CONTROLLER,
                folder=folder,
            )
            properties.write_text(text + BROKER_PROPERTIES * is_broker)
            (folder / "log4j2.properties").write_text(LOG4J)
            format_arguments = ("format", "--cluster-id", self._id, "--config", str(properties))
            if self._java(folder, "kafka.tools.StorageTool", *format_arguments).wait():
                raise SystemExit((folder / "log").read_text())
        self._processes[node] = self._java(folder, "kafka.Kafka", str(properties))

    def _java(self, folder: Path, *arguments: str) -> "subprocess.Popen[bytes]":
        logging = f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"
        with (folder / "log").open("ab") as log:
            command = (*JAVA, logging, "-cp", f"{self._jars}/*", *arguments)
            return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)  # noqa: S603 - see above

    def signal(self, node: int, number: signal.Signals) -> None:
        self._processes[node].send_signal(number)

    def kill(self, node: int) -> None:
        self.signal(node, signal.SIGKILL)
        self.wait(node)

    def wait(self, node: int) -> None:
        self._processes[node].wait()

    def close(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()

    def addresses(self, *brokers: int) -> str:
        return ",".join(f"127.0.0.1:{self._first_port + broker}" for broker in brokers or BROKERS)

    def admin(self, *brokers: int) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.addresses(*brokers), "log_level": 0})

    def state(self, *brokers: int) -> State:
        """Return leader and ISR as these brokers, or any broker, report them."""
        try:
            partition = self.admin(*brokers).list_topics(TOPIC, timeout=5).topics[TOPIC].partitions[0]
        except (KafkaException, KeyError):
            return None
        return partition.leader, sorted(partition.isrs)

    def create_topic(self) -> None:
        """Wait for all brokers, and create the topic. Its preferred leader is broker 0."""
        admin = self.admin()
        wait_until(lambda: len(brokers_of(admin)) == len(BROKERS), "three brokers")
        topic = NewTopic(
            TOPIC, num_partitions=1, replica_assignment=[[*BROKERS]], config={"min.insync.replicas": "2"}
        )
        admin.create_topics([topic])[TOPIC].result(30)
        wait_until(lambda: self.state() == (0, [*BROKERS]), "the topic")

    def admin_beside(self, paused: int) -> AdminClient:
        """Return an administrator that does not use the broker that is about to be paused.

        An administrator sends its requests to the broker that metadata names as the controller.
        With KRaft, that is a random broker.
        """
        others = tuple(broker for broker in BROKERS if broker != paused)
        while True:
            admin = self.admin(*others)
            if admin.list_topics(timeout=5).controller_id in others:
                return admin

    def log_text(self, broker: int) -> str:
        """Return what a broker has logged."""
        return (self._folder / str(broker) / "log").read_text()

    def records(self, broker: int) -> list[Record]:
        """Return the records of the partition on a broker's disk."""
        segments = sorted((self._folder / str(broker) / "data" / f"{TOPIC}-0").glob("*.log"))
        return [record for segment in segments for record in records_in(segment.read_bytes())]

    def checkpoint(self, broker: int, name: str) -> list[str]:
        """Return the entries of a checkpoint file: leader epochs, or log starts of the topic."""
        data = self._folder / str(broker) / "data"
        partition_file = data / f"{TOPIC}-0" / name
        file = partition_file if partition_file.exists() else data / name
        lines = file.read_text().splitlines()[2:] if file.exists() else []
        return [line for line in lines if file == partition_file or line.startswith(f"{TOPIC} ")]

    def read(self) -> list[tuple[int, str]]:
        """Return what a consumer reads."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.addresses(),
                "group.id": str(uuid.uuid4()),
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        records = []
        until_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < until_s:
            message = consumer.poll(1)
            if message is None:
                continue
            if message.error():
                break
            records.append((int(message.offset() or 0), (message.value() or b"").decode()))
        consumer.close()
        return records


class Producer:
    """A producer process."""

    def __init__(self, addresses: str) -> None:
        command = (sys.executable, "-c", PRODUCER, addresses)
        self.process = subprocess.Popen(  # noqa: S603 - the command stands above
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._line()

    def send(self, value: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{value}\n")
        self.process.stdin.flush()

    def await_ack(self, value: str) -> None:
        """Wait for the outcome of a record, which has to be an acknowledgement."""
        outcome = json.loads(self._line())
        say("the producer gets:", outcome)
        if outcome["value"] != value or outcome["error"]:
            raise SystemExit(1)

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()


def records_in(data: bytes) -> Iterator[Record]:
    """Yield the records of a segment (record batches of version 2, not compressed)."""
    place = 0
    while place + 61 <= len(data):
        base, size, epoch = struct.unpack_from(">qii", data, place)
        (count,) = struct.unpack_from(">i", data, place + 57)
        at = place + 61
        for _ in range(count):
            length, at = varint(data, at)
            end = at + length
            _, at = varint(data, at + 1)  # skip the attributes and the timestamp
            delta, at = varint(data, at)
            key_size, at = varint(data, at)
            value_size, at = varint(data, at + max(0, key_size))
            yield base + delta, epoch, data[at : at + value_size].decode()
            at = end
        place += 12 + size


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a zigzag number, and the position after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value >> 1 ^ -(value & 1), at


def brokers_of(admin: AdminClient) -> tuple[int, ...]:
    try:
        return tuple(admin.list_topics(timeout=5).brokers)
    except KafkaException:
        return ()


def wait_until(condition: Callable[[], bool], what: str, pause_s: float = 0.3) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > until_s:
            raise SystemExit(f"waited in vain for {what}")
        time.sleep(pause_s)


def elect_preferred_leader(admin: AdminClient) -> None:
    admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(TOPIC, 0)]).result(30)


def re_elected_leader(cluster: Cluster, producers: list[Producer]) -> bool:
    """Let broker 1 lead in epoch 1, pause during epoch 2, and lead again in epoch 3.

    Return whether the record that it acknowledges then is lost.
    """
    cluster.signal(0, signal.SIGTERM)  # so that broker 1 leads
    cluster.wait(0)
    cluster.start(0)
    wait_until(lambda: cluster.state() == (1, [*BROKERS]), "broker 1 to lead")
    producers.append(Producer(cluster.addresses()))
    admin = cluster.admin_beside(1)
    cluster.signal(0, signal.SIGSTOP)
    time.sleep(1.2)  # its last fetch is answered
    producers[0].send("m0")
    wait_until(lambda: all(cluster.records(broker) for broker in (1, 2)), "m0 on brokers 1 and 2", 0.01)
    time.sleep(0.7)  # broker 2 has fetched again, so broker 1 knows that it has m0
    cluster.signal(1, signal.SIGSTOP)
    say("broker 1, which leads, stands still:", [cluster.records(broker) for broker in BROKERS])
    time.sleep(1)  # its fetch of metadata is answered
    cluster.signal(0, signal.SIGCONT)
    time.sleep(0.3)
    elect_preferred_leader(admin)
    wait_until(lambda: not cluster.records(2), "broker 2 to truncate m0", 0.01)
    say("broker 0 is elected, and broker 2 has truncated m0:", [cluster.records(b) for b in BROKERS])
    stopping = "Beginning controlled shutdown"
    before = cluster.log_text(0).count(stopping)
    cluster.signal(2, signal.SIGSTOP)
    cluster.signal(0, signal.SIGTERM)
    wait_until(lambda: cluster.log_text(0).count(stopping) > before, "broker 0 to stop", 0.02)
    time.sleep(0.7)  # the controller has elected broker 1
    cluster.signal(1, signal.SIGCONT)
    say("broker 0 stops, broker 2 stands still, broker 1 goes on")
    producers[0].await_ack("m0")
    say("m0 is acknowledged:", [cluster.records(broker) for broker in BROKERS])
    cluster.kill(1)
    cluster.signal(2, signal.SIGCONT)
    wait_until(lambda: (cluster.state(2) or (None,))[0] == 2, "broker 2 to lead")
    say("broker 1 is killed; leader and ISR:", cluster.state(2))
    cluster.wait(0)
    cluster.start(0)
    cluster.start(1)
    wait_until(lambda: (cluster.state() or (0, []))[1] == [*BROKERS], "all brokers in the ISR")
    say("all brokers are back; leader and ISR:", cluster.state())
    leads = [line for line in cluster.log_text(1).splitlines() if f"Leader {TOPIC}-0" in line]
    print(*leads, sep="\n")
    records = cluster.read()
    say("a consumer reads", records)
    return (0, "m0") not in records


def reverted_log_start(cluster: Cluster, producers: list[Producer]) -> bool:
    """Let broker 0 keep m1 where the others have m2; return whether the acknowledged m1 is lost."""
    producers += [Producer(cluster.addresses()), Producer(cluster.addresses())]
    first, second = producers
    first.send("m0")
    first.await_ack("m0")
    cluster.signal(1, signal.SIGSTOP)
    cluster.signal(2, signal.SIGSTOP)
    time.sleep(1.5)  # their last fetches are answered
    first.send("m1")
    wait_until(lambda: len(cluster.records(0)) == 2, "m1 on broker 0", 0.02)
    first.process.send_signal(signal.SIGSTOP)
    cluster.kill(0)
    say("broker 0 alone has m1, and is killed; its producer stands still:", cluster.records(0))
    cluster.signal(1, signal.SIGCONT)
    cluster.signal(2, signal.SIGCONT)
    wait_until(lambda: cluster.state() in ((1, [1, 2]), (2, [1, 2])), "another leader")
    for value in ("m2", "m3"):
        second.send(value)
        second.await_ack(value)
    admin = cluster.admin()
    for outcome in admin.delete_records([TopicPartition(TOPIC, 0, 2)]).values():
        outcome.result(30)
    epochs, starts = "leader-epoch-checkpoint", "log-start-offset-checkpoint"
    cut = ["1 2"]
    wait_until(lambda: all(cluster.checkpoint(b, epochs) == cut for b in (1, 2)), "DeleteRecords", 0.05)
    say(f"records below offset 2 are deleted: {epochs} {cut}, {starts} {cluster.checkpoint(1, starts)}")
    for broker in (1, 2):
        cluster.kill(broker)
    for broker in (1, 2):
        cluster.start(broker)
    wait_until(lambda: cluster.state() in ((1, [1, 2]), (2, [1, 2])), "brokers 1 and 2")
    say(
        f"brokers 1 and 2 were killed and are back: {epochs} {cluster.checkpoint(1, epochs)},",
        cluster.records(1),
    )
    cluster.start(0)
    wait_until(lambda: (cluster.state() or (0, []))[1] == [*BROKERS], "broker 0 in the ISR")
    say("broker 0 is back in the ISR:", cluster.records(0))
    elect_preferred_leader(cluster.admin_beside(CONTROLLER))
    wait_until(lambda: cluster.state() == (0, [*BROKERS]), "broker 0 to lead")
    say("broker 0 leads, and a consumer reads", cluster.read())
    first.process.send_signal(signal.SIGCONT)
    first.await_ack("m1")
    for broker in BROKERS:
        say(f"broker {broker} has", cluster.records(broker))
    cluster.kill(0)
    wait_until(lambda: (cluster.state() or (0,))[0] in {1, 2}, "another leader")
    records = cluster.read()
    say("broker 0 is killed, and a consumer reads", records)
    return "m1" not in [value for _, value in records]


FLAWS: Final = {"re-elected-leader": re_elected_leader, "reverted-log-start": reverted_log_start}


def main() -> int:
    parser = argparse.ArgumentParser(description="Show a flaw of Kafka on three real brokers.")
    parser.add_argument("flaw", choices=FLAWS)
    parser.add_argument("jars", type=Path, help="the folder with the jars of a release")
    parser.add_argument("folder", type=Path, help="a new folder for data and logs")
    parser.add_argument("--first-port", type=int, default=30100, help="ten ports from here on are used")
    arguments = parser.parse_args()
    cluster = Cluster(arguments.jars, arguments.folder, arguments.first_port)
    producers: list[Producer] = []
    try:
        for node in (CONTROLLER, *BROKERS):
            cluster.start(node)
        cluster.create_topic()
        say("three brokers; leader and ISR:", cluster.state())
        is_lost = FLAWS[arguments.flaw](cluster, producers)
    finally:
        for producer in producers:
            producer.process.kill()
        cluster.close()
    say("LOST" if is_lost else "not lost")
    return 0 if is_lost else 1


if __name__ == "__main__":
    raise SystemExit(main())

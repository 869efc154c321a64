"""A flaw of Kafka 2.7 to 3.9 on ZooKeeper: an ISR that never changes again.

The script shows it on three real brokers, without harrow.

    python stuck_isr.py JARS FOLDER

JARS is a folder with all jars of such a release, such as ``libs/`` of the distribution of 3.9.2.
FOLDER is new and gets the data and the logs. The script needs Java (17 for 3.9), confluent-kafka
and kazoo, and two minutes. A proxy between the controller and ZooKeeper loses one answer. The
script prints its observations, and exits with 0 if the ISR is stuck, and with 1 if not. Then try
again: the time at which a follower counts as slow depends on the machine.
"""

import argparse
import json
import logging
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kazoo.client import KazooClient

CONTROLLER, LEADER, FOLLOWER = BROKERS = (0, 1, 2)
STATE: Final = "/brokers/topics/t/partitions/0/state"
JAVA: Final = ("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
PATIENCE_S: Final = 120.0
RESET: Final = struct.pack("ii", 1, 0)
"""With this value of SO_LINGER, closing a socket resets its connection."""

LOG4J: Final = """\
log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
ZOOKEEPER_PROPERTIES: Final = "dataDir={folder}/data\nclientPort={port}\nadmin.enableServer=false\n"
BROKER_PROPERTIES: Final = """\
broker.id={broker}
listeners=PLAINTEXT://127.0.0.1:{port}
zookeeper.connect=127.0.0.1:{zookeeper}
log.dirs={folder}/data
offsets.topic.num.partitions=3
log.cleaner.dedupe.buffer.size=4194304
auto.leader.rebalance.enable=false
replica.lag.time.max.ms=5000
"""

start_s = time.monotonic()


def say(*words: object) -> None:
    print(f"{time.monotonic() - start_s:7.2f}s", *words, flush=True)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > until_s:
            raise SystemExit(f"waited in vain for {what}")
        time.sleep(0.1)


class Proxy:
    """Stands between the controller and ZooKeeper, and can hold back ZooKeeper's answers."""

    def __init__(self, port: int, target: int) -> None:
        self.holds_answers = False
        self._target = target
        self._open: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self._server.accept()
            zookeeper = socket.create_connection(("127.0.0.1", self._target))
            self._open += [client, zookeeper]
            threading.Thread(target=self._pass_on, args=(client, zookeeper, False), daemon=True).start()
            threading.Thread(target=self._pass_on, args=(zookeeper, client, True), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, are_answers: bool) -> None:
        try:
            while data := source.recv(65536):
                while are_answers and self.holds_answers:
                    time.sleep(0.01)
                target.sendall(data)
        except OSError:
            pass  # It was reset.

    def reset(self) -> None:
        """Break all connections and drop held-back data; later connections are passed on."""
        for each in self._open:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            each.close()
        self._open.clear()
        self.holds_answers = False


class Processes:
    """ZooKeeper and the brokers, each with its own folder."""

    def __init__(self, jars: Path, folder: Path) -> None:
        self._jars = jars.resolve()
        self._folder = folder.resolve()
        self.by_name: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, main: str, properties: str) -> None:
        folder = self._folder / name
        folder.mkdir(parents=True)
        (folder / "properties").write_text(properties.replace("{folder}", str(folder)))
        (folder / "log4j.properties").write_text(LOG4J)
        with (folder / "log").open("ab") as log:
            command = (
                *JAVA,
                f"-Dlog4j.configuration=file:{folder}/log4j.properties",
                "-cp",
                f"{self._jars}/*",
            )
            self.by_name[name] = subprocess.Popen(  # noqa: S603 - see above
                (*command, main, str(folder / "properties")), cwd=folder, stdout=log, stderr=log
            )

    def signal(self, broker: int, number: signal.Signals) -> None:
        self.by_name[str(broker)].send_signal(number)

    def log(self, broker: int, words: str) -> list[str]:
        """Return the lines of a broker's log that contain the *words*."""
        lines = (self._folder / str(broker) / "log").read_text().splitlines()
        return [line for line in lines if words in line]

    def bytes_of(self, broker: int) -> int:
        """Return the size of a broker's log of the partition."""
        return sum(
            file.stat().st_size for file in (self._folder / str(broker) / "data" / "t-0").glob("*.log")
        )

    def close(self) -> None:
        for process in self.by_name.values():
            process.kill()
            process.wait()


class Partition:
    """The partition, as ZooKeeper and the brokers describe it."""

    def __init__(self, zookeeper: KazooClient, addresses: str) -> None:
        self._zookeeper = zookeeper
        self._addresses = addresses

    def in_zookeeper(self) -> tuple[int, list[int]]:
        """Return the version of the znode, and the ISR in it."""
        data, znode_stat = self._zookeeper.get(STATE)
        return znode_stat.version, json.loads(data)["isr"]

    def on_brokers(self) -> tuple[int, list[int]] | None:
        """Return leader and ISR, as brokers report them to clients."""
        admin = AdminClient({"bootstrap.servers": self._addresses, "log_level": 0})
        try:
            partition = admin.list_topics("t", timeout=5).topics["t"].partitions[0]
        except (KafkaException, KeyError):
            return None
        return partition.leader, sorted(partition.isrs)


def started(processes: Processes, port: int) -> tuple[Proxy, KazooClient, str]:
    """Start ZooKeeper and three brokers, the first one as controller, and create the topic."""
    zookeeper_port, proxy_port = port + 9, port + 8
    addresses = ",".join(f"127.0.0.1:{port + broker}" for broker in BROKERS)
    processes.start(
        "zookeeper",
        "org.apache.zookeeper.server.quorum.QuorumPeerMain",
        ZOOKEEPER_PROPERTIES.replace("{port}", str(zookeeper_port)),
    )
    logging.getLogger("kazoo.client").setLevel(logging.ERROR)  # the client retries until ZooKeeper is up
    zookeeper = KazooClient(f"127.0.0.1:{zookeeper_port}")
    zookeeper.start(timeout=PATIENCE_S)
    proxy = Proxy(proxy_port, zookeeper_port)
    for broker in BROKERS:
        text = BROKER_PROPERTIES.replace("{broker}", str(broker)).replace("{port}", str(port + broker))
        target_port = proxy_port if broker == CONTROLLER else zookeeper_port
        processes.start(str(broker), "kafka.Kafka", text.replace("{zookeeper}", str(target_port)))
        if broker == CONTROLLER:
            wait_until(lambda: bool(zookeeper.exists("/controller")), "a controller")
    wait_until(lambda: len(zookeeper.get_children("/brokers/ids")) == len(BROKERS), "three brokers")
    admin = AdminClient({"bootstrap.servers": addresses, "log_level": 0})
    admin.create_topics([NewTopic("t", num_partitions=1, replica_assignment=[[LEADER, FOLLOWER]])])[
        "t"
    ].result(60)
    return proxy, zookeeper, addresses


def is_stuck(processes: Processes, port: int) -> bool:
    """Lose the answer to the write of a smaller ISR; return whether the follower stays out."""
    proxy, zookeeper, addresses = started(processes, port)
    partition = Partition(zookeeper, addresses)
    wait_until(lambda: partition.on_brokers() == (LEADER, [LEADER, FOLLOWER]), "the topic")
    say("leader and ISR:", partition.on_brokers(), "version and ISR in ZooKeeper:", partition.in_zookeeper())
    acked: list[str] = []
    producer = Producer({"bootstrap.servers": addresses, "acks": "all", "linger.ms": 0, "log_level": 0})

    def record_ack(error: KafkaError | None, message: Message) -> None:
        if error is None:
            acked.append((message.value() or b"").decode())

    def send(value: str) -> None:
        producer.produce("t", value.encode(), partition=0, on_delivery=record_ack)
        producer.poll(0)

    send("m0")
    wait_until(lambda: producer.flush(0.1) == 0, "m0")
    processes.signal(FOLLOWER, signal.SIGSTOP)
    time.sleep(1)
    send("m1")
    say("the follower stands still; the leader has m1")
    time.sleep(1)
    proxy.holds_answers = True
    wait_until(lambda: partition.in_zookeeper()[1] == [LEADER], "the smaller ISR in ZooKeeper")
    say(
        "version and ISR in ZooKeeper:",
        partition.in_zookeeper(),
        "- the controller has no answer, and loses its connection",
    )
    proxy.reset()
    wait_until(lambda: bool(processes.log(CONTROLLER, "bad ZK version")), "the second write")
    producer.poll(3)
    say("acknowledged, with min.insync.replicas=1 and the ISR [1] in ZooKeeper:", acked)
    processes.signal(FOLLOWER, signal.SIGCONT)
    wait_until(lambda: producer.flush(0.1) == 0, "m1")
    say("the follower goes on; acknowledged:", acked)
    time.sleep(20)
    sizes = [processes.bytes_of(broker) for broker in (LEADER, FOLLOWER)]
    say("20 s later. Bytes in both logs:", sizes, "version and ISR in ZooKeeper:", partition.in_zookeeper())
    say("leader and ISR, as brokers tell clients:", partition.on_brokers())
    processes.signal(LEADER, signal.SIGKILL)
    wait_until(
        lambda: (partition.on_brokers() or (LEADER,))[0] != LEADER, "the death of the leader to be noticed"
    )
    time.sleep(20)
    end = partition.on_brokers()
    say("20 s after the leader has died: leader and ISR", end)
    print(
        *processes.log(CONTROLLER, "bad ZK version"),
        *processes.log(CONTROLLER, "Failed to elect leader")[:1],
        sep="\n",
    )
    zookeeper.stop()
    return sizes[0] == sizes[1] and end is not None and end[0] not in BROKERS


def main() -> int:
    parser = argparse.ArgumentParser(description="Show an ISR that never changes again.")
    parser.add_argument("jars", type=Path, help="the folder with the jars of a release")
    parser.add_argument("folder", type=Path, help="a new folder for data and logs")
    parser.add_argument("--first-port", type=int, default=30200, help="ten ports from here on are used")
    arguments = parser.parse_args()
    processes = Processes(arguments.jars, arguments.folder)
    try:
        stuck = is_stuck(processes, arguments.first_port)
    finally:
        processes.close()
    say("STUCK" if stuck else "not stuck")
    return 0 if stuck else 1


if __name__ == "__main__":
    raise SystemExit(main())

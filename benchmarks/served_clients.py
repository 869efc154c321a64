"""Runs the same programs on a served cluster and on real brokers, and prints a table of figures.

Run ``python -m benchmarks.served_clients [CLIENT...]``. Clients are librdkafka, kafka-python, java,
franz-go and sarama. The table is that of docs/evidence/served-clients.md.

Each program writes ``--count`` records to three partitions. Then the members of a group read them;
a second member joins after a third of the records. With ``--protocol consumer`` brokers assign the
partitions (KIP-848). At last it writes twenty transactions, four of which it aborts, and reads
them with read_committed. The leader of a partition is killed four seconds after the program
started, and returns five seconds later.

``harrow serve`` judges the clients of the served cluster. The real cluster has brokers of
``--release``, whose jars the Java client uses, too.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.record.markdown import table
from harrow.cluster_model.sim.choices import SeededStream
from harrow.live_cluster.links.link_faults import LinkFaults
from harrow.live_cluster.links.observed_requests import ObservedRequests
from harrow.live_cluster.links.proxy import Proxies
from harrow.live_cluster.local.java_program import class_path
from harrow.live_cluster.local.local_cluster import LocalCluster
from harrow.live_cluster.releases.java import find_java
from harrow.live_cluster.releases.kafka_cache import default_cache
from harrow.live_cluster.releases.kafka_release import release_of
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.observed_metadata import ObservedMetadata

IN_GO: Final = ("franz-go", "sarama")
PROGRAMS: Final = Path(__file__).parent / "served"
KILLED_S: Final = 4
RESTART_S: Final = 5
CAMPAIGN: Final = f"""
name: served-clients
kafka: "{{release}}"
cluster:
  brokers: 3
  topics: [{{name: plain, partitions: 3, replication_factor: 3}}, {{name: paid, replication_factor: 3}}]
settings: {{min.insync.replicas: 2}}
workload: {{producers: [{{name: producer}}], duration: 1h}}
faults:
  - at: {KILLED_S}s
    do: {{broker_crash: {{broker: leader of plain-0, restart_after: {RESTART_S}s}}}}
"""
_JAVA: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
FIGURES: Final = (
    *("acked", "consumed", "shared", "committed", "read_committed", "paid_end"),
    *("produced_s", "consumed_s"),
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clients", nargs="*", default=["librdkafka", "kafka-python", "java", *IN_GO])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--protocol", default="classic", choices=["classic", "consumer"])
    parser.add_argument("--release", default="4.3.1")
    parser.add_argument("--on", default="served real")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for client in options.clients:
            command = [*command_of(client, options.release, Path(folder)), "{bootstrap}"]
            command += [str(options.count), options.protocol]
            for where in options.on.split():
                result = Path(folder) / f"{client}-{where}.json"
                run = {"served": on_served_cluster, "real": on_real_cluster}[where]
                verdict = run([*command, str(result)], options.release, Path(folder))
                # A program that fails leaves no figures.
                figures = json.loads(result.read_text(encoding="utf-8")) if result.exists() else {}
                rows.append((client, where, verdict, *(str(figures.get(name, "")) for name in FIGURES)))
                print(rows[-1], file=sys.stderr)
    print(table(("client", "cluster", "verdict", *FIGURES), rows))


def command_of(client: str, release: str, folder: Path) -> list[str]:
    """Return the command line of a client's program, without its arguments."""
    if client == "java":
        jars = class_path(default_cache().get(release_of(release)))
        return [str(find_java()), *_JAVA, "-cp", jars, str(PROGRAMS / "ServedClient.java")]
    if client in IN_GO:
        program = folder / client
        subprocess.run(  # noqa: S603 - the program is in this repository
            ["go", "build", "-o", str(program)],  # noqa: S607 - the user's Go
            cwd=PROGRAMS / client,
            check=True,
        )
        return [str(program)]
    return [sys.executable, "-m", f"benchmarks.served.{client.replace('-', '_')}"]


def campaign(release: str) -> str:
    """Return the campaign; its release is the model's, such as 4.3."""
    of_model = release_of(release).model_release
    return CAMPAIGN.replace("{release}", of_model)


def on_served_cluster(command: list[str], release: str, folder: Path) -> str:
    """Run a program on a served cluster, and return harrow's verdict."""
    file = folder / "served.yaml"
    file.write_text(campaign(release), encoding="utf-8")
    serve = [sys.executable, "-m", "harrow", "serve", str(file), "--no-results", "--format", "json", "--"]
    done = subprocess.run(  # noqa: S603 - the program is in this repository
        [*serve, *command], stdout=subprocess.PIPE, text=True, check=False
    )
    (run,) = json.loads(done.stdout)["runs"]
    faults = [fault["fault"] for fault in run["faults"]]
    return f"{run['verdict']}, {len(faults)} fault, exit code {done.returncode}"


def on_real_cluster(command: list[str], release: str, folder: Path) -> str:
    """Run a program on real brokers, and return its exit code."""
    (plan,) = load_text(campaign(release), "served.yaml").plans
    with ExitStack() as opened:
        data = Path(opened.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        activity = Activity()
        faults = LinkFaults(SeededStream(0, "network"), lambda *_: None)
        cluster = LocalCluster(
            plan.cluster,
            release=release_of(release),
            java=find_java(),
            jars=default_cache().get(release_of(release)),
            folder=data,
            proxies=opened.enter_context(Proxies(faults, ObservedRequests(lambda *_: None), activity.note)),
            observed_metadata=ObservedMetadata(lambda *_: None),
            metadata=release_of(release).modes[0],
            activity=activity,
        )
        opened.enter_context(cluster)
        cluster.start()
        servers = ",".join(f"{host}:{port}" for host, port in cluster.addresses.values())
        done = threading.Event()
        killer = threading.Thread(target=_kill_leader, args=(cluster, done))
        killer.start()
        words = [word.replace("{bootstrap}", servers) for word in command]
        try:
            code = subprocess.run(words, check=False).returncode  # noqa: S603 - see above
        finally:
            done.set()
            killer.join()
    return f"exit code {code}"


def _kill_leader(cluster: LocalCluster, done: threading.Event) -> None:
    """Kill the leader of plain-0, and start it again."""
    if done.wait(KILLED_S):
        return
    state = cluster.observed_metadata.partition_state("plain-0")
    assert state is not None, "the cluster has started"
    cluster.brokers[state[0]].kill()
    done.wait(RESTART_S)
    cluster.brokers[state[0]].start()


if __name__ == "__main__":
    main()

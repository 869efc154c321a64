"""Runs programs of reported flaws of clients on a served cluster, and prints what harrow finds.

Run ``python -m benchmarks.served_tickets [TICKET...]``. Each ticket has a campaign in
``benchmarks/served/tickets``, whose expectation is what the reporter saw. The table is that of
docs/evidence/served-clients.md. Java clients come from the jars of `harrow kafka get`, and
librdkafka from this environment.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from confluent_kafka import libversion

from harrow.campaigns.record.markdown import table
from harrow.live_cluster.local.java_program import OPTIONS, class_path
from harrow.live_cluster.releases.java import find_java
from harrow.live_cluster.releases.kafka_cache import default_cache
from harrow.live_cluster.releases.kafka_release import release_of

FOLDER: Final = Path(__file__).parent / "served" / "tickets"
JAVA_CLIENTS: Final = (
    *(("kafka-14397", "Kafka14397", release) for release in ("3.6.2", "4.3.1")),
    *(("kafka-19012", "Kafka19012", release) for release in ("4.1.1", "4.1.2")),
)
GO_CLIENTS: Final = (
    ("go-reordering", ".", "go.mod", "sarama"),
    ("go-reordering", ".", "go.mod", "franz-go"),
    ("go-pipelining", "./pipelining", "sarama-1.46.mod", "sarama"),
    ("go-pipelining", "./pipelining", "go.mod", "sarama"),
    ("go-pipelining", "./pipelining", "go.mod", "franz-go"),
)
"""The ticket, the program, the file with the versions of its libraries, and the client."""
_VERSION: Final = {"sarama": r"IBM/sarama v(\S+)", "franz-go": r"twmb/franz-go v(\S+)"}


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            (ticket, client, *verdict_of(ticket, command))
            for ticket, client, command in programs(Path(folder))
            if ticket in sys.argv[1:] or not sys.argv[1:]
        ]
    print(table(("ticket", "client", "verdict", "as expected", "why"), rows))


def programs(folder: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Yield tickets with a client and the command line of its program."""
    for ticket, program, release in JAVA_CLIENTS:
        jars = class_path(default_cache().get(release_of(release)))
        java = [str(find_java()), *OPTIONS, "-cp", jars, str(FOLDER / f"{program}.java")]
        yield ticket, f"Java {release}", java
    yield (
        *("librdkafka-4953", f"librdkafka {libversion()[0]}"),
        [sys.executable, str(FOLDER / "librdkafka_4953.py")],
    )
    for number, (ticket, package, versions, client) in enumerate(GO_CLIENTS):
        binary = folder / f"go-{number}"
        subprocess.run(  # noqa: S603 - the program is in this repository
            ["go", "build", "-modfile", versions, "-o", str(binary), package],  # noqa: S607 - the user's Go
            cwd=FOLDER / "go",
            check=True,
        )
        (version,) = re.findall(_VERSION[client], (FOLDER / "go" / versions).read_text(encoding="utf-8"))
        yield ticket, f"{client} {version}", [str(binary), client]


def verdict_of(ticket: str, command: list[str]) -> tuple[str, str, str]:
    """Run a program on the served cluster of a ticket. Return harrow's verdict on it."""
    options = ["--unique", "value", "--no-results", "--format", "json", "--"]
    serve = [sys.executable, "-m", "harrow", "serve", str(FOLDER / f"{ticket}.yaml"), *options]
    done = subprocess.run(  # noqa: S603 - the program is in this repository
        [*serve, *command, "{bootstrap}"], stdout=subprocess.PIPE, text=True, check=False
    )
    *said, document = done.stdout.partition("{\n")
    print("".join(said[:1]), file=sys.stderr)
    (run,) = json.loads("{\n" + document)["runs"]
    return run["verdict"], "yes" if run["expected"] else "no", run["reason"]


if __name__ == "__main__":
    main()

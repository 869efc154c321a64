"""The commands of the pages about spark-submit and Spark Connect, with hosts of this machine."""

import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks.sweep import rows_of
from harrow.campaigns.storage.location import location
from tests.cli.docs_pages import Command, difference, read_page
from tests.cli.test_docs_commands import run_in_shell
from tests.plain_environment import PYTHONPATH, ROOT, plain_environment
from tests.properties.correct_history import lines, random_history
from tests.s3_server import s3_server
from tests.spark.connect_server import connect_server
from tests.spark.standalone_cluster import ENVIRONMENT, standalone_cluster
from tests.spark.test_spark_sweeps import bare_python

PAGES = [read_page(ROOT / "docs" / "how-to" / name, ROOT) for name in ("spark-submit.md", "spark-connect.md")]
SERVER = next(command for page in PAGES for command in page.commands if "start-connect" in command.text)
UNAVAILABLE = ("--master yarn", SERVER.text)
RUN = [
    command
    for page in PAGES
    for command in page.commands
    if not command.inline
    and command.text.startswith(("harrow ", "spark-submit "))
    and not any(map(command.text.count, UNAVAILABLE))
]
SEEDS = ("0..2000", "0..6")


@dataclass(frozen=True)
class Cluster:
    """Hosts of this machine for those of the pages, and a folder to type commands in."""

    folder: Path
    hosts: dict[str, str]

    def run(self, text: str, before: str = "") -> subprocess.CompletedProcess[str]:
        for named, here in (*self.hosts.items(), SEEDS):
            text, before = text.replace(named, here), before.replace(named, here)
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        environment = {**plain_environment(), **ENVIRONMENT, "PYTHONPATH": PYTHONPATH, "PATH": path}
        return run_in_shell(f"{before}{text}", self.folder, {**environment, "PYTHON": sys.executable})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return a standalone cluster, a Spark Connect server, and an object store with a history."""
    folder = tmp_path_factory.mktemp("pages")
    bare_python(folder / "environment")
    with tarfile.open(folder / "environment.tar.gz", "w:gz") as archive:
        archive.add(folder / "environment", arcname=".")
    server = SERVER.text.replace("spark://host:7077", "local[2]")
    with (
        s3_server() as variables,
        pytest.MonkeyPatch.context() as patch,
        standalone_cluster(1) as standalone,
        connect_server(folder, server) as remote,
    ):
        for name, value in variables.items():
            patch.setenv(name, value)
        place = location("s3://bucket/week-12")
        for number in range(2):
            (place / f"{number}.jsonl").write(HISTORY[number])
        yield Cluster(folder, {"spark://host:7077": standalone.url, "sc://host:15002": remote})


HISTORY = [b"".join([*lines(random_history(1, 40))][number::2]) for number in range(2)]


@pytest.fixture(scope="module")
def expected_rows(cluster: Cluster) -> pa.Table:
    """Return the rows of the sweep of the pages from a pool of processes."""
    ended = cluster.run("harrow sweep swarm --seeds 0..2000 --engine process --out expected")
    assert ended.returncode == 0, ended.stderr
    return rows_of(location(cluster.folder / "expected"))


def before(command: Command) -> str:
    """Return the variables that the page sets before a command."""
    (page,) = (page for page in PAGES if page.name == command.page)
    earlier = (other for other in page.commands if other.line < command.line)
    return "".join(f"{other.text}\n" for other in earlier if other.text.startswith("export "))


@pytest.mark.parametrize("command", RUN, ids=lambda command: f"{command.page}:{command.line}")
def test_a_command_of_the_pages_gives_the_results_of_local_processes(
    command: Command, cluster: Cluster, expected_rows: pa.Table
) -> None:
    ended = cluster.run(command.text, before(command))
    printed = ended.stdout + ended.stderr
    assert ended.returncode == command.exit_code, printed
    if command.shown:
        assert difference(command.shown, printed.splitlines()) is None, printed
    elif " check " in command.text:
        assert re.search(r"held: (\d+) of \1 rules held", printed)
    else:
        *_, out = command.text.split() if " --out " in command.text else sorted(results(cluster.folder))
        assert rows_of(location(out)).equals(expected_rows)
        assert "harrow: tasks at a time: " in printed


def results(folder: Path) -> list[str]:
    return [str(path) for path in folder.glob("results/sweep-*")]


SUBMIT = "spark-submit --master 'local[2]' $(harrow --spark-submit-file) "


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"{SUBMIT} sweep swarm --seeds 0..2 --master local", "--master: has no meaning in spark-submit"),
        (f"{SUBMIT} check week --engine spark --remote sc://h", "--remote: has no meaning in spark-submit"),
        (
            # On Kubernetes, this is how the driver learns that it runs on the cluster.
            f"{SUBMIT} sweep swarm --seeds 0..2 --out swept".replace(
                "--master", "--conf spark.kubernetes.submitInDriver=true --master"
            ),
            "the driver runs on the cluster, and swept would be lost with its disk: give --out a URI",
        ),
    ],
)
def test_wrong_use_of_spark_submit_is_reported_in_one_line(
    cluster: Cluster, command: str, message: str
) -> None:
    (cluster.folder / "week").write_bytes(HISTORY[0])
    ended = cluster.run(command)
    assert ended.returncode == 2, ended.stderr
    (line,) = ended.stdout.splitlines()
    assert message in line

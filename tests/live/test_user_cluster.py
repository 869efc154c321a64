"""A cluster that was started by hand, and a file of shell commands: campaigns run there, and
nothing of them stays."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from harrow.cluster_model.release.switch import version_of
from harrow.live_cluster.local.started_brokers import StartedBrokers
from harrow.live_cluster.users.cluster_file import load_cluster_file
from harrow.live_cluster.users.journal import STATE_VARIABLE, journals
from harrow.live_cluster.users.users_brokers import survey_of
from harrow.live_cluster.users.users_reach import OLDEST
from harrow.live_cluster.wire.connection import ConnectionLostError
from tests.conftest import put
from tests.live.conftest import KILLS, Wait
from tests.live.hand_started import BROKERS, HandStarted
from tests.live.protection import PASSWORD, PASSWORD_VARIABLE, PLAIN, SCRAM
from tests.plain_environment import PYTHONPATH, plain_environment

CAMPAIGN = """
name: bumpy
kafka: "{release}"
cluster: {{brokers: 3, topics: [{{name: t, partitions: 2, replication_factor: 3}}]}}
settings: {{acks: all, min.insync.replicas: 2, retries: 1000}}
workload:
  duration: {duration}
  producers: [{{rate: 20/s}}, {{rate: 10/s, library: kafka-python}}]
  consumers: [{{}}, {{library: kafka-python}}]
faults:
  - {{at: 2s, do: {{broker_crash: {{broker: leader of t-0, restart_after: 2s}}}}}}
  - {{every: 4s, do: {{broker_pause: {{broker: any, duration: 1s}}}}}}
  - {{at: 3s, do: {{partition: {{between: 0, and: 1, duration: 2s}}}}}}
"""

Run = Callable[..., "subprocess.Popen[str]"]


def on(*mechanisms: str | None) -> pytest.MarkDecorator:
    """Have a test run on a cluster that lets in everybody (None), or who has a password, by a
    *mechanism*."""
    names = [mechanism or "open" for mechanism in mechanisms]
    return pytest.mark.parametrize("clusters", mechanisms, indirect=True, ids=names, scope="module")


class Clusters:
    """Has a cluster for one test after the other: the same one, as long as each leaves it as it
    was."""

    def __init__(
        self, folders: pytest.TempPathFactory, brokers: StartedBrokers, mechanism: str | None
    ) -> None:
        self._folders = folders
        self._brokers = brokers
        self._mechanism = mechanism
        self._open = ExitStack()
        self._cluster: HandStarted | None = None

    def ready(self, wait_until: Wait) -> HandStarted:
        """Return a cluster whose brokers are up, and on which no test has left anything."""
        if self._cluster is None or not is_as_it_was(self._cluster):
            self.end()
            folder = self._folders.mktemp("by-hand") / "ours"
            cluster = self._open.enter_context(HandStarted(folder, self._brokers, self._mechanism))
            cluster.start()
            self._cluster = cluster
        found = self._cluster
        wait_until(lambda: is_up(found))
        return found

    def end(self) -> None:
        self._open.close()


def is_up(cluster: HandStarted) -> bool:
    """Return whether each broker answers, and knows all of them: a broker is registered before it
    answers."""
    cluster.start_missing()
    file = load_cluster_file(cluster.file)
    try:
        known = [survey_of(replace(file, bootstrap=(server,))).brokers for server in file.bootstrap]
    except ConnectionLostError:
        return False
    return all(len(brokers) == len(BROKERS) for brokers in known)


def is_as_it_was(cluster: HandStarted) -> bool:
    """Return whether a cluster is as before the first test: a run heals what it has done, and
    deletes its topics."""
    if cluster.cuts() or any(cluster.state(broker) != "up" for broker in BROKERS):
        return False
    try:
        return not topics_of_harrow(cluster)
    except ConnectionLostError:
        return False


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)


@pytest.fixture(scope="module")
def clusters(
    request: pytest.FixtureRequest, brokers: StartedBrokers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Clusters]:
    if version_of(brokers.release.name) < OLDEST:
        pytest.skip("brokers tell leader epochs from 2.1 on")
    shared = Clusters(tmp_path_factory, brokers, request.param)
    yield shared
    shared.end()


@pytest.fixture
def by_hand(clusters: Clusters, wait_until: Wait) -> HandStarted:
    return clusters.ready(wait_until)


@pytest.fixture
def harrow(processes: ExitStack, tmp_path: Path) -> Run:
    def run(*arguments: object) -> "subprocess.Popen[str]":
        state = {STATE_VARIABLE: str(tmp_path / "state")}
        process = subprocess.Popen(
            [sys.executable, "-m", "harrow", *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, **plain_environment(), **state, "PYTHONPATH": PYTHONPATH},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return put(processes, process)

    return run


def campaign(folder: Path, brokers: StartedBrokers, duration: str) -> Path:
    file = folder / "bumpy.yaml"
    file.write_text(CAMPAIGN.format(release=brokers.release.model_release, duration=duration))
    return file


def topics_of_harrow(cluster: HandStarted) -> list[str]:
    seen = survey_of(load_cluster_file(cluster.file))
    return [name for name in seen.assignments if name.startswith("harrow-")]


@on(None, PLAIN, SCRAM)
def test_a_campaign_runs_there_once_it_may(
    by_hand: HandStarted, brokers: StartedBrokers, harrow: Run, wait_until: Wait, tmp_path: Path
) -> None:
    file = campaign(tmp_path, brokers, "8s")
    refused = harrow("run", file, "--target", by_hand.file)
    _, said = refused.communicate()
    assert refused.returncode == 2
    assert "give --yes, or write `allow: [topics, kill, pause, cut]`" in said
    assert topics_of_harrow(by_hand) == []
    ended = harrow("run", file, "--target", by_hand.file, "--yes", "--format", "json")
    text, said = ended.communicate()
    assert ended.returncode == 0, said
    (run,) = json.loads(text)["runs"]
    assert run["target"]["kind"] == "cluster"
    # A client that sends again may store a record twice, or out of order: its settings permit that.
    assert (run["verdict"] in ("held", "permitted"), run["reasons"]) == (True, [])
    # A pause that is meant for the broker that is down finds nothing to do.
    assert {fault["fault"] for fault in run["faults"]} >= {"broker_crash", "partition"}
    leos = {replica["leo"] for partition in run["replicas"].values() for replica in partition.values()}
    assert min(leos) > 0
    assert ([by_hand.state(broker) for broker in BROKERS], by_hand.cuts()) == (["up"] * 3, [])
    wait_until(lambda: not topics_of_harrow(by_hand))


@on(PLAIN, SCRAM)
def test_who_has_the_password_is_let_in(
    by_hand: HandStarted, brokers: StartedBrokers, harrow: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = ("target", "check", by_hand.file, "--set", f"kafka={brokers.release.model_release}")
    checked = harrow(*check)
    told, said = checked.communicate()
    assert (checked.returncode, "can run" in told) == (0, True), said
    monkeypatch.setenv(PASSWORD_VARIABLE, f"not {PASSWORD}")
    refused = harrow(*check)
    _, said = refused.communicate()
    assert (refused.returncode, "it refuses the name or the password" in said) == (2, True), said


@on(None)
def test_all_brokers_come_back_after_they_died_at_once(by_hand: HandStarted, harrow: Run) -> None:
    """With ZooKeeper nobody tells then who is registered, and a broker that is started too early
    ends at once."""
    ran = harrow(
        "run", "any-blackout", "--variant", "base", "--target", by_hand.file, "--yes", "--format", "json"
    )
    text, said = ran.communicate()
    assert ran.returncode == 0, text + said
    assert [by_hand.state(broker) for broker in BROKERS] == ["up"] * 3


@on(None)
def test_a_run_whose_fault_found_nothing_to_act_on_is_inconclusive(
    by_hand: HandStarted, harrow: Run, tmp_path: Path
) -> None:
    file = tmp_path / "untried.yaml"
    file.write_text(
        "name: untried\ncluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}\n"
        "workload: {duration: 4s, producers: [{rate: 10/s}]}\n"
        "faults: [{at: 1s, do: {broker_resume: {broker: 1}}}]\n"
    )
    ran = harrow("run", file, "--target", by_hand.file, "--yes", "--format", "json")
    text, said = ran.communicate()
    assert ran.returncode == 3, text + said
    assert json.loads(text)["runs"][0]["reasons"] == [
        "nothing was tried: broker_resume broker=1 did not strike: it found nothing to act on: broker 1 was running"
    ]


@on(None)
def test_what_it_does_is_among_what_the_model_comes_to(
    by_hand: HandStarted, brokers: StartedBrokers, harrow: Run, wait_until: Wait, tmp_path: Path
) -> None:
    file = campaign(tmp_path, brokers, "8s")
    compared = harrow("conform", file, "--target", by_hand.file, "--yes", "--format", "json")
    text, said = compared.communicate()
    assert compared.returncode == 0, text + said
    (comparison,) = json.loads(text)["comparisons"]
    assert (comparison["status"], comparison["reasons"]) == ("agreed", [])
    assert comparison["modelled"] == 50
    assert [by_hand.state(broker) for broker in BROKERS] == ["up"] * 3
    wait_until(lambda: not topics_of_harrow(by_hand))


@on(None)
def test_what_a_killed_run_has_left_is_healed_each_time(
    by_hand: HandStarted, brokers: StartedBrokers, harrow: Run, wait_until: Wait, tmp_path: Path
) -> None:
    file, state = campaign(tmp_path, brokers, "10m"), tmp_path / "state" / "faults"
    for kill in range(KILLS):
        running = harrow("run", file, "--target", by_hand.file, "--yes", "--seed", kill)
        wait_until(lambda: any('"in_force"' in path.read_text() for path in journals(state)))
        # Between one fault and the next, in the middle of a command, or of what undoes one.
        time.sleep(random.Random(kill).uniform(0, 4))
        assert running.poll() is None, running.communicate()
        running.kill()
        running.communicate()
        healed = harrow("heal", by_hand.file)
        _, said = healed.communicate()
        assert healed.returncode == 0, said
        assert ([by_hand.state(broker) for broker in BROKERS], by_hand.cuts()) == (["up"] * 3, [])
        assert list(journals(state)) == []
        wait_until(lambda: not topics_of_harrow(by_hand))


@on(None)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_whatever_ends_harrow_nothing_stays_in_force(
    by_hand: HandStarted,
    brokers: StartedBrokers,
    harrow: Run,
    wait_until: Wait,
    tmp_path: Path,
    how: signal.Signals,
) -> None:
    file, state = campaign(tmp_path, brokers, "10m"), tmp_path / "state" / "faults"
    running = harrow("run", file, "--target", by_hand.file, "--yes")
    wait_until(lambda: any('"in_force"' in path.read_text() for path in journals(state)))
    running.send_signal(how)
    running.communicate()
    assert running.returncode == 130
    assert ([by_hand.state(broker) for broker in BROKERS], by_hand.cuts()) == (["up"] * 3, [])
    assert list(journals(state)) == []
    # The controller has deleted the topic; brokers may hear of it a little later.
    wait_until(lambda: not topics_of_harrow(by_hand))


@on(None)
def test_a_cluster_is_looked_at_and_told_as_a_campaign(
    by_hand: HandStarted, brokers: StartedBrokers, harrow: Run, tmp_path: Path
) -> None:
    as_of = f"kafka={brokers.release.model_release}"
    checked = harrow("target", "check", by_hand.file, "--set", as_of)
    told, said = checked.communicate()
    assert checked.returncode == 0, said
    assert "can run" in told
    written = harrow("new", "ours", "--from", by_hand.file)
    _, said = written.communicate()
    assert written.returncode == 0, said
    ran = harrow("run", tmp_path / "ours.yaml", "--no-results")
    text, said = ran.communicate()
    assert ran.returncode in (0, 1), text + said

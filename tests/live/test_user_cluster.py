"""Campaigns run on a cluster started by hand through shell commands, and leave nothing behind."""

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
from harrow.live_cluster.users.journal import STATE_VARIABLE, journals
from harrow.live_cluster.users.target_file import load_target_file
from harrow.live_cluster.users.users_brokers import survey_of
from harrow.live_cluster.users.users_reach import FIRST_WITH_LEADER_EPOCHS
from harrow.live_cluster.wire.connection import ConnectionLostError
from tests.conftest import kill_after_test
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
    """Run a test on an open cluster (None) or on one with passwords of a *mechanism*."""
    names = [mechanism or "open" for mechanism in mechanisms]
    return pytest.mark.parametrize("clusters", mechanisms, indirect=True, ids=names, scope="module")


class Clusters:
    """The cluster that successive tests share. After a test that changed it, another one starts."""

    def __init__(
        self, folders: pytest.TempPathFactory, brokers: StartedBrokers, mechanism: str | None
    ) -> None:
        self._folders = folders
        self._brokers = brokers
        self._mechanism = mechanism
        self._open = ExitStack()
        self._cluster: HandStarted | None = None

    def ready(self, wait_until: Wait) -> HandStarted:
        """Return an unchanged cluster with all brokers up."""
        if self._cluster is None or not is_unchanged(self._cluster):
            self.end()
            folder = self._folders.mktemp("by-hand") / "ours"
            cluster = self._open.enter_context(HandStarted(folder, self._brokers, self._mechanism))
            cluster.start()
            self._cluster = cluster
        cluster = self._cluster
        wait_until(lambda: is_up(cluster))
        return cluster

    def end(self) -> None:
        self._open.close()


def is_up(cluster: HandStarted) -> bool:
    """Return whether each broker answers, and lists all brokers.

    A broker is registered before it answers.
    """
    cluster.start_missing()
    file = load_target_file(cluster.file)
    try:
        broker_lists = [survey_of(replace(file, bootstrap=(server,))).brokers for server in file.bootstrap]
    except ConnectionLostError:
        return False
    return all(len(brokers) == len(BROKERS) for brokers in broker_lists)


def is_unchanged(cluster: HandStarted) -> bool:
    """Return whether a cluster has no faults and no topics of harrow."""
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
    if version_of(brokers.release.name) < FIRST_WITH_LEADER_EPOCHS:
        pytest.skip("brokers report leader epochs from 2.1 on")
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
        return kill_after_test(processes, process)

    return run


def campaign(folder: Path, brokers: StartedBrokers, duration: str) -> Path:
    file = folder / "bumpy.yaml"
    file.write_text(CAMPAIGN.format(release=brokers.release.model_release, duration=duration))
    return file


def topics_of_harrow(cluster: HandStarted) -> list[str]:
    survey = survey_of(load_target_file(cluster.file))
    return [name for name in survey.assignments if name.startswith("harrow-")]


@on(None, PLAIN, SCRAM)
def test_a_campaign_runs_on_a_users_cluster_only_with_permission(
    by_hand: HandStarted, brokers: StartedBrokers, harrow: Run, wait_until: Wait, tmp_path: Path
) -> None:
    file = campaign(tmp_path, brokers, "8s")
    refused = harrow("run", file, "--target", by_hand.file)
    _, messages = refused.communicate()
    assert refused.returncode == 2
    assert "give --yes, or write `allow: [topics, kill, pause, cut]`" in messages
    assert topics_of_harrow(by_hand) == []
    ended = harrow("run", file, "--target", by_hand.file, "--yes", "--format", "json")
    text, messages = ended.communicate()
    assert ended.returncode == 0, text + messages
    (run,) = json.loads(text)["runs"]
    assert run["target"]["kind"] == "cluster"
    # The settings permit a retry to store a record twice or out of order.
    assert (run["verdict"] in ("held", "permitted"), run["reasons"]) == (True, [])
    # A pause of the broker that is down has no effect.
    assert {fault["fault"] for fault in run["faults"]} >= {"broker_crash", "partition"}
    leos = {replica["leo"] for partition in run["replicas"].values() for replica in partition.values()}
    assert min(leos) > 0
    assert ([by_hand.state(broker) for broker in BROKERS], by_hand.cuts()) == (["up"] * 3, [])
    wait_until(lambda: not topics_of_harrow(by_hand))


@on(PLAIN, SCRAM)
def test_only_the_right_password_grants_access(
    by_hand: HandStarted, brokers: StartedBrokers, harrow: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = ("target", "check", by_hand.file, "--set", f"kafka={brokers.release.model_release}")
    checked = harrow(*check)
    output, messages = checked.communicate()
    assert (checked.returncode, "can run" in output) == (0, True), messages
    monkeypatch.setenv(PASSWORD_VARIABLE, f"not {PASSWORD}")
    refused = harrow(*check)
    _, messages = refused.communicate()
    assert (refused.returncode, "it refuses the name or the password" in messages) == (2, True), messages


@on(None)
def test_all_brokers_return_after_they_died_together(by_hand: HandStarted, harrow: Run) -> None:
    """With ZooKeeper a broker that starts before its former session has expired ends at once."""
    ran = harrow(
        "run", "any-blackout", "--variant", "base", "--target", by_hand.file, "--yes", "--format", "json"
    )
    text, messages = ran.communicate()
    assert ran.returncode == 0, text + messages
    assert [by_hand.state(broker) for broker in BROKERS] == ["up"] * 3


@on(None)
def test_a_run_whose_only_fault_had_no_target_is_inconclusive(
    by_hand: HandStarted, harrow: Run, tmp_path: Path
) -> None:
    file = tmp_path / "untried.yaml"
    file.write_text(
        "name: untried\ncluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}\n"
        "workload: {duration: 4s, producers: [{rate: 10/s}]}\n"
        "faults: [{at: 1s, do: {broker_resume: {broker: 1}}}]\n"
    )
    ran = harrow("run", file, "--target", by_hand.file, "--yes", "--format", "json")
    text, messages = ran.communicate()
    assert ran.returncode == 3, text + messages
    assert json.loads(text)["runs"][0]["reasons"] == [
        "nothing was tried: broker_resume broker=1 did not strike: it found nothing to act on: broker 1 was running"
    ]


@on(None)
def test_a_run_on_a_users_cluster_agrees_with_the_model(
    by_hand: HandStarted, brokers: StartedBrokers, harrow: Run, wait_until: Wait, tmp_path: Path
) -> None:
    file = campaign(tmp_path, brokers, "8s")
    compared = harrow("conform", file, "--target", by_hand.file, "--yes", "--format", "json")
    text, messages = compared.communicate()
    assert compared.returncode == 0, text + messages
    (comparison,) = json.loads(text)["comparisons"]
    assert (comparison["status"], comparison["reasons"]) == ("agreed", [])
    assert comparison["modelled"] == 50
    assert [by_hand.state(broker) for broker in BROKERS] == ["up"] * 3
    wait_until(lambda: not topics_of_harrow(by_hand))


@on(None)
def test_faults_of_a_killed_run_are_healed(
    by_hand: HandStarted, brokers: StartedBrokers, harrow: Run, wait_until: Wait, tmp_path: Path
) -> None:
    file, state = campaign(tmp_path, brokers, "10m"), tmp_path / "state" / "faults"
    for kill in range(KILLS):
        running = harrow("run", file, "--target", by_hand.file, "--yes", "--seed", kill)
        wait_until(lambda: any('"in_force"' in path.read_text() for path in journals(state)))
        # The kill comes between two faults, during a command, or during the command that undoes it.
        time.sleep(random.Random(kill).uniform(0, 4))
        assert running.poll() is None, running.communicate()
        running.kill()
        running.communicate()
        healed = harrow("heal", by_hand.file)
        _, messages = healed.communicate()
        assert healed.returncode == 0, messages
        assert ([by_hand.state(broker) for broker in BROKERS], by_hand.cuts()) == (["up"] * 3, [])
        assert list(journals(state)) == []
        wait_until(lambda: not topics_of_harrow(by_hand))


@on(None)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_and_nothing_stays_in_force(
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
    # The controller has deleted the topic; brokers may learn of it a little later.
    wait_until(lambda: not topics_of_harrow(by_hand))


@on(None)
def test_a_campaign_can_be_generated_from_a_cluster(
    by_hand: HandStarted, brokers: StartedBrokers, harrow: Run, tmp_path: Path
) -> None:
    release_option = f"kafka={brokers.release.model_release}"
    checked = harrow("target", "check", by_hand.file, "--set", release_option)
    output, messages = checked.communicate()
    assert checked.returncode == 0, messages
    assert "can run" in output
    written = harrow("new", "ours", "--from", by_hand.file)
    _, messages = written.communicate()
    assert written.returncode == 0, messages
    ran = harrow("run", tmp_path / "ours.yaml", "--no-results")
    text, messages = ran.communicate()
    assert ran.returncode in (0, 1), text + messages

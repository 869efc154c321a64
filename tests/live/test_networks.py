"""Hosts on a separate bridge leave nothing behind."""

import subprocess
from pathlib import Path

import pytest

from tests.live.networks import Namespaces, network


def test_the_end_of_a_network_removes_its_interfaces_despite_running_processes(tmp_path: Path) -> None:
    """A namespace and its end of a link last as long as a process in it."""
    made = network(tmp_path)
    if not isinstance(made, Namespaces):
        pytest.skip("it takes network namespaces")
    before = interfaces()
    made.host("broker-1")
    made.host("broker-2")
    ours = interfaces() - before
    with subprocess.Popen(
        [*made.runs_on("broker-1").split(), "sh", "-c", "echo; exec sleep 600"], stdout=subprocess.PIPE
    ) as held:
        assert held.stdout is not None
        held.stdout.readline()
        made.end()
        left = interfaces()
        held.kill()
    assert len(ours) == 2
    assert not ours & left


def interfaces() -> set[str]:
    return {path.name for path in Path("/sys/class/net").iterdir()}

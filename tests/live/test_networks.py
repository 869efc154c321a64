"""Hosts on a bridge of their own: nothing of them stays."""

import subprocess
from pathlib import Path

import pytest

from tests.live.networks import Namespaces, network


def test_no_interface_of_a_network_stays_though_a_process_in_it_has_not_ended(tmp_path: Path) -> None:
    """A namespace lasts as long as a process in it, and so does its end of a link to the bridge."""
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

"""`harrow run --engine hypothesis` as a process."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Harrow

OPEN = """
name: open
kafka: "2.4"
behaviours: {ack_waits_for_hw: false, truncation_drops_empty_last_epoch: true}
settings: {acks: all}
cluster: {brokers: 2, topics: [{name: t, replication_factor: 2}]}
workload: {duration: 10s, producers: [{name: producer-0, rate: 5/s}]}
swarm:
  faults:
    in_play: 1..2
    rate: 10/m..60/m
    any_of:
      - broker_crash: {broker: leader of t-0, restart_after: 1s..8s}
      - partition: {between: [0], and: [1], duration: 1s..8s}
"""


def test_hypothesis_finds_the_smallest_campaign_that_fails(harrow: Harrow, folder: Path) -> None:
    """About one example in 35 fails.

    Which one is the first depends on the constants in all modules that are loaded, because
    Hypothesis also tries those, so a hundred examples are sometimes too few.
    """
    (folder / "open.yaml").write_text(OPEN, encoding="utf-8")
    search = ("--engine", "hypothesis", "--max-examples", "1000", "-o", "smallest.yaml")
    ended = harrow("run", "open.yaml", *search, "--no-results")
    assert ended.returncode == 1, ended.stderr
    assert "despite acks=all" in ended.stdout
    assert "reproduce harrow run smallest.yaml --seed 0" in ended.stdout
    assert not (folder / ".hypothesis").exists()
    again = harrow("run", "smallest.yaml", "--seed", "0", "--no-results")
    assert again.returncode == 1, again.stderr
    assert "despite acks=all" in again.stdout


def test_hypothesis_reports_the_number_of_examples_without_a_failure(harrow: Harrow, folder: Path) -> None:
    sound = OPEN.replace("ack_waits_for_hw: false, ", "")
    (folder / "sound.yaml").write_text(sound, encoding="utf-8")
    ended = harrow("run", "sound.yaml", "--engine", "hypothesis", "--max-examples", "10")
    assert ended.returncode == 0, ended.stderr
    assert "open: no failure in 10 examples" in ended.stdout
    ended = harrow("run", "sound.yaml", "--engine", "hypothesis", "--max-examples", "10", "--format", "json")
    (searched,) = json.loads(ended.stdout)["searches"]
    assert (searched["examples"], searched["found"]) == (10, None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("calm.yaml", "--engine", "hypothesis"), "leaves Hypothesis nothing to choose"),
        (("calm.yaml", "--engine", "hypothesis", "--seeds", "0..5"), "has no meaning with Hypothesis"),
        (("calm.yaml", "--max-examples", "5"), "has no meaning without --engine hypothesis"),
    ],
)
def test_hypothesis_is_refused_without_a_swarm(
    harrow: Harrow, arguments: tuple[str, ...], message: str
) -> None:
    ended = harrow("run", *arguments)
    assert ended.returncode == 2
    assert message in " ".join(ended.stderr.replace("│", " ").split())
    assert "Traceback" not in ended.stderr

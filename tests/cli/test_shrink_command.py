"""`harrow shrink` as a process."""

import re
from pathlib import Path
from typing import NoReturn

import pytest

from harrow.campaigns.search import shrink
from harrow.cli.commands.shrink import session
from harrow.cli.progress import ProgressLine
from harrow.cli.requests.failures import ShrinkRequest
from tests.cli.conftest import Harrow
from tests.library_swarm import first_failing_seed

RUNS = 10
SEED = first_failing_seed("no-dedup", "duplicate")
FLAWED = ("swarm", "--seed", str(SEED), "--set", "behaviours.producer_batches_retained=0")


def test_the_shrunk_campaign_is_printed_written_and_fails(harrow: Harrow, folder: Path) -> None:
    ended = harrow("shrink", *FLAWED, "-o", "small.yaml")
    assert ended.returncode == 0, ended.stderr
    text = (folder / "small.yaml").read_text(encoding="utf-8")
    assert ended.stdout == text
    assert text.startswith("# Doubled m0 despite enable.idempotence=true.\n")
    assert f"harrow run swarm --seed {SEED} --set behaviours.producer_batches_retained=0" in text
    assert re.search("[1-4] faults? and [1-3] records? left", ended.stderr)
    assert "wrote small.yaml: harrow run small.yaml\n" in ended.stderr
    again = harrow("run", "small.yaml", "--no-results")
    assert again.returncode == 1
    assert "doubled m0" in again.stdout


def test_a_scripted_campaign_is_shrunk_without_its_expectations(harrow: Harrow, folder: Path) -> None:
    ended = harrow("shrink", "loss-by-hw-truncation", "--seed", "0", "-o", "small.yaml", "--quiet")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "expect:" not in ended.stdout
    assert harrow("run", "small.yaml", "--no-results").returncode == 1


def test_a_run_without_a_broken_promise_has_nothing_to_shrink(harrow: Harrow) -> None:
    for campaign, status, code in (
        ("calm", "held", 2),
        ("permitted", "permitted", 2),
        ("undecided", "inconclusive", 3),
    ):
        ended = harrow("shrink", f"{campaign}.yaml", "--seed", "0")
        assert (ended.returncode, ended.stdout) == (code, "")
        assert f"nothing to shrink: no promise is broken, the verdict is {status}" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("calm.yaml",), "--seed"),
        (("calm.yaml", "--seed", "-1"), "seed"),
        (("calm.yaml", "--seed", "0", "--rule", "lost-writ"), "lost-write"),
        (("missing.yaml", "--seed", "0"), "missing.yaml"),
        (("wrong.yaml", "--seed", "0"), "clutser"),
        ((".", "--seed", "0"), "wrong.yaml"),
        (("permitted.yaml", "--seed", "0", "--variant", "acks-al"), "acks-all"),
        (("calm.yaml", "--seed", "0", "--max-time", "3"), "no unit"),
        ((*FLAWED, "-o", "nowhere/small.yaml"), "cannot write"),
    ],
)
def test_wrong_usage_of_shrink_is_reported(harrow: Harrow, arguments: tuple[str, ...], message: str) -> None:
    ended = harrow("shrink", *arguments)
    assert ended.returncode == 2
    assert message in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_permitted_anomaly_is_shrunk_on_request(harrow: Harrow, folder: Path) -> None:
    ended = harrow("shrink", "permitted.yaml", "--seed", "0")
    assert "`--rule lost-write` shrinks what is permitted" in ended.stderr
    ended = harrow("shrink", "permitted.yaml", "--seed", "0", "--rule", "lost-write", "-o", "small.yaml")
    assert ended.returncode == 0, ended.stderr
    assert "rules: {lost-write: permitted}" in ended.stdout
    again = harrow("run", "small.yaml", "--no-results")
    assert again.returncode == 0
    assert "as expected" in again.stdout


def test_a_missed_expectation_cannot_be_shrunk(harrow: Harrow, folder: Path) -> None:
    text = (folder / "calm.yaml").read_text(encoding="utf-8")
    (folder / "wrong-hope.yaml").write_text(f"{text}\nexpect: {{verdict: violated}}\n", encoding="utf-8")
    ended = harrow("shrink", "wrong-hope.yaml", "--seed", "0")
    assert ended.returncode == 2
    assert "an expectation is missed: the verdict is held, expected violated" in ended.stderr


def test_a_missed_bound_is_shrunk_and_the_result_misses_it(harrow: Harrow) -> None:
    bound = ("--set", "expect.service.outage=< 5s")
    ended = harrow("shrink", "broker-dies", "--seed", "1", *bound, "-o", "small.yaml")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("# Missed service.outage < 5s, with ")
    assert "service.outage: 1 fault and 1 record left, from 4 faults" in ended.stderr
    assert "  service: {outage: < 5s}\n" in ended.stdout
    again = harrow("run", "small.yaml", "--no-results")
    assert again.returncode == 1
    assert "expected < 5s" in again.stdout


def test_shrink_refuses_a_folder_with_several_campaigns(harrow: Harrow, folder: Path) -> None:
    (folder / "wrong.yaml").unlink()
    ended = harrow("shrink", ".", "--seed", "0")
    assert ended.returncode == 2
    assert "name one" in ended.stderr


def test_a_variant_is_shrunk_by_its_name(harrow: Harrow) -> None:
    ended = harrow("shrink", "permitted.yaml", "--seed", "0", "--variant", "acks-all")
    assert "--variant acks-all" in ended.stderr
    assert "the verdict is held" in ended.stderr


def test_max_time_keeps_the_best_candidate(harrow: Harrow) -> None:
    ended = harrow("shrink", *FLAWED, "--max-time", "100ms")
    assert ended.returncode == 0
    assert "--max-time reached: this is the best candidate so far" in ended.stderr
    assert "stopped before nothing more could be left out" in ended.stdout.replace("\n# ", " ")


def test_an_interrupt_keeps_the_best_candidate(
    harrow: Harrow, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: ProgressLine, runs: int, _doing: str) -> None:
        if runs == RUNS:
            raise KeyboardInterrupt

    monkeypatch.setattr(ProgressLine, "update", interrupt)
    output = folder / "small.yaml"
    request = ShrinkRequest(campaign="swarm", seed=SEED, overrides=[FLAWED[-1]], output=output)
    assert session(request) == 130
    shown = capsys.readouterr()
    assert "interrupted: this is the best candidate so far" in shown.err
    assert output.read_text(encoding="utf-8") == shown.out
    seed = re.findall(r"It takes --seed ([0-9]+)", shown.out) or ["0"]
    assert harrow("run", "small.yaml", "--seed", seed[0], "--no-results").returncode == 1


def test_an_interrupt_before_the_first_candidate_writes_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(shrink, "run_plan", interrupt)
    assert session(ShrinkRequest(campaign="swarm", seed=SEED)) == 130
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "interrupted before" in shown.err

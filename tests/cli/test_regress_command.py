"""`harrow regress` runs the entries of a corpus and adds entries."""

import json
import os
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Harrow, interrupted_in_a_run
from tests.library_swarm import first_failing_seed

LOSS = """
found: {version: 0.1.0, rule: lost-write, seed: 2, status: open}
demand: lost-write
settings: {acks: 0}
cluster:
  brokers: 3
  controller: 2
  topics: [{name: t, assignment: [[0, 1]]}]
workload: {producers: [{name: producer-0}]}
script:
  - do:
      - partition: {between: [0], and: [1]}
      - send: m0
  - when: {replicas: {t-0: {0: {leo: 1}}}}
    do: {broker_crash: {broker: 0}}
  - when: {replicas: {t-0: {1: {role: leader}}}}
expect: {verdict: violated, rules: {lost-write: violated}, lost: [m0]}
"""
CALM = """
found: {version: 0.1.0, rule: lost-write, status: fixed}
cluster: {brokers: 1, topics: [{name: t}]}
script:
  - do: {send: m0}
  - when: {acked: m0}
expect: {verdict: held}
"""


@pytest.fixture
def corpus(folder: Path) -> Path:
    """Return a corpus with an open and a fixed entry."""
    place = folder / "corpus"
    (place / "old").mkdir(parents=True)
    (place / "loss.yaml").write_text(LOSS, encoding="utf-8")
    (place / "old" / "calm.yaml").write_text(CALM, encoding="utf-8")
    return place


def outcome(harrow: Harrow, corpus: Path, name: str, text: str, code: int) -> tuple[str, str]:
    """Return the outcome of an entry with this text and its reason."""
    (corpus / name).write_text(text, encoding="utf-8")
    ended = harrow("regress", str(corpus), "--format", "json")
    assert ended.returncode == code, ended.stderr
    (entry,) = [e for e in json.loads(ended.stdout)["entries"] if e["file"].endswith(name)]
    return entry["outcome"], entry["why"]


def test_a_corpus_that_is_as_recorded_succeeds(harrow: Harrow, corpus: Path) -> None:
    ended = harrow("regress", "corpus")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [
        "STILL FAILING  open    corpus/loss.yaml  lost-write: lost m0 despite what was demanded",
        "FIXED          fixed   corpus/old/calm.yaml  lost-write: held",
        "",
        "2 entries: 1 STILL FAILING, 1 FIXED; all as recorded",
    ]
    assert harrow("regress", "corpus", "--quiet").stdout == ""
    document = json.loads(harrow("regress", "corpus", "--format", "json").stdout)
    assert (document["schema"], document["as_recorded"]) == ("harrow.regress/1", True)
    assert document["counts"] == {"STILL FAILING": 1, "FIXED": 1, "CHANGED": 0, "ERROR": 0}
    assert [entry["found"]["seed"] for entry in document["entries"]] == [2, 0]


def test_an_entry_that_no_longer_fails_is_fixed(harrow: Harrow, corpus: Path) -> None:
    text = CALM.replace("fixed", "open").replace("{verdict: held}", "{verdict: violated}")
    assert outcome(harrow, corpus, "gone.yaml", text, 1) == (
        "FIXED",
        "lost-write is held: set `status: fixed`, and let `expect` match",
    )


def test_an_entry_whose_fixed_failure_returns_is_still_failing(harrow: Harrow, corpus: Path) -> None:
    text = LOSS.replace("status: open", "status: fixed")
    outcome_text, reason = outcome(harrow, corpus, "back.yaml", text, 1)
    assert (outcome_text, reason) == ("STILL FAILING", "it is back: lost m0 despite what was demanded")
    shown = harrow("regress", "corpus", "--quiet").stdout
    assert "corpus/back.yaml" in shown
    assert "harrow run corpus/back.yaml --seed 2" in shown
    assert "1 not as recorded" in shown
    assert "calm" not in shown


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("lost: [m0]", "lost: [m1]", "lost: m0; expected m1"),
        ("rule: lost-write", "rule: duplicate", "duplicate is held; lost m0"),
        ("{lost-write: violated}, lost: [m0]", "{}", ""),
        ("demand: lost-write", "demand: []", "lost-write is permitted now"),
    ],
)
def test_an_entry_with_another_failure_is_changed(
    harrow: Harrow, corpus: Path, old: str, new: str, reason: str
) -> None:
    text = f"{LOSS.replace(old, new)}limits: {{script: 30s}}\n"
    if not reason:  # A violated rule need not be listed under `expect` too.
        assert outcome(harrow, corpus, "entry.yaml", text, 0)[0] == "STILL FAILING"
        return
    outcome_text, actual_reason = outcome(harrow, corpus, "entry.yaml", text, 1)
    assert outcome_text == "CHANGED"
    assert reason in actual_reason


def test_an_undecided_run_is_not_a_success(harrow: Harrow, corpus: Path) -> None:
    text = CALM.replace("acked: m0", "acked: m9") + "limits: {script: 30s}\n"
    outcome_text, reason = outcome(harrow, corpus, "vain.yaml", text, 1)
    assert (outcome_text, reason.partition(":")[0]) == ("CHANGED", "inconclusive")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (LOSS.replace("brokers: 3", "brokkers: 3"), "6:3: unknown key `brokkers`"),
        (LOSS.replace("lost-write, seed", "lost-right, seed"), "2:31: unknown rule"),
        (LOSS.replace("status: open", "status: closed"), "2:60: status: `closed`"),
        (LOSS.replace("version: 0.1.0, ", ""), "2:8: found: `version` is missing"),
        (LOSS.replace("version: 0.1.0", "version: new"), "2:18: "),
        ("kafka: [", "1:"),
        (
            CALM.replace("found", "description").replace(
                "{version: 0.1.0, rule: lost-write, status: fixed}", "x"
            ),
            "1:1: `found` is missing",
        ),
    ],
)
def test_a_file_that_cannot_be_run_is_never_skipped(
    harrow: Harrow, corpus: Path, text: str, place: str
) -> None:
    (corpus / "wrong.yaml").write_text(text, encoding="utf-8")
    ended = harrow("regress", "corpus", "--quiet")
    assert ended.returncode == 2
    assert f"ERROR          corpus/wrong.yaml:{place}" in ended.stdout, ended.stdout
    assert "3 entries" in ended.stdout
    document = json.loads(harrow("regress", "corpus", "--format", "json").stdout)
    (error,) = [entry for entry in document["entries"] if entry["outcome"] == "ERROR"]
    assert error["problems"][0]["line"] > 0


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"", "1:1: the file is empty"),
        (b'kafka: "2.4"\nkafka: "2.4"\n', "2:1: duplicate key `kafka`"),
        (b'# Caf\xe9\nkafka: "2.4"\n', "1:6: not UTF-8: the byte 0xe9"),
        (LOSS.replace("broker_crash", "broker_smash").encode(), "15:10: unknown action or fault"),
        (LOSS.replace("brokers: 3", "brokers: three").encode(), "6:12: brokers: "),
        (b"- a list\n", "1:1: a campaign is a mapping"),
    ],
)
def test_a_file_that_no_longer_parses_is_an_error_with_its_line(
    harrow: Harrow, corpus: Path, content: bytes, place: str
) -> None:
    (corpus / "wrong.yaml").write_bytes(content)
    ended = harrow("regress", "corpus")
    assert ended.returncode == 2
    assert f"ERROR          corpus/wrong.yaml:{place}" in ended.stdout, ended.stdout
    assert "3 entries: 1 STILL FAILING, 1 FIXED, 1 ERROR; 1 not as recorded" in ended.stdout


def test_a_future_release_runs_like_any_other(harrow: Harrow, corpus: Path) -> None:
    text = CALM.replace("version: 0.1.0", "version: 99.0.0")
    assert outcome(harrow, corpus, "later.yaml", text, 0)[0] == "FIXED"


@pytest.mark.parametrize("output_format", ["table", "json"])
def test_outcomes_go_to_a_file(harrow: Harrow, folder: Path, corpus: Path, output_format: str) -> None:
    shown = harrow("regress", "corpus", "--format", output_format).stdout
    ended = harrow("regress", "corpus", "--format", output_format, "--output", "out")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "harrow: wrote out\n")
    assert (folder / "out").read_text(encoding="utf-8") == shown
    assert harrow("regress", "corpus", "--output", "-").stderr == ""
    ended = harrow("regress", "corpus", "--output", "nowhere/out")
    assert ended.returncode == 2
    assert "cannot go on" in ended.stderr


@pytest.mark.skipif(os.name == "nt", reason="signals are a POSIX matter")
@pytest.mark.parametrize("output_format", ["table", "json"])
def test_an_interrupt_keeps_the_entries_that_ran(
    folder: Path, corpus: Path, environment: dict[str, str], output_format: str
) -> None:
    slow = corpus / "zz.yaml"
    text = (folder / "endless.yaml").read_text(encoding="utf-8").replace("duration: 60s", "duration: 24h")
    slow.write_text(f"{text}found: {{version: 0.1.0, rule: lost-write, status: fixed}}\n", encoding="utf-8")
    code, stdout, stderr = interrupted_in_a_run(
        ("regress", "corpus", "--format", output_format), folder, environment, campaign="endless", run=1
    )
    assert code == 130, stderr
    assert "interrupted: 2 of 3 files ran" in stderr
    if output_format == "table":
        assert "2 entries: 1 STILL FAILING, 1 FIXED; all as recorded" in stdout
    else:
        document = json.loads(stdout)
        assert (document["interrupted"], document["as_recorded"]) == (True, False)
        assert len(document["entries"]) == 2


def test_a_missing_or_empty_corpus_is_reported(harrow: Harrow, folder: Path) -> None:
    ended = harrow("regress")
    assert ended.returncode == 2
    assert "tests/regressions: no such file or folder" in ended.stderr
    (folder / "empty").mkdir()
    ended = harrow("regress", "empty")
    assert ended.returncode == 3
    assert "nothing to run" in ended.stderr


def test_add_puts_a_failing_campaign_into_the_corpus(harrow: Harrow, folder: Path) -> None:
    (folder / "loss.yaml").write_text(LOSS, encoding="utf-8")
    ended = harrow("regress", "corpus", "--add", "loss.yaml", "--seed", "4", "--name", "first")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("STILL FAILING  open    corpus/first.yaml  lost-write: lost m0")
    text = (folder / "corpus" / "first.yaml").read_text(encoding="utf-8")
    recorded = yaml.safe_load(text)["found"]
    assert (recorded["rule"], recorded["seed"], recorded["status"]) == ("lost-write", 4, "open")
    assert "lost: [m0]" in text
    assert harrow("validate", "corpus").returncode == 0
    assert harrow("regress", "corpus").returncode == 0
    ended = harrow("regress", "corpus", "--add", "loss.yaml", "--name", "first")
    assert ended.returncode == 2
    assert "already exists; harrow does not overwrite it" in ended.stderr


def test_the_drawn_values_of_a_swarm_are_written(harrow: Harrow, folder: Path) -> None:
    broken = ("--set", "behaviours.hw_never_falls=false")
    seed = first_failing_seed("hw-may-fall", "hw-monotonic")
    ended = harrow("regress", "corpus", "--add", "swarm", "--seed", str(seed), *broken)
    assert ended.returncode == 0, ended.stderr
    assert "hw-monotonic" in ended.stdout
    assert "\nswarm:" not in (folder / "corpus" / "swarm.yaml").read_text(encoding="utf-8")
    assert harrow("regress", "corpus").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--add", "calm.yaml"), 1, "it does not fail: with seed 0 the verdict is held"),
        (("--add", "permitted.yaml"), 1, "it does not fail: with seed 0 the verdict is permitted"),
        (("--add", "nothing.yaml"), 2, "no such file or folder"),
        (("--add", "several"), 2, "name one of them"),
        (("--add", "calm.yaml", "--variant", "x"), 2, "no campaign here has a variant"),
        (("--seed", "1"), 2, "needs --add"),
        (("--add", "failing.yaml", "--name", "../x"), 2, "is not a valid campaign name"),
        (("--add", "failing.yaml", "--name", ""), 2, "is not a valid campaign name"),
    ],
)
def test_a_campaign_that_does_not_fail_is_not_added(
    harrow: Harrow, folder: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    (folder / "several").mkdir()
    for name in ("calm", "permitted"):
        (folder / "several" / f"{name}.yaml").write_bytes((folder / f"{name}.yaml").read_bytes())
    ended = harrow("regress", "corpus", *arguments)
    assert ended.returncode == code
    assert message in ended.stderr
    assert not (folder / "corpus").exists()

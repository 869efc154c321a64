"""`harrow sweep` resumes its folder, reports it again, and refuses foreign folders."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import ROOT, Harrow
from tests.cli.test_sweep_command import BROKEN, SMALL, parts, rows, start, wait_for
from tests.patience import PATIENCE_S

BY_PROCESSES = ("--engine", "process", "--out", "s")


@pytest.fixture
def small(folder: Path) -> Path:
    (folder / "small.yaml").write_text(SMALL, encoding="utf-8")
    (folder / "broken.yaml").write_text(BROKEN.replace("name: small", "name: broken"), encoding="utf-8")
    return folder


def state(small: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((small / "s" / "sweep.json").read_text(encoding="utf-8"))
    return document


def test_a_sweep_by_another_model_is_not_resumed_but_reported(harrow: Harrow, small: Path) -> None:
    words = ("sweep", "small.yaml", "--seeds", "0..4", *BY_PROCESSES)
    assert harrow(*words).returncode == 0
    (small / "s" / "sweep.json").write_text(
        json.dumps({**state(small), "version": "0.0.1", "model": "0" * 16})
    )
    refused = harrow(*words, "--resume")
    assert refused.returncode == 2
    assert "s was recorded by another harrow (0.0.1, model 00000000; this is " in refused.stderr
    assert refused.stderr.endswith("): choose another folder with --out\n")
    again = harrow("sweep", "--report", "s")
    assert again.returncode == 0
    assert "s was recorded by another harrow (0.0.1, model 00000000; this is " in again.stderr


def test_a_sweep_by_another_version_with_the_same_model_is_resumed(harrow: Harrow, small: Path) -> None:
    words = ("sweep", "small.yaml", "--seeds", "0..4", *BY_PROCESSES)
    assert harrow(*words).returncode == 0
    (small / "s" / "sweep.json").write_text(json.dumps({**state(small), "version": "0.0.1"}))
    ended = harrow(*words, "--resume")
    assert ended.returncode == 0
    assert "another harrow" not in ended.stderr


def test_a_sweep_without_a_model_digest_is_by_another_harrow(harrow: Harrow, small: Path) -> None:
    words = ("sweep", "small.yaml", "--seeds", "0..4", *BY_PROCESSES)
    assert harrow(*words).returncode == 0
    (small / "s" / "sweep.json").write_text(
        json.dumps({name: value for name, value in state(small).items() if name != "model"})
    )
    refused = harrow(*words, "--resume")
    assert refused.returncode == 2
    assert "recorded by another harrow (" in refused.stderr


def test_resume_names_the_same_sweep_by_another_model(harrow: Harrow, small: Path) -> None:
    words = ("sweep", "small.yaml", "--seeds", "0..4", "--engine", "process", "--resume")
    assert harrow(*words).returncode == 0
    (folder,) = (small / "results").glob("sweep-*")
    other = folder.with_name(f"{folder.name.rpartition('-')[0]}-00000000")
    folder.rename(other)
    recorded = json.loads((other / "sweep.json").read_text(encoding="utf-8"))
    (other / "sweep.json").write_text(json.dumps({**recorded, "model": "0" * 16}))
    ended = harrow(*words)
    assert ended.returncode == 0
    assert f"{other.relative_to(small)} was recorded by another harrow (" in ended.stderr
    assert "starting a new sweep" in ended.stderr


def test_a_sweep_with_a_changed_plan_cannot_be_resumed(harrow: Harrow, small: Path) -> None:
    words = ("sweep", "small.yaml", "--seeds", "0..4", *BY_PROCESSES)
    assert harrow(*words).returncode == 0
    sweep = state(small)
    sweep["cells"][0]["plan_digest"] = "0" * 16
    (small / "s" / "sweep.json").write_text(json.dumps(sweep))
    assert harrow(*words, "--resume").returncode == 2


def test_a_sweep_killed_before_its_first_row_starts_again(harrow: Harrow, small: Path) -> None:
    words = ("sweep", "small.yaml", "--seeds", "0..4", *BY_PROCESSES)
    assert harrow(*words).returncode == 0
    for part in parts(small):
        part.unlink()
    (small / "s" / "repeated.jsonl").unlink(missing_ok=True)
    assert harrow(*words).returncode == 0
    assert [row["seed"] for row in rows(small / "s")] == [0, 1, 2, 3]


def test_a_report_needs_no_spark_and_keeps_shrunk_campaigns(harrow: Harrow, small: Path) -> None:
    words = ("sweep", "broken.yaml", "--seeds", "0..4", *BY_PROCESSES, "--shrink", "--shrink-time", "2s")
    assert harrow(*words).returncode == 1
    files = {path: path.read_text() for path in (small / "s" / "failures").glob("*/campaign.yaml")}
    assert any("Shrunk by harrow" in text for text in files.values())
    again = harrow("sweep", "--report", "s", JAVA_HOME=str(small / "no-java"))
    assert again.stderr == "harrow: the rows are in s\n"
    assert {path: path.read_text() for path in files} == files
    assert "shrunk    s/failures/" in again.stdout
    on_spark = harrow("sweep", "--report", "s", "--engine", "spark", JAVA_HOME=str(small / "no-java"))
    assert on_spark.returncode == 2


def test_a_report_is_also_a_page_for_a_browser_and_markdown(
    harrow: Harrow, on_terminal: Callable[..., tuple[int, str]], small: Path
) -> None:
    swept = ("sweep", "broken.yaml", "--seeds", "0..3", *BY_PROCESSES, "--format", "html")
    code, shown = on_terminal(*swept)
    assert code == 2
    assert "-o page.html" in shown
    assert not (small / "s").exists()
    ended = harrow(*swept, "-o", "s.html")
    assert (ended.returncode, ended.stdout) == (1, "")
    again = harrow("sweep", "--report", "s", "--format", "html")
    assert again.stdout == (small / "s.html").read_text(encoding="utf-8")
    assert "harrow run broken.yaml --seed " in again.stdout
    markdown = harrow("sweep", "--report", "s", "--format", "markdown")
    assert markdown.stdout.startswith("### harrow: sweep of broken\n\n3 runs: 3 violated; 3 not as expected")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_report_of_an_unwritable_folder_is_printed(harrow: Harrow, small: Path) -> None:
    assert harrow("sweep", "broken.yaml", "--seeds", "0..4", *BY_PROCESSES).returncode == 1
    (small / "s" / "failures").chmod(0o555)
    ended = harrow("sweep", "--report", "s")
    assert ended.returncode == 1
    assert "4 runs" in ended.stdout


def test_one_sweep_owns_a_folder_and_an_interrupt_ends_all_its_processes(
    processes: ExitStack, harrow: Harrow, small: Path, environment: dict[str, str]
) -> None:
    pytest.importorskip("fcntl")
    process = start(processes, small, environment, "small.yaml", "--seeds", "0..4000", *BY_PROCESSES)
    wait_for(lambda: len(parts(small)) > 0, process)
    refused = harrow("sweep", "small.yaml", "--seeds", "0..4000", *BY_PROCESSES, "--resume")
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert refused.returncode == 2
    assert "s: another harrow uses this folder now" in refused.stderr
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "not complete" in out
    assert "finished runs are written" in err


INTERRUPTED = """
import sys
import harrow.campaigns.sweep.failures as failures

def shrunk_until_interrupted(*_, **__):
    raise KeyboardInterrupt
    yield

if __name__ == "__main__":
    failures.write_failures = shrunk_until_interrupted
    sys.argv[0] = "harrow"
    from harrow.cli.main import main
    main()
"""


def test_an_interrupt_during_shrinking_prints_the_report(small: Path, environment: dict[str, str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, "sweep", "broken.yaml", "--seeds", "0..4", *BY_PROCESSES],
        cwd=small,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 130, ended.stderr
    assert "4 runs" in ended.stdout
    assert "Traceback" not in ended.stderr


def test_a_folder_may_have_a_name_that_looks_like_a_pattern(harrow: Harrow, small: Path) -> None:
    ended = harrow("sweep", "small.yaml", "--seeds", "0..4", "--engine", "process", "--out", "s[1]*")
    assert ended.returncode == 0, ended.stderr
    assert "4 runs" in ended.stdout


def test_a_sweep_reports_several_campaigns_with_variants_and_expectations(
    harrow: Harrow, small: Path
) -> None:
    ended = harrow(
        *("sweep", "small.yaml", "permitted.yaml", "unreached.yaml", "failing.yaml"),
        *("--seeds", "0..3", *BY_PROCESSES, "--format", "json"),
    )
    assert ended.returncode == 1, ended.stderr
    document = json.loads(ended.stdout)
    cells = {(cell["campaign"], cell["cell"]): cell for cell in document["cells"]}
    assert cells["permitted", "base"]["verdicts"] == {"permitted": 3}
    assert cells["permitted", "acks-all"]["outcomes"] == {"as-expected": 3}
    assert cells["failing", "base"]["outcomes"] == {"unexpected": 3}
    assert [group["campaign"] for group in document["failures"]] == ["failing"]
    (missed,) = document["required_probes_missed"]
    assert missed.startswith("unreached, base: never reached: ")
    assert "unclean-election" in missed
    assert len(list((small / "s" / "runs").glob("campaign=*"))) == 4
    assert document["runs"] == 3 * len(cells) == 18


def test_a_sole_worker_repeats_its_own_runs_and_the_report_says_so(harrow: Harrow, small: Path) -> None:
    ended = harrow("sweep", "small.yaml", "--seeds", "0..200", "--workers", "1", *BY_PROCESSES)
    assert ended.returncode == 0, ended.stderr
    assert re.search(r"\d+ runs? repeated by the same worker: all equal", ended.stdout)
    assert state(small)["repeated_elsewhere"] == 0 < state(small)["repeated"]


def test_rows_do_not_depend_on_the_hash_seed(harrow: Harrow, small: Path) -> None:
    digests = set()
    for seed in ("0", "77"):
        out = f"s{seed}"
        words = ("sweep", "broken.yaml", "--seeds", "0..6", "--engine", "process", "--out", out)
        assert harrow(*words, PYTHONHASHSEED=seed).returncode == 1
        sweep_rows = rows(small / out)
        for row in sweep_rows:
            del row["wall_us"]
        digests.add(hashlib.sha256(repr(sweep_rows).encode()).hexdigest())
    assert len(digests) == 1


def test_a_sweep_stopped_by_a_limit_can_be_resumed(harrow: Harrow, small: Path) -> None:
    words = ("sweep", "broken.yaml", "--seeds", "0..3000", *BY_PROCESSES)
    ended = harrow(*words, "--max-failures", "1", "--quiet")
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[0] == "harrow: --max-failures 1 reached"
    assert "finished runs are written; to continue: " in ended.stderr.splitlines()[1]
    assert "not complete" in ended.stdout
    sweep = state(small)
    assert (sweep["complete"], sweep["stopped"]) == (False, "--max-failures 1 reached")
    no_time = harrow(*words, "--resume", "--max-time", "1ms")
    assert "--max-time reached" in no_time.stderr
    assert state(small)["rows"] == sweep["rows"]


def test_an_empty_report_is_not_written(harrow: Harrow, small: Path) -> None:
    words = ("sweep", "broken.yaml", "--seeds", "0..8", *BY_PROCESSES, "--max-time", "0s")
    ended = harrow(*words, "--output", "report.txt")
    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr == (
        "harrow: --max-time reached: 0 of 1 combinations of values were loaded, and nothing ran\n"
    )
    assert not (small / "report.txt").exists()
    assert not (small / "report.txt").exists()


def test_a_report_fits_eighty_columns(small: Path, on_terminal: Callable[..., tuple[int, str]]) -> None:
    code, shown = on_terminal(
        *("sweep", "broken.yaml", "--seeds", "0..20", "--vary", "acks=1,all"),
        *("--vary", "min.insync.replicas=1,2", *BY_PROCESSES),
        NO_COLOR="1",
    )
    assert code == 1
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    table = text.partition("rates, among the decided runs:\n")[2].partition("\n\n")[0].splitlines()
    assert max(len(line.rstrip()) for line in table) <= 80
    assert table[0].split() == ["A", "min.insync.replicas"]
    assert sum(bool(re.search(r"^  all   2  .* of 20\b", line)) for line in table) >= 1
    command = re.search(r"earliest  (harrow run .*)", text)
    assert command is not None
    assert command[1].rstrip().endswith("--set min.insync.replicas=1")


@pytest.mark.parametrize("words", [("--variant", "base"), ("--out", "x"), ("--resume",), ("--seeds", "0..3")])
def test_a_report_refuses_options_of_a_new_sweep(harrow: Harrow, words: tuple[str, ...]) -> None:
    ended = harrow("sweep", "--report", "s", *words)
    assert ended.returncode == 2
    assert "omit campaigns, seeds, settings and folders" in ended.stderr


def test_the_help_of_sweep_shows_complete_commands(harrow: Harrow) -> None:
    help_text = harrow("sweep", "--help").stdout
    for line in re.findall(r"(?m)^ +(harrow sweep .*)$", help_text):
        assert "--seeds" in line or "--report" in line
    assert "harrow sweep swarm --seeds 0..500 --vary acks=1,all" in help_text
    assert "harrow sweep swarm --seeds 0..1000" in " ".join(harrow("sweep").stderr.split())


def shown_queries(language: str, word: str) -> list[str]:
    page = (ROOT / "docs" / "how-to" / "query-sweeps.md").read_text(encoding="utf-8")
    blocks = re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)
    return [block for block in blocks if word in block]


def output_of(script: str, folder: Path) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_queries_in_the_docs_run(harrow: Harrow, small: Path) -> None:
    words = ("sweep", "broken.yaml", "--seeds", "0..8", "--vary", "acks=1,all", "--engine", "process")
    assert harrow(*words).returncode == 1
    (out,) = (small / "results").glob("sweep-*")
    runs = [row for part in out.glob("runs/*/*.parquet") for row in pq.ParquetFile(part).read().to_pylist()]
    cells = sorted({row["cell"] for row in runs})
    answers = [
        json.loads(
            output_of(f"import duckdb, json; print(json.dumps(duckdb.sql({sql!r}).fetchall()))", small)
        )
        for sql in shown_queries("sql", "read_parquet")
    ]
    verdicts, anomalies, service, by_release = answers
    decided = [row for row in runs if row["verdict"] not in {"error", "inconclusive"}]
    assert [row[0] for row in verdicts] == cells
    here = [row["verdict"] for row in decided if row["cell"] == cells[0]]
    shares = [here.count("violated") / len(here), here.count("permitted") / len(here)]
    assert verdicts[0][1:] == [len(here), *shares]
    assert {(row[0], row[1], row[2]) for row in anomalies} == {
        (row["cell"], rule["rule"], rule["status"]) for row in runs for rule in row["rules"]
    }
    assert sorted(row[0] for row in service) == cells
    worst = {row[0]: row[2] for row in service}
    assert worst[cells[0]] == max(row["outage_us"] for row in runs if row["cell"] == cells[0]) / 1e6
    assert [row[1:3] for row in by_release] == [
        [value, sum(row["settings"] == [("acks", value)] for row in decided)] for value in ("1", "all")
    ]
    (script,) = shown_queries("python", "pandas")
    script = script.replace("results/sweep-1f0c35ab-5d07c3e1", str(out))
    assert re.search(r"base acks=1 +\w+ +\d", output_of(script, small))

"""`check` as a process with valid and malformed histories from files, pipes and results."""

import gzip
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ROOT, Harrow
from tests.conftest import kill_after_test
from tests.patience import PATIENCE_S

Operation = tuple[int, str, str, list[Any]]


def text_of(*operations: Operation) -> str:
    lines = [
        {"index": index, "process": process, "type": kind, "f": f, "value": value, "time": index * 1_000_000}
        for index, (process, kind, f, value) in enumerate(operations)
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


def send(process: int, key: str | int, value: str | int, offset: int) -> tuple[Operation, Operation]:
    return (
        (process, "invoke", "send", [["send", key, value]]),
        (process, "ok", "send", [["send", key, [offset, value]]]),
    )


def poll(process: int, **records: list[list[Any]]) -> tuple[Operation, Operation]:
    return (
        (process, "invoke", "poll", [["poll"]]),
        (process, "ok", "poll", [["poll", records]]),
    )


SAFE = text_of(*send(0, "t", "m0", 0), *send(0, "t", "m1", 1), *poll(1, t=[[0, "m0"], [1, "m1"]]))
LOST = text_of(
    *send(0, "t", "m0", 0), *send(0, "t", "m1", 1), *send(0, "t", "m2", 2), *poll(1, t=[[2, "m2"], [3, "m0"]])
)
UNREAD = text_of(*poll(1, t=[]), *send(0, "t", "m0", 0))
INTERLEAVED = text_of(
    (0, "invoke", "txn", [["send", "x", "a"], ["send", "y", "d"]]),
    (1, "invoke", "txn", [["send", "x", "b"], ["send", "y", "c"]]),
    (0, "ok", "txn", [["send", "x", [0, "a"]], ["send", "y", [1, "d"]]]),
    (1, "ok", "txn", [["send", "x", [1, "b"]], ["send", "y", [0, "c"]]]),
    *poll(2, x=[[0, "a"], [1, "b"]], y=[[0, "c"], [1, "d"]]),
)


@pytest.fixture
def history(folder: Path) -> Callable[[str], str]:
    """Return a function that writes a history and returns its name."""

    def write(text: str) -> str:
        (folder / "history.jsonl").write_text(text, encoding="utf-8")
        return "history.jsonl"

    return write


def test_a_finding_of_a_jepsen_history_says_which_number_is_the_value_and_which_the_partition(
    harrow: Harrow, history: Callable[[str], str]
) -> None:
    lost = text_of(*send(0, 1, 5, 0), *send(0, 1, 6, 1), *poll(1, **{"1": [[1, 6]]}))
    lines = harrow("check", history(lost)).stdout.splitlines()
    assert "value 5, partition 1 offset 0:" in map(str.strip, lines)
    assert any("value 6 polled at offset 1 (operation 5 of process 1)" in line for line in lines)
    assert any("no ok poll returned value 5" in line for line in lines)


@pytest.mark.parametrize(
    ("text", "code", "verdict"),
    [
        (SAFE, 0, "held"),
        (INTERLEAVED, 0, "permitted"),
        (LOST, 1, "violated"),
        (UNREAD, 3, "inconclusive"),
        ("", 3, "inconclusive"),
    ],
)
def test_the_exit_code_follows_the_verdict(
    harrow: Harrow, history: Callable[[str], str], text: str, code: int, verdict: str
) -> None:
    ended = harrow("check", history(text))
    assert (ended.returncode, ended.stderr) == (code, "")
    assert re.search(rf"(?m)^{verdict}(: .* rules held)?$", ended.stdout)


def test_no_rule_holds_in_a_history_without_answers(harrow: Harrow, history: Callable[[str], str]) -> None:
    unanswered = text_of(*send(0, 0, "m0", 0)[:1])
    for text in ("", unanswered):
        path = history(text)
        counted = "\ninconclusive\nnot tried by this history: 17 rules; --verbose names them\n"
        assert counted in harrow("check", path).stdout
        assert "not tried by this history: lost-write, " in harrow("check", path, "--verbose").stdout
        rules = json.loads(harrow("check", path, "--format", "json").stdout)["rules"]
        assert {rule["status"] for rule in rules.values()} == {"skipped"}


def test_an_empty_name_is_no_history(harrow: Harrow) -> None:
    ended = harrow("check", "")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "the name of a file or folder is empty" in ended.stderr


def test_the_first_anomalies_are_listed_and_all_are_counted(harrow: Harrow, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    sends = [
        {"process": 0, "type": "ok", "f": "send", "value": [["send", "t-0", [offset, f"m{offset}"]]]}
        for offset in range(1_500)
    ]
    read = {"process": 1, "type": "ok", "f": "poll", "value": [["poll", {"t-0": [[2_000, "last"]]}]]}
    path.write_text("".join(f"{json.dumps(line)}\n" for line in (*sends, read)), encoding="utf-8")
    document = json.loads(harrow("check", str(path), "--format", "json").stdout)
    judged = document["rules"]["lost-write"]
    assert (judged["count"], judged["listed"], len(document["anomalies"]["lost-write"])) == (
        1_500,
        1_000,
        1_000,
    )
    shown = harrow("check", str(path)).stdout
    assert "lost-write (1 500 times)" in shown
    assert "and 1 497 more; --verbose shows more, --format json even more" in shown
    assert 'message="m0, m1, m2 and 1 497 more' in harrow("check", str(path), "--format", "junit").stdout
    few = json.loads(harrow("check", str(path), "--format", "json", "--max-findings", "2").stdout)
    assert few["rules"]["lost-write"] == {**judged, "listed": 2}


def test_the_document_lists_anomalies_rules_and_counts(harrow: Harrow, history: Callable[[str], str]) -> None:
    document = json.loads(harrow("check", history(LOST), "--format", "json").stdout)
    assert (document["schema"], document["verdict"]) == ("harrow.check/1", "violated")
    assert document["anomalies"].keys() == {"lost-write", "duplicate"}
    (lost,) = document["anomalies"]["lost-write"]
    assert (lost["key"], lost["value"], lost["offset"], lost["operations"]) == ("t", "m1", 1, [3, 7])
    assert [link["event"] for link in lost["chain"]] == ["acked", "polled", "conclusion"]
    assert "permitted_by" not in lost
    (duplicate,) = document["anomalies"]["duplicate"]
    assert (duplicate["value"], duplicate["offsets"]) == ("m0", [0, 3])
    lost_writes = {"status": "violated", "count": 1, "listed": 1, "promise": "acks=all"}
    assert document["rules"]["lost-write"] == lost_writes
    assert document["rules"]["inconsistent-offsets"]["status"] == "held"
    assert document["rules"]["G1a"]["status"] == "skipped"
    assert document["history"] == {
        "file": "history.jsonl",
        "lines": 8,
        "processes": 2,
        "partitions": 1,
        "sent": 3,
        "acked": 3,
        "polled": 2,
    }


def test_a_permitted_anomaly_names_its_setting(harrow: Harrow, history: Callable[[str], str]) -> None:
    document = json.loads(harrow("check", history(INTERLEAVED), "--format", "json").stdout)
    (cycle,) = document["anomalies"]["G0"]
    assert cycle["permitted_by"] == "write interleaving"
    assert cycle["operations"] == [2, 3]
    assert cycle["cycle"] == [["ww", "x", "a", "b"], ["ww", "y", "c", "d"]]


def test_stated_settings_permit_what_they_never_promised(
    harrow: Harrow, history: Callable[[str], str]
) -> None:
    ended = harrow("check", history(LOST), "--set", "acks=1", "--set", "enable.idempotence=false")
    assert ended.returncode == 0
    assert "lost-write: permitted by acks=1" in ended.stdout
    assert "duplicate: permitted by enable.idempotence=false" in ended.stdout
    assert "Judged as if everything" not in ended.stdout


def test_an_anomaly_can_be_allowed_and_demanded(harrow: Harrow, history: Callable[[str], str]) -> None:
    name = history(LOST)
    assert harrow("check", name, "--allow", "lost-write").returncode == 1
    assert harrow("check", name, "--allow", "lost-write", "--allow", "DUPLICATE").returncode == 0
    name = history(INTERLEAVED)
    assert harrow("check", name, "--demand", "g0").returncode == 1
    ended = harrow("check", name, "--demand", "G0", "--allow", "G0")
    assert ended.returncode == 2
    assert "G0 cannot be both allowed and demanded" in ended.stderr


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--set=acks=2", "acks is all, -1, 1 or 0, not '2'"),
        ("--set=acks", "'acks' is not of the form KEY=VALUE"),
        ("--set=ack=1", "did you mean `acks`?"),
        ("--set=batch.size=1", "no promise depends on 'batch.size'"),
        ("--allow=lost-writes", "did you mean `lost-write`?"),
        ("--demand=everything", "unknown anomaly 'everything'"),
    ],
)
def test_a_wrong_option_is_explained(
    harrow: Harrow, history: Callable[[str], str], option: str, message: str
) -> None:
    ended = harrow("check", history(SAFE), option)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert message in ended.stderr


def test_malformed_lines_are_reported_instead_of_a_verdict(
    harrow: Harrow, history: Callable[[str], str]
) -> None:
    lines = SAFE.splitlines(keepends=True)
    lines[1] = lines[1].replace('"ok"', '"okay"')
    lines[3] = lines[3].replace("[1,", '["one",')
    ended = harrow("check", history("".join([*lines, "{\n", "\n"])))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert [line.split(": ")[0] for line in ended.stderr.splitlines()] == [
        "history.jsonl:2:28",
        "history.jsonl:4:55",
        "history.jsonl:7:1",
    ]
    assert 'unknown `type` "okay"; did you mean `ok`?' in ended.stderr


def test_many_malformed_lines_are_counted(harrow: Harrow, history: Callable[[str], str]) -> None:
    ended = harrow("check", history("[]\n" * 50))
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1] == "harrow: and 30 more malformed lines"
    assert "history.jsonl:20:1: an operation is an object, not a list" in ended.stderr


def test_a_missing_file_and_a_folder_without_history_are_usage_errors(harrow: Harrow, folder: Path) -> None:
    ended = harrow("check", "nothing.jsonl")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "nothing.jsonl: cannot be read: No such file or directory\n"
    ended = harrow("check", ".")
    assert ended.returncode == 2
    assert "has no history.jsonl" in ended.stderr


def test_a_compressed_history_can_come_from_a_pipe(
    folder: Path, environment: dict[str, str], harrow: Harrow
) -> None:
    packed = gzip.compress(LOST.encode())
    (folder / "history.jsonl.gz").write_bytes(packed)
    assert "1:  " not in harrow("check", "history.jsonl.gz").stdout
    assert harrow("check", "history.jsonl.gz").returncode == 1
    for data in (packed, LOST.encode()):
        ended = subprocess.run(
            [sys.executable, "-m", "harrow", "check", "-", "--format", "json"],
            input=data,
            cwd=folder,
            env=environment,
            capture_output=True,
            check=False,
        )
        assert ended.returncode == 1
        assert json.loads(ended.stdout)["history"]["file"] == "<stdin>"
    (folder / "cut.gz").write_bytes(packed[:-20])
    ended_cut = harrow("check", "cut.gz")
    assert ended_cut.returncode == 2
    assert "the compressed file is damaged" in ended_cut.stderr


def test_check_judges_the_results_of_run(harrow: Harrow) -> None:
    assert harrow("run", "permitted.yaml").returncode == 0
    ended = harrow("check", "results/latest", "--set", "acks=0")
    assert ended.returncode == 0
    assert harrow("run", "calm.yaml").returncode == 0
    assert re.search(r"(?m)^held: (\d+) of \1 rules held$", harrow("check", "results/latest").stdout)


def test_output_goes_to_a_file(harrow: Harrow, history: Callable[[str], str], folder: Path) -> None:
    ended = harrow("check", history(LOST), "--format", "json", "-o", "verdict.json")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert json.loads((folder / "verdict.json").read_text(encoding="utf-8"))["verdict"] == "violated"


def test_quiet_prints_only_violations(harrow: Harrow, history: Callable[[str], str]) -> None:
    assert harrow("check", history(SAFE), "--quiet").stdout == ""
    assert harrow("check", history(INTERLEAVED), "--quiet").stdout == ""
    assert "lost-write" in harrow("check", history(LOST), "--quiet").stdout


def test_the_report_fits_a_terminal_of_80_columns(
    on_terminal: Callable[..., tuple[int, str]], history: Callable[[str], str]
) -> None:
    code, shown = on_terminal("check", history(INTERLEAVED), NO_COLOR="1")
    assert code == 0
    assert "\x1b[3" not in shown
    assert max(map(len, re.sub(r"\x1b\[[\d;]*m", "", shown).splitlines())) <= 80
    assert "\x1b[" in on_terminal("check", "history.jsonl")[1]


def test_an_interrupt_ends_a_command_with_a_message(
    processes: ExitStack, environment: dict[str, str]
) -> None:
    process = kill_after_test(
        processes,
        subprocess.Popen(
            [sys.executable, "-m", "harrow", "check", "-"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ),
    )
    assert process.stdin is not None
    # More bytes than the pipe and the reader's buffer hold, so the command has read some of them.
    process.stdin.write(SAFE.encode() * 2_000)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert message == b"harrow: interrupted: there is no result\n"


def in_parts(folder: Path, text: str) -> list[str]:
    """Write every second line into a file of its own."""
    (folder / "parts").mkdir()
    lines = text.splitlines(keepends=True)
    names = ["parts/one.jsonl", "parts/two.jsonl"]
    for number, name in enumerate(names):
        (folder / name).write_text("".join(lines[number::2]), encoding="utf-8")
    return names


def test_several_files_or_a_folder_of_them_are_one_history(harrow: Harrow, folder: Path) -> None:
    names = in_parts(folder, LOST)
    (folder / "whole.jsonl").write_text(LOST, encoding="utf-8")
    whole = json.loads(harrow("check", "whole.jsonl", "--format", "json").stdout)
    for arguments in (names, ["parts"], [(folder / "parts").as_uri()]):
        ended = harrow("check", *arguments, "--format", "json")
        assert ended.returncode == 1, ended.stderr
        document = json.loads(ended.stdout)
        assert document["anomalies"] == whole["anomalies"]
        assert {**document["history"], "file": ""} == {**whole["history"], "file": ""}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("parts/one.jsonl -", "several files are read twice, so none can be standard input"),
        ("parts/one.jsonl parts/none.jsonl", "parts/none.jsonl"),
        ("parts/one.jsonl --master local", "has no meaning without --engine spark"),
        ("- --engine spark", "Spark reads only files of histories"),
        (
            "--sent parts/one.jsonl --read parts/two.jsonl --engine spark",
            "Spark reads only files of histories",
        ),
        ("nowhere://bucket/history.jsonl", "nowhere://bucket/history.jsonl"),
        ("parts/two.jsonl parts/three.jsonl", "parts/three.jsonl:1:1: in a history of several files"),
    ],
)
def test_files_that_cannot_be_one_history_are_refused_in_one_line(
    harrow: Harrow, folder: Path, arguments: str, message: str
) -> None:
    in_parts(folder, SAFE)
    unnumbered = SAFE.splitlines()[0].replace('"index": 0, ', "")
    (folder / "parts/three.jsonl").write_text(unnumbered + "\n", encoding="utf-8")
    ended = harrow("check", *arguments.split())
    assert ended.returncode == 2
    assert message in " ".join(ended.stderr.split())
    assert len(ended.stderr.strip().splitlines()) <= 2

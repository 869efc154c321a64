"""`harrow check --sent --read` as a process."""

import gzip
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Harrow

SENT = '{"value": "a", "partition": 0, "offset": 0, "acked": true}\n'
READ = '{"topic": "t", "partition": 0, "offset": 0, "payload": "a", "key": null}\n'


@pytest.fixture
def logged(folder: Path) -> Path:
    (folder / "sent.jsonl").write_text(SENT, encoding="utf-8")
    (folder / "read.jsonl").write_text(READ, encoding="utf-8")
    return folder


def test_files_of_a_producer_and_of_kcat_are_judged(harrow: Harrow, logged: Path) -> None:
    ended = harrow("check", "--sent", "sent.jsonl", "--read", "read.jsonl", "--format", "json")
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert document["verdict"] == "held"
    assert document["history"]["file"] == "sent.jsonl and read.jsonl"
    assert (document["history"]["acked"], document["history"]["polled"]) == (1, 1)


def test_the_printed_command_names_the_files(harrow: Harrow, logged: Path) -> None:
    (logged / "read.jsonl").write_text("", encoding="utf-8")
    ended = harrow("check", "--sent", "sent.jsonl", "--read", "read.jsonl", "--format", "github")
    assert ended.returncode == 1
    assert "harrow check --sent sent.jsonl --read read.jsonl" in ended.stdout


def test_several_and_compressed_files_are_judged(harrow: Harrow, logged: Path) -> None:
    (logged / "more.jsonl.gz").write_bytes(
        gzip.compress(SENT.replace('"a"', '"b"').replace(": 0,", ": 1,").encode())
    )
    words = ("--sent", "sent.jsonl", "--sent", "more.jsonl.gz", "--read", "read.jsonl")
    ended = harrow("check", *words)
    assert ended.returncode == 1
    assert "unseen" in ended.stdout


def test_logs_are_inconclusive_about_a_demanded_rule_that_logs_cannot_show(
    harrow: Harrow, logged: Path
) -> None:
    ended = harrow("check", "--sent", "sent.jsonl", "--read", "read.jsonl", "--demand", "G1a")
    assert ended.returncode == 3
    assert "G1a is demanded, and nothing tried it" in ended.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "give a history, or --sent and --read"),
        ("--sent sent.jsonl", "--sent is only half of a history"),
        ("--read read.jsonl", "--read is only half of a history"),
        ("history.jsonl --sent sent.jsonl --read read.jsonl", "has no meaning with a history"),
        ("--sent - --read -", "only one file can be standard input"),
        ("--sent none.jsonl --read read.jsonl", "none.jsonl: cannot be read: No such file or directory"),
    ],
)
def test_incomplete_or_contradictory_files_are_refused(
    harrow: Harrow, logged: Path, words: str, message: str
) -> None:
    ended = harrow("check", *words.split())
    assert ended.returncode == 2
    assert message in " ".join(ended.stderr.split())
    assert ended.stdout == ""


def test_a_malformed_line_is_reported_with_its_file(harrow: Harrow, logged: Path) -> None:
    (logged / "read.jsonl").write_text(READ + "% Reached end of topic t [0]\n", encoding="utf-8")
    ended = harrow("check", "--sent", "sent.jsonl", "--read", "read.jsonl")
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert "read.jsonl:2:1: not JSON" in ended.stderr


PRODUCED = '{"timestamp":1,"name":"producer_send_success","key":null,"value":"0","offset":0,"topic":"t","partition":0}\n'


def test_the_output_of_a_tool_is_recognised_by_its_content(harrow: Harrow, logged: Path) -> None:
    (logged / "producer.log").write_text(PRODUCED, encoding="utf-8")
    ended = harrow("check", "producer.log", "--format", "json")
    assert ended.returncode == 3, ended.stderr
    rules = json.loads(ended.stdout)["rules"]
    assert (rules["unseen"]["status"], rules["lost-write"]["status"]) == ("inconclusive", "skipped")
    ended = harrow("check", "read.jsonl")
    assert ended.returncode == 3
    assert "nothing was tried: no record was sent" in ended.stdout


def test_logs_of_several_tools_need_no_options(harrow: Harrow, logged: Path) -> None:
    (logged / "producer.log").write_text(PRODUCED, encoding="utf-8")
    by_content = harrow("check", "producer.log", "read.jsonl", "--format", "json")
    assert by_content.returncode in (0, 1, 3), by_content.stderr
    size = json.loads(by_content.stdout)["history"]
    assert size["sent"] > 0
    assert size["polled"] > 0


def test_rules_about_which_logs_cannot_show_anything_are_named_but_are_no_test_cases(
    harrow: Harrow, logged: Path
) -> None:
    files = ("check", "--sent", "sent.jsonl", "--read", "read.jsonl")
    assert "not tried by this history: nonmonotonic-send, " in harrow(*files, "--verbose").stdout
    report = harrow(*files, "--format", "junit").stdout
    assert 'name="lost-write"' in report
    assert 'name="nonmonotonic-send"' not in report
    assert 'skipped="0"' in report


def test_a_log_given_with_the_wrong_option_is_refused(harrow: Harrow, logged: Path) -> None:
    (logged / "producer.log").write_text(PRODUCED, encoding="utf-8")
    ended = harrow("check", "--sent", "sent.jsonl", "--read", "producer.log")
    assert ended.returncode == 2
    assert "producer.log:1:16: `producer_send_success` is an event of a log for --sent" in ended.stderr

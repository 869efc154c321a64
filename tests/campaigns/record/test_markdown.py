"""Markdown shows any text of a campaign literally, and no line is a command to a CI system."""

import re

import pytest

from harrow.campaigns.record.markdown import code, console, document, table, text
from harrow.campaigns.record.markdown_report import markdown_report
from tests.campaigns.record.run_results import run_result

COMMANDS = ["##vso[task.complete]", "##[error]a", "##teamcity[message text='x']"]
COMMAND = re.compile(r"##\w*\[")


@pytest.mark.parametrize("command", COMMANDS)
def test_no_text_in_a_document_is_a_command_to_a_ci_system(command: str) -> None:
    parts = [text(command), code(command), console(command), table([command], [[command]]), f"a {command}"]
    for part in (*parts[:3], *document(parts).splitlines()):
        assert not COMMAND.search(part), part


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_that_repeats_a_run_is_not_a_command_to_a_ci_system(command: str) -> None:
    report = markdown_report(run_result(), f"harrow run c.yaml --variant '{command}'")
    assert "--variant '##" in report
    assert not COMMAND.search(report)


def test_a_command_stays_on_one_line() -> None:
    assert console("harrow run 'a\nb\x1b'") == "```console\n$ harrow run 'a\\nb\\x1b'\n```"


def test_a_document_has_no_empty_paragraphs() -> None:
    assert document(["a", "", "b\nc"]) == "a\n\nb\nc\n"

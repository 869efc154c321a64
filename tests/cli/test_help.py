"""The help groups every command, its examples work, and mistakes get suggestions."""

import os
import re
import shlex
from pathlib import Path
from typing import Any, Final, get_args

import pytest
import typer

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.cli.command_help import EXAMPLES
from harrow.cli.main import app, with_suggestion
from harrow.cli.options import Kind
from harrow.cli.render.catalogue import entries
from harrow.cli.requests import GROUPS
from harrow.cluster_model.release.profiles import SWITCHES
from tests.cli.conftest import Harrow

COMMANDS = sorted(EXAMPLES)

OPTIONS: Final = Path(__file__).parent / "snapshots" / "options.txt"


def test_the_help_lists_every_command_in_its_group_without_cutting_its_summary(harrow: Harrow) -> None:
    output = harrow("--help").stdout
    assert "..." not in output.partition("Run campaigns:")[2].replace("campaigns ...", "")
    for heading, names in GROUPS.items():
        section = output.partition(f"{heading}:\n")[2].partition("\n\n")[0]
        assert re.findall(r"^  (\w+)", section, re.MULTILINE) == list(names)


def test_no_command_gains_or_loses_an_option_unseen() -> None:
    """``HARROW_WRITE_SNAPSHOTS=1`` rewrites the file; a lost option breaks its users' scripts."""
    lines = [
        " ".join([name, *sorted(option for parameter in command.params for option in _spellings(parameter))])
        for name, command in sorted(typer.main.get_group(app).commands.items())
    ]
    if os.environ.get("HARROW_WRITE_SNAPSHOTS") == "1":
        OPTIONS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert lines == OPTIONS.read_text(encoding="utf-8").splitlines()


def _spellings(parameter: Any) -> list[str]:
    """Return an option's names with its values, or an argument's name in capitals."""
    if parameter.param_type_name == "argument":
        return [str(parameter.name).upper()]
    flag = "" if parameter.is_flag else "="
    return [f"{name}{flag}" for name in (*parameter.opts, *parameter.secondary_opts)]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_has_examples(harrow: Harrow, command: str) -> None:
    help_text = harrow(command, "--help").stdout
    assert "  Examples:\n" in help_text
    for typed, meaning in EXAMPLES[command]:
        assert typed.split()[:2] == ["harrow", command]
        assert f"    {typed}\n        {meaning}\n" in help_text
        options = [word for word in shlex.split(typed) if word.startswith("-")]
        assert all(re.search(rf"(^|[ ,]){option}\b", help_text, re.MULTILINE) for option in options)


@pytest.mark.parametrize(
    "typed",
    [
        typed
        for command in ("run", "list", "explain", "new", "schema", "clean")
        for typed, _ in EXAMPLES[command]
        if not re.search(r"mine|campaigns/ |>|--watch|--target|cluster\.yaml", typed)
    ],
)
def test_examples_that_need_no_files_run(harrow: Harrow, typed: str) -> None:
    assert harrow(*shlex.split(typed)[1:]).returncode == 0


def test_the_help_of_list_names_every_catalogue(harrow: Harrow) -> None:
    shown = " ".join(harrow("list", "--help").stdout.split())
    assert f"The catalogue to list: {', '.join(get_args(Kind))}." in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_a_usage_line_has_no_brackets_in_brackets(harrow: Harrow, command: str) -> None:
    usage = harrow(command, "--help").stdout.partition("\n\n")[0]
    assert "[[" not in usage
    assert "]]" not in usage


def test_every_entry_of_a_catalogue_shows_its_use() -> None:
    for kind in set(get_args(Kind)) - {"terms", "tickets"}:
        for entry in entries(kind):
            has_no_run = kind == "behaviours" and not SWITCHES[entry.name].is_read_in_campaign
            assert entry.sections.keys() & {"in a campaign", "try"} or has_no_run, entry.name


def test_every_ticket_names_its_declarations_or_campaigns() -> None:
    for entry in entries("tickets"):
        assert entry.sections, entry.name


def test_every_run_that_an_explanation_suggests_can_be_loaded() -> None:
    advised = [
        entry.sections["try"]["run"]
        for kind in get_args(Kind)
        for entry in entries(kind)
        if "run" in entry.sections.get("try", {})
    ]
    assert len(advised) >= 300
    for command in advised:
        _, _, campaign, *options = shlex.split(command)
        load_campaign(resolve(campaign)[0], overrides=[option for option in options if "=" in option])


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (("list", "fautls"), "there is no `fautls`; did you mean `faults`? known: faults, actions, "),
        (("run", "calm.yaml", "--format", "junti"), "did you mean `junit`?"),
        (("explain", "broker_crahs"), "did you mean `broker_crash`?"),
        (("explain", "xyzzy"), "`harrow list faults` shows"),
        (("rnu", "calm.yaml"), "Did you mean 'run'?"),
        (("run", "permitted.yaml", "--variant", "acks-al"), "did you mean `acks-all`?"),
    ],
)
def test_mistakes_come_with_a_suggestion(harrow: Harrow, arguments: tuple[str, ...], suggestion: str) -> None:
    ended = harrow(*arguments)
    assert ended.returncode == 2
    assert suggestion in ended.stderr
    assert "Value error" not in ended.stderr


def test_other_usage_errors_keep_their_message() -> None:
    assert with_suggestion("'x' is not a valid integer.") == "'x' is not a valid integer."

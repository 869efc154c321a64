"""What README.md shows is true."""

import re
import shlex
from pathlib import Path

from tests.cli.conftest import ROOT, Harrow

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_first_campaign_does_what_it_says(harrow: Harrow, folder: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    (folder / "shown.yaml").write_text(text, encoding="utf-8")
    ended = harrow("run", "shown.yaml")
    assert ended.returncode == 0, ended.stdout
    assert "lost m0, permitted by acks=1" in ended.stdout


def test_the_first_output_is_what_one_gets(harrow: Harrow) -> None:
    shown = README.partition("$ harrow run loss-by-hw-truncation\n")[2].partition("```")[0]
    ended = harrow("run", "loss-by-hw-truncation")
    assert ended.stdout.startswith(shown)


def test_every_command_that_is_shown_exists(harrow: Harrow) -> None:
    told = harrow("--help").stdout
    for command in set(re.findall(r"`harrow ([a-z]+)", README)):
        assert re.search(rf"^  {command} ", told, re.MULTILINE), command


def test_the_commands_of_the_first_campaign_run(harrow: Harrow) -> None:
    section = README.partition("## A first campaign")[2].partition("\n## ")[0]
    commands = re.findall(r"^\$ (harrow .*?)(?:\s+#.*)?$", section, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        ended = harrow(*shlex.split(command.replace("0..200", "0..20"))[1:])
        assert ended.returncode == 0, (command, ended.stdout + ended.stderr)

"""README.md and the first campaign work line by line in a new installation."""

import os
import subprocess
from pathlib import Path

import pytest

from harrow.cli.extras import EXTRAS
from tests.cli.docs_exceptions import NEEDS_BROKERS, NOT_RUN, SMALLER, TYPED
from tests.cli.docs_pages import Command, difference, read_page
from tests.packaging.distributions import VirtualEnvironment
from tests.patience import PATIENCE_S
from tests.plain_environment import ROOT

INSTALL_EXTRAS = ("docs/get-started/first-campaign.md",)
"""Pages that tell readers which extras to install."""


def hide_extras(environment: VirtualEnvironment) -> None:
    for module in (module for modules in EXTRAS.values() for module in modules):
        (environment.home / "dependencies" / module).unlink(missing_ok=True)


def run_typed(command: Command, folder: Path, variables: dict[str, str]) -> tuple[int, str]:
    text = command.text
    for longer, shorter in SMALLER:
        text = text.replace(longer, shorter)
    if command.columns is not None:
        variables = {**variables, "COLUMNS": str(command.columns)}
    completed = subprocess.run(
        ["/bin/bash", "-c", f"set -o pipefail\n{text}"],
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return completed.returncode, completed.stdout + completed.stderr


@pytest.mark.parametrize("name", TYPED)
def test_a_newcomer_gets_the_output_on_the_page(
    name: str, wheel: Path, environment: VirtualEnvironment, tmp_path: Path
) -> None:
    pytest.importorskip("duckdb")
    environment.install(wheel)
    if name not in INSTALL_EXTRAS:
        hide_extras(environment)
    page = read_page(ROOT / name, ROOT)
    folder, home = tmp_path / "project", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    for file, text in page.files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")
    variables = {"PATH": f"{environment.python.parent}{os.pathsep}{os.defpath}", "HOME": str(home)}
    wrong = []
    commands = [
        command
        for command in page.commands
        if command.text not in NOT_RUN and NEEDS_BROKERS not in command.text
    ]
    for command in commands:
        code, printed = run_typed(command, folder, variables)
        if code != command.exit_code:
            wrong.append(f"{command.where}\nexit code {code}, not {command.exit_code}:\n{printed}")
        elif command.shown and (other := difference(command.shown, printed.splitlines())):
            wrong.append(f"{command.where}\n{other}")
    assert not wrong, "\n\n".join(wrong)
    assert len(commands) > 5
    assert list(home.iterdir()) == []


def test_without_extras_a_sweep_names_what_to_install(
    wheel: Path, environment: VirtualEnvironment, tmp_path: Path
) -> None:
    environment.install(wheel)
    hide_extras(environment)
    words = ("harrow", "sweep", "swarm", "--seeds", "0..5")
    completed = environment.run(*words, folder=tmp_path, check=False)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert completed.stderr.endswith(" is not installed: pip install 'kafka-harrow[sweep]'\n")
    assert completed.stderr.count("\n") == 1

"""Every command in README.md and the pages of docs/ runs in order, in one folder for each page.

Its exit code and output have to match the page. `docs_exceptions.py` lists the commands that cannot
run here, or only in a smaller form, with reasons.
"""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from harrow.cli.main import app
from tests.cli import warm_process
from tests.cli.docs_exceptions import NEEDS_BROKERS, NEEDS_SPARK, NOT_RUN, PREPARED, SMALLER, TYPED
from tests.cli.docs_pages import Command, Page, difference, other_blocks, read_page
from tests.patience import PATIENCE_S
from tests.plain_environment import PYTHONPATH, ROOT, plain_environment

PAGES = [
    read_page(path, ROOT)
    for path in (ROOT / "README.md", ROOT / "results" / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
]
NEED_A_SHELL = ("--engine hypothesis", "|", "&&", ";")
"""Signs of commands that need a shell, or libraries that do not survive a fork."""


def run(command: Command, folder: Path) -> tuple[int, str]:
    """Run a command in a folder and return its exit code and output."""
    text = command.text
    for longer, shorter in SMALLER:
        text = text.replace(longer, shorter)
    environment = {**plain_environment(), "PYTHONPATH": PYTHONPATH, "PYTHON": sys.executable}
    if command.columns is not None:
        environment["COLUMNS"] = str(command.columns)
    if text.startswith("harrow ") and not any(sign in text for sign in NEED_A_SHELL):
        ended = warm_process.run(shlex.split(text)[1:], folder, environment, PATIENCE_S)
    else:
        ended = run_in_shell(text, folder, environment)
    return ended.returncode, ended.stdout + ended.stderr


TOOLS = """
set -o pipefail
harrow() { "$PYTHON" -m harrow "$@"; }
pytest() { PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 "$PYTHON" -m pytest -p harrow.pytest_harrow.plugin -p no:cacheprovider "$@"; }
"""


def run_in_shell(text: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/bash", "-c", f"{TOOLS}{text}"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in TYPED], ids=lambda page: page.name
)
def test_every_command_of_a_page_prints_what_the_page_shows(page: Page, tmp_path: Path) -> None:
    for name, text in {**page.files, **PREPARED.get(page.name, {})}.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    wrong = []
    for command in page.commands:
        if command.text in NOT_RUN or any(mark in command.text for mark in (NEEDS_BROKERS, *NEEDS_SPARK)):
            continue
        code, printed = run(command, tmp_path)
        if code != command.exit_code:
            wrong.append(f"{command.where}\nexit code {code}, the page says {command.exit_code}:\n{printed}")
        elif command.shown and (other := difference(command.shown, printed.splitlines())):
            wrong.append(f"{command.where}\n{other}")
    assert not wrong, "\n\n".join(wrong)
    for name, text in page.files.items():
        written = (tmp_path / name).read_text(encoding="utf-8")
        assert difference(tuple(text.splitlines()), written.splitlines()) is None, f"{page.name}: {name}"


MENTIONS = [mention for page in PAGES for mention in page.mentions]


@pytest.mark.parametrize("mention", MENTIONS, ids=lambda mention: mention.text)
def test_every_command_that_the_docs_mention_exists(mention: Command) -> None:
    commands = typer.main.get_group(app)
    name, *rest = [word.strip("[],") for word in mention.text.split()[1:]]
    assert name in commands.commands, mention.where
    options = {option for parameter in commands.commands[name].params for option in parameter.opts}
    assert {word for word in rest if word.startswith("-")} <= options, mention.where


def test_every_page_is_checked() -> None:
    shown = {page.name for page in PAGES if page.commands}
    assert {
        "README.md",
        "docs/how-to/ci.md",
        "docs/how-to/diff.md",
        "docs/how-to/trace.md",
        "docs/how-to/shrink.md",
    } <= shown
    assert sum(len(page.commands) for page in PAGES) >= 60


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_command_of_a_page_escapes_the_check(page: Page) -> None:
    typed = [line.strip() for line in page.text.splitlines() if line.strip().startswith("$ ")]
    recognised = [command.text for command in page.commands if not command.inline]
    missed = [line for line in typed if not any(line.startswith(f"$ {text}") for text in recognised)]
    assert missed == []
    blocks = other_blocks(page.text)
    assert not [line for block in blocks for line in block.splitlines() if line.startswith("harrow ")]


@pytest.mark.parametrize("command", NOT_RUN)
def test_every_exempt_command_is_in_a_page(command: str) -> None:
    assert any(command == shown.text for page in PAGES for shown in page.commands)


def test_every_command_that_needs_brokers_is_in_a_page() -> None:
    assert any(NEEDS_BROKERS in shown.text for page in PAGES for shown in page.commands)


@pytest.mark.parametrize("longer", [longer for longer, _ in SMALLER])
def test_every_smaller_example_is_in_a_page(longer: str) -> None:
    assert any(longer in shown.text for page in PAGES for shown in page.commands)

"""What a newcomer sees first is right: the package page, `make help`, the project's addresses."""

import re
import subprocess
import tomllib
from email import message_from_string
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt

from harrow.campaigns.version import HOME as HOME_IN_CODE
from harrow.campaigns.version import RELEASE
from hatch_build import with_absolute_links
from tests.packaging.distributions import content
from tests.plain_environment import ROOT

PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HOME: Final = PROJECT["urls"]["Repository"]


def output_of(*words: str) -> str:
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def addresses(page: str) -> list[str]:
    """Return the targets of links and images on a Markdown page."""
    inline = [child for token in MarkdownIt().parse(page) for child in token.children or ()]
    targets = [token.attrGet("href") or token.attrGet("src") for token in inline]
    return [str(address) for address in targets if address]


def test_every_link_on_the_page_of_the_package_is_absolute(wheel: Path) -> None:
    metadata = next(data for name, data in content(wheel).items() if name.endswith("/METADATA")).decode()
    message = message_from_string(metadata)
    assert message["Description-Content-Type"] == "text/markdown"
    links = addresses(str(message.get_payload()))
    assert len(links) == len(addresses((ROOT / "README.md").read_text(encoding="utf-8")))
    assert [link for link in links if not link.startswith("https://")] == []
    assert set(message.get_all("Project-URL") or ()) == {
        f"{name}, {address}" for name, address in PROJECT["urls"].items()
    }


def test_links_become_absolute_and_code_stays_unchanged() -> None:
    page = "[a](docs/a.md#b) ![p](p.svg) [![p](p.svg)](p.md) [c](#c) [d](https://d.org) `[e](e.md)`\n```\n[f](f.md)\n```\n"
    raw = HOME.replace("//github.com", "//raw.githubusercontent.com")
    assert with_absolute_links(page, HOME, "v1.0") == (
        f"[a]({HOME}/blob/v1.0/docs/a.md#b) ![p]({raw}/v1.0/p.svg) "
        f"[![p]({raw}/v1.0/p.svg)]({HOME}/blob/v1.0/p.md) [c](#c) [d](https://d.org) `[e](e.md)`\n"
        "```\n[f](f.md)\n```\n"
    )


def test_every_address_of_the_project_names_the_repository_of_pyproject() -> None:
    named = re.compile(r"(?:github\.com/|githubusercontent\.com/|uses: |repository: )([\w.-]+)/harrow\b")
    owners = {
        (name, owner)
        for name in output_of("git", "ls-files").splitlines()
        if (ROOT / name).is_file() and not (ROOT / name).is_symlink()
        for owner in named.findall((ROOT / name).read_text(encoding="utf-8", errors="replace"))
    }
    assert owners
    assert {(name, owner) for name, owner in owners if f"https://github.com/{owner}/harrow" != HOME} == set()


def test_the_code_names_the_same_home_as_pyproject() -> None:
    assert HOME_IN_CODE == HOME


def test_pages_name_no_release_but_the_last_one() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.yml")]
    versions = re.compile(r"(?:harrow@|rev: |for example `)v(\d+\.\d+\.\d+)")
    named = {
        (path.name, version)
        for path in pages
        for version in versions.findall(path.read_text(encoding="utf-8"))
    }
    assert {name for name, _ in named} >= {"ci.md", "CONTRIBUTING.md"}
    assert {(name, version) for name, version in named if version != RELEASE} == set()


def test_make_help_has_one_line_for_each_target() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    shown = output_of("make", "--no-print-directory", "help")
    assert sorted(line.split()[1] for line in shown.splitlines()) == sorted(phony.split())
    assert [line for line in shown.splitlines() if len(line) > 80] == []

"""A real headless browser for tests of pages.

Without one these tests are skipped; with ``HARROW_REQUIRE_CHROMIUM=1`` they fail instead.
"""

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest

from tests.patience import PATIENCE_S

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@functools.cache
def _browser() -> str | None:
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


def needs_chromium() -> None:
    """Skip a test without a browser, or fail if one is required."""
    if _browser() is not None:
        return
    if os.environ.get("HARROW_REQUIRE_CHROMIUM") == "1":
        pytest.fail("HARROW_REQUIRE_CHROMIUM=1, but there is no Chromium")
    pytest.skip("no Chromium")


def dom(page: Path, profile: Path, fragment: str = "") -> str:
    """Return the document of a page after a browser loaded it from disk."""
    browser = _browser()
    assert browser is not None
    ended = subprocess.run(
        [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *("--window-size=1400,900", f"--user-data-dir={profile}", "--dump-dom"),
            f"file://{page}#{quote(fragment, safe='=&')}",
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE_S,
        check=True,
    )
    return ended.stdout


def measured(document: str, name: str) -> float:
    """Return a number that a page wrote into its first tag."""
    match = re.search(rf'<html[^>]* data-{name}="([0-9.]+)"', document)
    assert match is not None, document[:300]
    return float(match[1])

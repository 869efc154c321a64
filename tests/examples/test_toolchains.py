"""A machine without a tool or its repository skips the tests that need them."""

import sys
from pathlib import Path

import pytest

from tests.examples import toolchains
from tests.examples.toolchains import prepare
from tests.marked_processes import mark_of, marked_processes
from tests.patience import act_until


def test_a_hanging_download_skips_the_test_and_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchains, "DOWNLOAD_S", 0.5)
    for name, value in mark_of(tmp_path).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(pytest.skip.Exception, match=r"has no libraries after 0\.5 s"):
        prepare(tmp_path, "sh", "-c", "sleep 1000 & wait")
    act_until(lambda: not marked_processes(tmp_path))


def test_a_repository_out_of_reach_skips_the_test(tmp_path: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match="no libraries: no such host"):
        prepare(tmp_path, sys.executable, "-c", "raise SystemExit('no such host')")


def test_a_missing_tool_skips_the_test(tmp_path: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match="no-such-tool is missing"):
        prepare(tmp_path, "no-such-tool")


def test_another_failure_of_a_tool_fails_the_test(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="broken"):
        prepare(tmp_path, sys.executable, "-c", "raise SystemExit('broken')")

"""Shell completion by the protocol of Typer's scripts."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harrow.campaigns.language.library_index import library_names
from tests.cli.conftest import Harrow

Complete = Callable[..., list[str]]

HEAVY = {
    "yaml",
    "rich",
    "rich.console",
    "hypothesis",
    "pyarrow",
    "harrow.campaigns.language.loader",
    "harrow.campaigns.run.runner",
}


@pytest.fixture
def complete(harrow: Harrow) -> Complete:
    """Return a function that completes the last word in bash."""

    def run(*words: str, **variables: str) -> list[str]:
        ended = harrow(
            **variables,
            _HARROW_COMPLETE="complete_bash",
            COMP_WORDS=" ".join(("harrow", *words)),
            COMP_CWORD=str(len(words)),
        )
        assert ended.returncode == 0
        assert "Traceback" not in ended.stderr
        return [line for line in ended.stdout.splitlines() if line]

    return run


def test_commands_options_and_their_values_are_completed(complete: Complete) -> None:
    assert set(complete("re")) == {"replay", "regress"}
    assert "--max-failures" in complete("run", "--max")
    assert complete("run", "--format", "ju") == ["junit"]


@pytest.mark.parametrize("command", ["run", "sweep", "shrink", "validate"])
def test_campaigns_of_the_library_are_completed(complete: Complete, command: str) -> None:
    assert complete(command, "loss") == ["loss-by-hw-truncation"]


def test_campaign_files_and_folders_are_completed(complete: Complete, folder: Path) -> None:
    assert set(complete("run", "")) >= {*library_names(), "calm.yaml", "permitted.yaml"}
    (folder / "mine").mkdir()
    (folder / "mine" / "one.yml").write_text("", encoding="utf-8")
    (folder / "mine" / "notes.md").write_text("", encoding="utf-8")
    assert complete("run", "min") == ["mine/"]
    assert complete("run", "mine/") == ["mine/one.yml"]
    assert complete("run", "no-such/thing") == []


@pytest.mark.parametrize("before", [("run",), ("sweep", "--seeds", "0..9"), ("shrink",)])
def test_the_variants_of_the_named_campaign_are_completed(
    complete: Complete, before: tuple[str, ...]
) -> None:
    assert complete(*before, "acks-0", "--variant", "") == ["base", "acks-1", "acks-all", "no-retries"]
    assert complete(*before, "permitted.yaml", "--variant", "a") == ["acks-all"]


def test_names_in_every_catalogue_are_completed(complete: Complete) -> None:
    assert complete("explain", "broker_cr") == ["broker_crash"]
    assert complete("explain", "min.in") == ["min.insync.replicas"]
    assert complete("explain", "lost-w") == ["lost-write"]
    assert complete("explain", "truncated-below-hw") == ["truncated-below-hw"]
    assert complete("explain", "loss-by") == ["loss-by-hw-truncation"]
    assert "faults" in complete("list", "")


def test_rules_and_anomalies_are_completed(complete: Complete) -> None:
    assert complete("shrink", "acks-0", "--rule", "lost") == ["lost-write", "lost-effect"]
    assert complete("check", "x", "--allow", "dup") == ["duplicate"]
    assert complete("check", "x", "--demand", "G1") == ["G1a", "G1c"]


def test_recorded_runs_are_completed(complete: Complete, harrow: Harrow, folder: Path) -> None:
    harrow("run", "calm.yaml")
    (run,) = (folder / "results" / "calm").iterdir()
    assert complete("replay", run.name[:4]) == [run.name]
    assert "results/latest" in complete("replay", "")
    assert complete("replay", "results/calm/") == [f"results/calm/{run.name}"]
    (folder / "results").rename(folder / "other")
    assert complete("replay", "--results", "other", run.name[:4]) == [run.name]


def test_every_name_with_an_explanation_is_completed(complete: Complete) -> None:
    from harrow.cli.render.catalogue import all_names

    assert set(complete("explain", "")) >= set(all_names())


@pytest.mark.parametrize(
    "words",
    [("run", ""), ("run", "acks-0", "--variant", ""), ("explain", ""), ("replay", ""), ("l",)],
    ids=" ".join,
)
def test_completion_loads_no_heavy_module(harrow: Harrow, words: tuple[str, ...]) -> None:
    ended = harrow(
        _HARROW_COMPLETE="complete_bash",
        COMP_WORDS=" ".join(("harrow", *words)),
        COMP_CWORD=str(len(words)),
        PYTHONPROFILEIMPORTTIME="1",
    )
    loaded = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert "typer" in loaded
    assert not loaded & HEAVY


def test_zsh_and_fish_complete_campaigns(harrow: Harrow) -> None:
    for shell in ("zsh", "fish"):
        ended = harrow(
            _HARROW_COMPLETE=f"complete_{shell}",
            _TYPER_COMPLETE_ARGS="harrow run loss",
            _TYPER_COMPLETE_FISH_ACTION="get-args",
        )
        assert "loss-by-hw-truncation" in ended.stdout

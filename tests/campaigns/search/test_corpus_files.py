"""Every file named like a campaign is an entry of a corpus, readable or not."""

import os
import threading
from pathlib import Path

import pytest

from harrow.campaigns.language.problem import CampaignError
from harrow.campaigns.run.workers import workers
from harrow.campaigns.run.workers.workers import Workers
from harrow.campaigns.search import corpus
from harrow.campaigns.search.corpus import ERROR, FIXED, check_files, corpus_files
from tests.plain_environment import ROOT

REGRESSIONS = ROOT / "tests" / "regressions"

GOOD = """
found: {version: 0.1.0, rule: lost-write, status: fixed}
cluster: {brokers: 1, topics: [{name: t}]}
script:
  - do: {send: m0}
  - when: {acked: m0}
expect: {verdict: held}
"""


@pytest.fixture
def corpus_folder(tmp_path: Path) -> Path:
    """Return a corpus of one good entry."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "good.yaml").write_text(GOOD, encoding="utf-8")
    return folder


def names(corpus_folder: Path) -> list[str]:
    return [str(file.relative_to(corpus_folder)) for file in corpus_files(corpus_folder)]


def outcomes(file: Path) -> list[tuple[str, str]]:
    return [(item.outcome, " ".join(map(str, item.problems))) for item in check_files([file])]


def test_files_in_subfolders_count_with_any_spelling_of_the_suffix(corpus_folder: Path) -> None:
    for name in ("b/second.yml", "a/third.YAML", "a/notes.txt", "a/.hidden.yaml", ".git/fourth.yaml"):
        (corpus_folder / name).parent.mkdir(exist_ok=True)
        (corpus_folder / name).write_text(GOOD, encoding="utf-8")
    assert names(corpus_folder) == ["a/third.YAML", "b/second.yml", "good.yaml"]
    assert names(corpus_folder / "good.yaml") == ["."]
    with pytest.raises(CampaignError, match="no such file or folder"):
        corpus_files(corpus_folder / "nothing")


def test_links_are_followed_once(corpus_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "linked.yaml").write_text(GOOD, encoding="utf-8")
    (corpus_folder / "link").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (corpus_folder / "round").symlink_to(corpus_folder, target_is_directory=True)
    assert names(corpus_folder) == ["good.yaml", "link/linked.yaml"]
    assert outcomes(corpus_folder / "link" / "linked.yaml") == [(FIXED, "")]


def test_a_file_that_cannot_be_read_is_an_error(corpus_folder: Path) -> None:
    (corpus_folder / "folder.yaml").mkdir()
    (corpus_folder / "gone.yaml").symlink_to(corpus_folder / "nowhere")
    assert names(corpus_folder) == ["folder.yaml", "gone.yaml", "good.yaml"]
    for name in ("folder.yaml", "gone.yaml"):
        ((outcome, problem),) = outcomes(corpus_folder / name)
        assert outcome == ERROR
        assert problem.startswith(f"{corpus_folder / name}: cannot be read: ")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name here")
def test_a_pipe_is_reported_without_opening_it(corpus_folder: Path) -> None:
    os.mkfifo(corpus_folder / "pipe.yaml")
    found: list[tuple[str, str]] = []
    reader = threading.Thread(target=lambda: found.extend(outcomes(corpus_folder / "pipe.yaml")), daemon=True)
    reader.start()
    reader.join(timeout=10)
    assert [outcome for outcome, _ in found] == [ERROR]


def test_an_unreadable_folder_is_an_error(corpus_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that removes permissions would not work for root, so this one patches the listing."""
    (corpus_folder / "locked").mkdir()
    listed = Path.iterdir

    def refuse(folder: Path) -> object:
        if folder.name == "locked":
            raise PermissionError(13, "Permission denied", str(folder))
        return listed(folder)

    monkeypatch.setattr(Path, "iterdir", refuse)
    assert names(corpus_folder) == ["good.yaml", "locked"]
    assert outcomes(corpus_folder / "locked")[0][0] == ERROR


def test_a_bug_of_the_loader_does_not_stop_other_entries(
    corpus_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(file: Path) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(corpus, "load_campaign", broken)
    ((outcome, problem),) = outcomes(corpus_folder / "good.yaml")
    assert outcome == ERROR
    assert "good.yaml:1:1: cannot be read because of a bug in harrow: RecursionError: too deep" in problem


def test_entries_come_in_the_order_of_their_files_on_any_number_of_workers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Files that cannot run are among the others."""
    monkeypatch.setattr(workers, "_ALONE_S", 0.0)
    files = corpus_files(REGRESSIONS)[:4]
    for name, position in (("first", 0), ("middle", 2), ("last", len(files) + 2)):
        wrong = tmp_path / f"{name}.yaml"
        wrong.write_text("name: [", encoding="utf-8")
        files.insert(position, wrong)
    alone, together = (
        [(item.file, item.outcome, item.why) for item in check_files(files, Workers(n))] for n in (1, 3)
    )
    assert together == alone
    assert [file for file, *_ in alone] == files
    assert [outcome == ERROR for _, outcome, _ in alone] == [file.parent == tmp_path for file in files]


def test_abandoning_a_corpus_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_ALONE_S", 0.0)
    before = set(threading.enumerate())
    results = check_files(corpus_files(REGRESSIONS), Workers(2))
    next(results)
    results.close()
    assert set(threading.enumerate()) == before

"""Every file named like a campaign is an entry of a corpus, readable or not."""

import os
import threading
from pathlib import Path

import pytest

from harrow.campaigns.language.problem import CampaignError
from harrow.campaigns.run.workers import workers
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
def place(tmp_path: Path) -> Path:
    """Return a corpus of one good entry."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "good.yaml").write_text(GOOD, encoding="utf-8")
    return folder


def names(place: Path) -> list[str]:
    return [str(file.relative_to(place)) for file in corpus_files(place)]


def outcomes(file: Path) -> list[tuple[str, str]]:
    return [(item.outcome, " ".join(map(str, item.problems))) for item in check_files([file])]


def test_files_in_subfolders_count_with_any_spelling_of_the_suffix(place: Path) -> None:
    for name in ("b/second.yml", "a/third.YAML", "a/notes.txt", "a/.hidden.yaml", ".git/fourth.yaml"):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(GOOD, encoding="utf-8")
    assert names(place) == ["a/third.YAML", "b/second.yml", "good.yaml"]
    assert names(place / "good.yaml") == ["."]
    with pytest.raises(CampaignError, match="no such file or folder"):
        corpus_files(place / "nothing")


def test_links_are_followed_once(place: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "linked.yaml").write_text(GOOD, encoding="utf-8")
    (place / "link").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (place / "round").symlink_to(place, target_is_directory=True)
    assert names(place) == ["good.yaml", "link/linked.yaml"]
    assert outcomes(place / "link" / "linked.yaml") == [(FIXED, "")]


def test_a_file_that_cannot_be_read_is_an_error(place: Path) -> None:
    (place / "folder.yaml").mkdir()
    (place / "gone.yaml").symlink_to(place / "nowhere")
    assert names(place) == ["folder.yaml", "gone.yaml", "good.yaml"]
    for name in ("folder.yaml", "gone.yaml"):
        ((outcome, problem),) = outcomes(place / name)
        assert outcome == ERROR
        assert problem.startswith(f"{place / name}: cannot be read: ")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name here")
def test_a_pipe_is_reported_without_opening_it(place: Path) -> None:
    os.mkfifo(place / "pipe.yaml")
    found: list[tuple[str, str]] = []
    reader = threading.Thread(target=lambda: found.extend(outcomes(place / "pipe.yaml")), daemon=True)
    reader.start()
    reader.join(timeout=10)
    assert [outcome for outcome, _ in found] == [ERROR]


def test_an_unreadable_folder_is_an_error(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user who runs the tests may have permission to read everything."""
    (place / "locked").mkdir()
    listed = Path.iterdir

    def refusing(folder: Path) -> object:
        if folder.name == "locked":
            raise PermissionError(13, "Permission denied", str(folder))
        return listed(folder)

    monkeypatch.setattr(Path, "iterdir", refusing)
    assert names(place) == ["good.yaml", "locked"]
    assert outcomes(place / "locked")[0][0] == ERROR


def test_a_bug_of_the_loader_does_not_stop_other_entries(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(file: Path) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(corpus, "load_campaign", broken)
    ((outcome, problem),) = outcomes(place / "good.yaml")
    assert outcome == ERROR
    assert "good.yaml:1:1: cannot be read because of a bug in harrow: RecursionError: too deep" in problem


def test_entries_come_in_the_order_of_their_files_on_any_number_of_workers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Files that cannot run are among the others."""
    monkeypatch.setattr(workers, "_ALONE_S", 0.0)
    files = corpus_files(REGRESSIONS)[:4]
    for name, place in (("first", 0), ("middle", 2), ("last", len(files) + 2)):
        wrong = tmp_path / f"{name}.yaml"
        wrong.write_text("name: [", encoding="utf-8")
        files.insert(place, wrong)
    alone, together = (
        [(item.file, item.outcome, item.why) for item in check_files(files, n)] for n in (1, 3)
    )
    assert together == alone
    assert [file for file, *_ in alone] == files
    assert [outcome == ERROR for _, outcome, _ in alone] == [file.parent == tmp_path for file in files]


def test_abandoning_a_corpus_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_ALONE_S", 0.0)
    before = set(threading.enumerate())
    results = check_files(corpus_files(REGRESSIONS), 2)
    next(results)
    results.close()
    assert set(threading.enumerate()) == before

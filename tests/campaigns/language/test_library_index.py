"""Campaigns are selected by path, by folder and by name."""

import errno
import importlib.resources
import os
import zipfile
from pathlib import Path

import pytest

from harrow.campaigns.language import library_index
from harrow.campaigns.language.library_index import library_names, resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.problem import CampaignError


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library of two campaigns and an empty current folder."""
    package = tmp_path / "package"
    folder = package / "library"
    folder.mkdir(parents=True)
    (package / "fault_models").mkdir()
    for name in ("slow-follower", "acks-0"):
        (folder / f"{name}.yaml").write_text("kafka: '2.4'\n", encoding="utf-8")
    (folder / "README.md").touch()
    working_folder = tmp_path / "here"
    working_folder.mkdir()
    monkeypatch.chdir(working_folder)
    monkeypatch.setattr(library_index, "_HOME", package)
    library_index._campaigns_in.cache_clear()
    return folder


@pytest.fixture(autouse=True)
def _forget_library() -> object:
    yield
    library_index._campaigns_in.cache_clear()


def error_message(argument: str) -> str:
    with pytest.raises(CampaignError) as error:
        resolve(argument)
    return str(error.value)


def test_a_name_of_the_library_selects_its_campaign(library: Path) -> None:
    assert library_names() == ["acks-0", "slow-follower"]
    assert resolve("acks-0") == [library / "acks-0.yaml"]


def test_a_shipped_campaign_has_the_name_of_its_file() -> None:
    for name in library_names():
        (path,) = resolve(name)
        assert load_campaign(path).name == name


def test_a_path_selects_its_file(library: Path) -> None:
    Path("mine.yaml").touch()
    assert resolve("mine.yaml") == [Path("mine.yaml")]
    assert resolve(str(library / "acks-0.yaml")) == [library / "acks-0.yaml"]


def test_a_folder_selects_its_visible_campaign_files(library: Path) -> None:
    for name in ("b.yaml", "a.yml", ".hidden.yaml", "c.txt"):
        Path(name).touch()
    Path("d.yaml").mkdir()
    assert resolve(".") == [Path("a.yml"), Path("b.yaml")]
    assert resolve(str(library)) == [library / "acks-0.yaml", library / "slow-follower.yaml"]


@pytest.mark.usefixtures("library")
def test_an_unknown_name_is_refused_with_a_suggestion() -> None:
    assert error_message("slow-folower") == (
        "slow-folower: no file, folder or campaign that ships is called `slow-folower`; "
        "did you mean `slow-follower`?"
    )
    assert "known: acks-0, slow-follower" in error_message("xyz")
    assert error_message("xyz.yaml") == "xyz.yaml: no such file or folder"
    assert error_message("campaigns/acks-0") == "campaigns/acks-0: no such file or folder"
    assert error_message("") == ": the name of a campaign is empty"
    assert "is called `a\\x00b`" in error_message("a\0b")
    assert "too long" in error_message("x" * 5_000)
    Path("loop.yaml").symlink_to("loop.yaml")
    assert error_message("loop.yaml") == f"loop.yaml: cannot be read: {os.strerror(errno.ELOOP)}"


def test_a_folder_without_campaigns_is_refused(library: Path) -> None:
    Path("empty").mkdir()
    assert error_message("empty") == "empty: the folder has no campaign files (*.yaml)"
    # A folder, for example of results, does not hide the campaign of the same name.
    Path("acks-0").mkdir()
    assert resolve("acks-0") == [library / "acks-0.yaml"]


@pytest.mark.usefixtures("library")
def test_the_library_can_be_in_a_zip_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "wheel.zip"
    with zipfile.ZipFile(archive, "w") as wheel:
        wheel.writestr("campaigns/library/zipped.yaml", "kafka: '2.0'\n")
    monkeypatch.setattr(library_index, "_HOME", archive)
    monkeypatch.setattr(importlib.resources, "files", lambda _: zipfile.Path(archive, "campaigns/"))
    library_index._campaigns_in.cache_clear()
    assert library_names() == ["zipped"]
    (path,) = resolve("zipped")
    assert load_campaign(path).plans[0].kafka == "2.0"

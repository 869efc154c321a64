"""Sources are files, folders, pipes and standard input."""

import os
from pathlib import Path

import pytest

from harrow.campaigns.language.problem import CampaignError
from harrow.campaigns.sources.files import read_sources

SERVER = "node.id=1\nmin.insync.replicas=2\n"


def test_a_folder_stands_for_the_sources_in_it(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "b.properties").write_text(SERVER, encoding="utf-8")
    (tmp_path / "a.txt").write_text("hello\n", encoding="utf-8")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to("circle")
    sources = read_sources([tmp_path])
    assert [name for name, _ in sources.descriptions] == [str(tmp_path / "b.properties")]
    assert sources.left_out == [str(tmp_path / "a.txt")]
    assert sources.notes == [f"read in {tmp_path}: b.properties; no cluster in a.txt"]


def test_in_a_folder_only_files_with_the_endings_of_sources_are_read(tmp_path: Path) -> None:
    (tmp_path / "b.properties").write_text(SERVER, encoding="utf-8")
    (tmp_path / "core").write_bytes(b"\\u\x00")
    with (tmp_path / "disk.img").open("wb") as file:
        file.truncate(1 << 40)
    sources = read_sources([tmp_path])
    assert len(sources.descriptions) == 1
    assert sources.left_out == []


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("notes.md", "hello\n", "has no files that end in .properties, .yaml, .yml and .txt"),
        ("notes.txt", "hello\n", "no file in the folder describes a cluster"),
        ("shop.yaml", "brokers: 3\ntopics: [{name: t}]\n", "name the file, not its folder: shop.yaml"),
        ("large.txt", "x" * (17 << 20), "more than 16 MiB: name the files to read"),
    ],
)
def test_a_folder_without_sources_says_what_it_has(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(CampaignError) as refused:
        read_sources([tmp_path])
    (problem,) = refused.value.problems
    assert problem.file == str(tmp_path)
    assert message in problem.message


def test_a_folder_with_too_many_files_is_refused(tmp_path: Path) -> None:
    for number in range(1_001):
        (tmp_path / f"{number}.txt").touch()
    with pytest.raises(CampaignError, match="more than 1000 files"):
        read_sources([tmp_path])


@pytest.mark.parametrize("name", ["empty", "pipe", "circle", "large", "missing", "a.txt", "folder"])
def test_what_is_no_source_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    (tmp_path / "a.txt").write_text("hello\n", encoding="utf-8")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to("circle")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(CampaignError) as refused:
        read_sources([tmp_path / name])
    (problem,) = refused.value.problems
    assert problem.file == str(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("broken.yaml", b"a: [1, 2\nb: {", (2, 2)),
        ("tab.yml", b"brokers:\n  - id: 1\n\tbad: x\n", (3, 1)),
        ("image.png", b"\x89PNG\r\n\x1a\n", (2, 1)),
        ("log.yaml", b"a: b\nc: \x00", (2, 4)),
    ],
)
def test_the_place_is_named_at_which_a_source_stops_being_yaml_or_text(
    tmp_path: Path, name: str, content: bytes, place: tuple[int, int]
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CampaignError) as refused:
        read_sources([tmp_path / name])
    (problem,) = refused.value.problems
    assert (problem.file, problem.line, problem.column) == (str(tmp_path / name), *place)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_file_in_utf_16_is_named_as_such(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "topics.txt"
    file.write_bytes(f"\ufeff{SERVER}".encode(encoding))
    with pytest.raises(CampaignError, match="it is UTF-16"):
        read_sources([file])


def test_a_pipe_that_a_process_writes_to_is_read_to_its_end(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, SERVER.encode())
    os.close(writer)
    ((_, description),) = read_sources([Path(f"/dev/fd/{reader}")]).descriptions
    os.close(reader)
    assert len(description.servers) == 1

"""A location behaves the same on disk, in an object store and in other file systems."""

import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import ArrowException

from harrow.campaigns.storage import location as storage
from harrow.campaigns.storage.location import LocalLocation, Location, location, storage_variables
from tests.plain_environment import PYTHONPATH, plain_environment
from tests.s3_server import BUCKET, s3_server
from tests.storage_servers import StorageServer, azure_server, google_server, hdfs_server


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    with s3_server() as environment:
        yield environment


@pytest.fixture(scope="module")
def google() -> Iterator[StorageServer]:
    with google_server() as server:
        yield server


@pytest.fixture(scope="module")
def azure() -> Iterator[StorageServer]:
    with azure_server() as server:
        yield server


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StorageServer]:
    with hdfs_server(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture(params=["path", "file", "s3", "s3a", "google", "azure", "hdfs"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Location:
    """Return a folder that does not exist yet."""
    if request.param.startswith("s3"):
        for name, value in request.getfixturevalue("s3").items():
            monkeypatch.setenv(name, value)
        return location(f"{request.param}://{BUCKET}/{tmp_path.name}/a folder")
    if request.param in ("google", "azure", "hdfs"):
        server: StorageServer = request.getfixturevalue(request.param)
        for name, value in server.variables.items():
            monkeypatch.setenv(name, value)
        return location(server.uri_of(f"{tmp_path.name}/a folder"))
    if request.param == "file":
        return location((tmp_path / "a folder").as_uri())
    return location(str(tmp_path / "a folder"))


def test_what_is_written_can_be_listed_read_replaced_and_deleted(folder: Location) -> None:
    assert not folder.exists()
    assert folder.files() == []
    first, second = folder / "b.txt", folder / "sub" / "a=1/a.bin"
    first.write_text("é")
    second.write(bytes(3_000_000))
    assert folder.is_folder()
    assert not first.is_folder()
    assert folder.files() == [first, second]
    assert (first.read_text(), second.size(), second.name) == ("é", 3_000_000, "a.bin")
    first.write_text("again")
    with first.open() as file:
        file.seek(2)
        assert file.read() == b"ain"
    first.delete()
    first.delete()
    assert not first.exists()
    assert folder.files() == [second]


def test_another_process_can_use_a_location(folder: Location) -> None:
    (folder / "x").write_text("for others")
    script = "import pickle, sys; print(pickle.loads(bytes.fromhex(sys.argv[1])).read_text())"
    environment = {**plain_environment(), **storage_variables(), "PYTHONPATH": PYTHONPATH}
    words = [sys.executable, "-c", script, pickle.dumps(folder / "x").hex()]
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout == "for others\n"


def test_an_error_that_only_pyarrow_has_is_named_by_its_location(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ArrowException("no credentials\nsee the manual")

    monkeypatch.setattr(storage, "_connected", fail)
    with pytest.raises(OSError, match="no credentials") as caught:
        location("s3://bucket/x").read()
    assert (caught.value.strerror, caught.value.filename) == ("no credentials", "s3://bucket/x")


def test_a_missing_file_is_named_by_its_location(folder: Location) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        (folder / "x").read()
    assert caught.value.filename == str(folder / "x")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("s3://key:secret@bucket/x", "set credentials in the environment"),
        ("nosuch://server/x", "fsspec"),
        ("s3:///x", "bucket"),
    ],
)
def test_a_uri_that_cannot_be_used_is_an_error_of_one_line(uri: str, reason: str) -> None:
    with pytest.raises(OSError, match=reason) as caught:
        location(uri)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("path", ["a/b", "/a:b", "C:/x", "a b", "s3:x"])
def test_everything_else_is_a_path(path: str) -> None:
    assert location(path) == LocalLocation(Path(path)) == location(Path(path))

"""Only complete and correct releases enter the cache."""

import hashlib
import os
import stat
import sys
from pathlib import Path

import pytest

from harrow.live_cluster.releases import kafka_release
from harrow.live_cluster.releases.kafka_cache import CacheError, KafkaCache, default_cache
from harrow.live_cluster.releases.kafka_release import KafkaRelease, release_of
from harrow.live_cluster.releases.maven import MavenError
from harrow.live_cluster.releases.repository import DownloadError, repository_path

JARS = {"org.example:broker:1.0": b"broker", "org.example.more:client:2.0": b"client"}
DIGESTS = {artifact: hashlib.sha256(data).hexdigest() for artifact, data in JARS.items()}
RELEASE = release_of("9.9.9")


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_release, "_PINNED", ("9.9.9",))
    monkeypatch.setattr(KafkaRelease, "jars", lambda _: dict(DIGESTS))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    for artifact, data in JARS.items():
        file = folder / repository_path(artifact)
        file.parent.mkdir(parents=True)
        file.write_bytes(data)
    return folder


@pytest.fixture
def maven(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file with the last request to a fake Maven, which delivers the repository."""
    program = tmp_path / "bin" / "mvn"
    program.parent.mkdir()
    request = tmp_path / "request"
    program.write_text(
        f'#!/bin/sh\nset -e\ncp pom.xml "{request}"\necho "$@" >>"{request}"\ncp -r "{repository}" repository\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return request


@pytest.fixture
def cache(tmp_path: Path) -> KafkaCache:
    return KafkaCache(tmp_path / "cache")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


@pytest.mark.usefixtures("pinned")
def test_pinned_release_has_exactly_the_known_jars(cache: KafkaCache, maven: Path) -> None:
    assert not cache.has(RELEASE)
    folder = cache.get(RELEASE)
    assert names(folder) == ["broker-1.0.jar", "client-2.0.jar", "jars.txt"]
    assert (folder / "broker-1.0.jar").read_bytes() == b"broker"
    request = maven.read_text()
    assert (
        "<groupId>org.example.more</groupId><artifactId>client</artifactId><version>2.0</version>" in request
    )
    assert "-DexcludeTransitive=true" in request
    maven.unlink()
    assert cache.get(RELEASE) == folder
    assert not maven.exists()
    assert [release.name for release in cache.releases()] == ["9.9.9"]
    assert names(folder.parent) == ["9.9.9"]


def test_unknown_release_is_pinned_by_its_first_download(cache: KafkaCache, maven: Path) -> None:
    folder = cache.get(RELEASE)
    request = maven.read_text()
    assert "<artifactId>kafka_2.13</artifactId><version>9.9.9</version>" in request
    assert "-DexcludeTransitive=false" in request
    (folder / "client-2.0.jar").write_bytes(b"other")
    with pytest.raises(CacheError, match=r"client-2\.0\.jar of Kafka 9\.9\.9 is wrong"):
        cache.get(RELEASE)


@pytest.mark.usefixtures("pinned")
def test_a_pinned_release_can_come_by_plain_downloads(cache: KafkaCache, repository: Path) -> None:
    folder = cache.get(RELEASE, repository.as_uri() + "/")
    assert names(folder) == ["broker-1.0.jar", "client-2.0.jar", "jars.txt"]


def test_unknown_release_needs_maven(cache: KafkaCache, repository: Path) -> None:
    with pytest.raises(CacheError, match="get it with Maven"):
        cache.get(RELEASE, repository.as_uri())


@pytest.mark.usefixtures("pinned")
def test_wrong_jar_is_refused_and_nothing_is_stored(cache: KafkaCache, repository: Path) -> None:
    (repository / repository_path("org.example:broker:1.0")).write_bytes(b"evil")
    with pytest.raises(
        CacheError,
        match=r"broker-1\.0\.jar of Kafka 9\.9\.9 is wrong.* and should be "
        + DIGESTS["org.example:broker:1.0"],
    ):
        cache.get(RELEASE, repository.as_uri())
    assert names(cache.folder_of(RELEASE).parent) == []


@pytest.mark.usefixtures("pinned", "maven")
def test_missing_jar_is_an_error(cache: KafkaCache, repository: Path) -> None:
    (repository / repository_path("org.example:broker:1.0")).unlink()
    with pytest.raises(CacheError, match=r"Kafka 9\.9\.9 came without org\.example:broker:1\.0"):
        cache.get(RELEASE)
    with pytest.raises(DownloadError, match=r"cannot get file://.*broker-1\.0\.jar"):
        cache.get(RELEASE, repository.as_uri())
    assert not cache.has(RELEASE)


@pytest.mark.usefixtures("pinned", "maven")
def test_damaged_cache_is_detected(cache: KafkaCache) -> None:
    folder = cache.get(RELEASE)
    jar, listed = folder / "client-2.0.jar", folder / "jars.txt"
    one = f"{DIGESTS['org.example:broker:1.0']}  org.example:broker:1.0\n"
    for spoilt, text, message in [
        (jar, None, "is missing: harrow kafka remove"),
        (listed, "nonsense\n", "is damaged: harrow kafka remove"),
        (listed, one, "came without"),
    ]:
        before = spoilt.read_bytes()
        if text is None:
            spoilt.unlink()
        else:
            spoilt.write_text(text)
        with pytest.raises(CacheError, match=message):
            cache.get(RELEASE)
        spoilt.write_bytes(before)
    assert cache.get(RELEASE) == folder
    cache.remove(RELEASE)
    assert not cache.has(RELEASE)


@pytest.mark.usefixtures("pinned", "maven")
def test_interrupted_download_is_repeated(cache: KafkaCache) -> None:
    cache.folder_of(RELEASE).mkdir(parents=True)
    (cache.folder_of(RELEASE) / "half-1.0.jar").write_bytes(b"half")
    assert names(cache.get(RELEASE)) == ["broker-1.0.jar", "client-2.0.jar", "jars.txt"]


def test_a_failed_maven_is_an_error(cache: KafkaCache, maven: Path, repository: Path) -> None:
    for path in repository.iterdir():
        path.rename(repository.parent / path.name)
    repository.rmdir()
    with pytest.raises(MavenError, match="Maven could not get Kafka"):
        cache.get(RELEASE)


@pytest.mark.usefixtures("maven")
def test_first_error_of_maven_is_reported(cache: KafkaCache, tmp_path: Path) -> None:
    output = "\x1b[0m[ERROR] There is no such thing in central -> [Help 1]\n[ERROR] \n[ERROR] Re-run Maven using -X\n"
    (tmp_path / "output").write_text(output)
    (tmp_path / "bin" / "mvn").write_text(f'#!/bin/sh\ncat "{tmp_path}/output"\nexit 1\n')
    with pytest.raises(MavenError) as error:
        cache.get(RELEASE)
    assert str(error.value) == "Maven could not get Kafka: There is no such thing in central"


def test_a_missing_maven_is_reported_with_a_hint(cache: KafkaCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MavenError, match="there is no Maven"):
        cache.get(RELEASE)


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"HARROW_CACHE": "/c"}, "/c/kafka/9.9.9"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/harrow/kafka/9.9.9"),
        ({}, str(Path.home() / ".cache/harrow/kafka/9.9.9")),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep caches elsewhere")
def test_the_environment_decides_the_location_of_the_cache(
    environ: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HARROW_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert str(default_cache().folder_of(RELEASE)) == folder

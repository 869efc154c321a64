"""The user's cache of Kafka releases, with a folder of jars for each release.

harrow compares the jars of pinned releases with its digests. It trusts the jars of other releases
on their first download, and later checks that they have not changed.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path

from harrow.campaigns.record.build_folder import exclusive_build_folder
from harrow.live_cluster.releases.kafka_release import KafkaRelease, jar_name
from harrow.live_cluster.releases.maven import copy_jars
from harrow.live_cluster.releases.repository import download_jars, repository_path

CACHE_VARIABLE: Final = "HARROW_CACHE"
_JAR_LIST: Final = "jars.txt"
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class CacheError(Exception):
    """A jar in the cache, or a downloaded one, is wrong or missing."""


class KafkaCache:
    """The releases below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def folder_of(self, release: KafkaRelease) -> Path:
        """Return the folder for the jars of a release, which may not exist."""
        return self._folder / release.name

    def releases(self) -> list[KafkaRelease]:
        """Return the cached releases, in the order of their names."""
        if not self._folder.is_dir():
            return []
        names = sorted(path.parent.name for path in self._folder.glob(f"[0-9]*/{_JAR_LIST}"))
        return [KafkaRelease(name) for name in names]

    def has(self, release: KafkaRelease) -> bool:
        return (self.folder_of(release) / _JAR_LIST).is_file()

    def get(self, release: KafkaRelease, repository: str | None = None) -> Path:
        """Return the folder with the jars of a release; download them first if necessary.

        Maven downloads them, or harrow itself from a *repository*. Raise `CacheError` if a jar is
        wrong, `MavenError` or `DownloadError` if the download fails.
        """
        if not self.has(release):
            self._download(release, repository)
        self._check(release)
        return self.folder_of(release)

    def remove(self, release: KafkaRelease) -> None:
        """Remove a release; raise FileNotFoundError if it is not cached."""
        shutil.rmtree(self.folder_of(release))

    def _download(self, release: KafkaRelease, repository: str | None) -> None:
        pinned = release.jars() if release.is_pinned else {}
        if repository is not None and not pinned:
            raise CacheError(
                f"harrow does not know the jars of Kafka {release.name}: get it with Maven, without --repository"
            )
        self._folder.mkdir(parents=True, exist_ok=True)
        target = self.folder_of(release)
        with exclusive_build_folder(target) as folder:
            if self.has(release):
                return  # Another process was quicker.
            if repository is not None:
                download_jars(repository, pinned, folder)
            else:
                copy_jars(pinned or release.artifacts, folder, with_dependencies=not pinned)
            digests = _digests(folder / "repository")
            _compare(release, digests, pinned or digests)
            ready = folder / "ready"
            ready.mkdir()
            for artifact in digests:
                jar = folder / "repository" / repository_path(artifact)
                jar.rename(ready / jar_name(artifact))
            lines = [f"{digest}  {artifact}\n" for artifact, digest in digests.items()]
            (ready / _JAR_LIST).write_text("".join(lines), encoding="utf-8")
            if target.exists():
                shutil.rmtree(target)  # An earlier download was interrupted.
            ready.rename(target)

    def _check(self, release: KafkaRelease) -> None:
        """Compare the jars with their list, and the list with the pinned digests."""
        folder = self.folder_of(release)
        listed: dict[str, str] = {}
        for line in (folder / _JAR_LIST).read_text(encoding="utf-8").splitlines():
            digest, _, artifact = line.partition("  ")
            if not _DIGEST.fullmatch(digest) or artifact.count(":") != 2:
                raise CacheError(f"{folder / _JAR_LIST} is damaged: harrow kafka remove {release.name}")
            listed[artifact] = digest
        if release.is_pinned:
            _compare(release, listed, release.jars())
        digests = {}
        for artifact in listed:
            file = folder / jar_name(artifact)
            if not file.is_file():
                raise CacheError(f"{file} is missing: harrow kafka remove {release.name}")
            digests[artifact] = _digest(file)
        _compare(release, digests, listed)


def default_cache() -> KafkaCache:
    """Return the user's cache, in HARROW_CACHE or in the system's folder for caches."""
    folder = os.environ.get(CACHE_VARIABLE)
    return KafkaCache((Path(folder) if folder else user_cache_path("harrow", appauthor=False)) / "kafka")


def _digests(repository: Path) -> dict[str, str]:
    """Return the digests of all artifacts in a folder with the layout of a repository."""
    digests = {}
    for file in sorted(repository.rglob("*.jar")):
        *group, name, version, file_name = file.relative_to(repository).parts
        artifact = f"{'.'.join(group)}:{name}:{version}"
        if file_name == jar_name(artifact):
            digests[artifact] = _digest(file)
    return digests


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _compare(release: KafkaRelease, actual: Mapping[str, str], expected: Mapping[str, str]) -> None:
    if missing := expected.keys() - actual.keys():
        raise CacheError(f"Kafka {release.name} came without {', '.join(sorted(missing))}")
    if more := actual.keys() - expected.keys():
        raise CacheError(f"Kafka {release.name} came with {', '.join(sorted(more))}, which it does not need")
    for artifact, digest in expected.items():
        if actual[artifact] != digest:
            raise CacheError(
                f"{jar_name(artifact)} of Kafka {release.name} is wrong: its SHA-256 is {actual[artifact]}, "
                f"and should be {digest}"
            )

"""Where releases of Kafka are kept: a folder of jars for each, in the user's cache.

What is in it has been compared with the digests that harrow knows. A release that it does not know is taken as it comes
the first time, and compared with that later: its list of jars says so.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path

from harrow.campaigns.record.building_site import building_site
from harrow.live_cluster.releases.kafka_release import KafkaRelease, jar_name
from harrow.live_cluster.releases.maven import copy_jars
from harrow.live_cluster.releases.repository import download_jars

CACHE_VARIABLE: Final = "HARROW_CACHE"
_LIST: Final = "jars.txt"
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class CacheError(Exception):
    """What is in the cache, or was to come into it, is not what it should be."""


class KafkaCache:
    """The releases below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def folder_of(self, release: KafkaRelease) -> Path:
        """Return where the jars of a release are, or would be."""
        return self._folder / release.name

    def releases(self) -> list[KafkaRelease]:
        """Return what is there, in the order of names."""
        if not self._folder.is_dir():
            return []
        names = sorted(path.parent.name for path in self._folder.glob(f"[0-9]*/{_LIST}"))
        return [KafkaRelease(name) for name in names]

    def has(self, release: KafkaRelease) -> bool:
        """Return whether a release is there."""
        return (self.folder_of(release) / _LIST).is_file()

    def get(self, release: KafkaRelease, repository: str | None = None) -> Path:
        """Return the folder with the jars of a release; those that are not there yet are got first.

        They come by Maven, or from a *repository* by plain downloads.

        Raises:
            CacheError: a jar is not the one that it should be.
            MavenError, DownloadError: they could not be got.

        """
        if not self.has(release):
            self._get(release, repository)
        self._check(release)
        return self.folder_of(release)

    def remove(self, release: KafkaRelease) -> None:
        """Remove a release.

        Raises:
            FileNotFoundError: it is not there.

        """
        shutil.rmtree(self.folder_of(release))

    def _get(self, release: KafkaRelease, repository: str | None) -> None:
        known = release.jars() if release.is_pinned else {}
        if repository is not None and not known:
            raise CacheError(
                f"of Kafka {release.name} it is not known which jars it needs: get it with Maven, without --repository"
            )
        self._folder.mkdir(parents=True, exist_ok=True)
        target = self.folder_of(release)
        with building_site(target) as folder:
            if self.has(release):
                return  # Another process has got it meanwhile.
            if repository is not None:
                download_jars(repository, known, folder)
            else:
                copy_jars(known or release.artifacts, folder, with_dependencies=not known)
            found = _found(folder / "repository")
            _compare(release, found, known or found)
            ready = folder / "ready"
            ready.mkdir()
            for artifact in found:
                (folder / "repository" / _place(artifact)).rename(ready / jar_name(artifact))
            lines = [f"{digest}  {artifact}\n" for artifact, digest in found.items()]
            (ready / _LIST).write_text("".join(lines), encoding="utf-8")
            if target.exists():
                shutil.rmtree(target)  # Something broke off there.
            ready.rename(target)

    def _check(self, release: KafkaRelease) -> None:
        """Compare what is there with its list, and its list with what is known."""
        folder = self.folder_of(release)
        listed: dict[str, str] = {}
        for line in (folder / _LIST).read_text(encoding="utf-8").splitlines():
            digest, _, artifact = line.partition("  ")
            if not _DIGEST.fullmatch(digest) or artifact.count(":") != 2:
                raise CacheError(f"{folder / _LIST} is damaged: harrow kafka remove {release.name}")
            listed[artifact] = digest
        if release.is_pinned:
            _compare(release, listed, release.jars())
        found = {}
        for artifact in listed:
            file = folder / jar_name(artifact)
            if not file.is_file():
                raise CacheError(f"{file} is missing: harrow kafka remove {release.name}")
            found[artifact] = _digest(file)
        _compare(release, found, listed)


def default_cache() -> KafkaCache:
    """Return the cache of the user: below HARROW_CACHE, or where the system keeps caches."""
    given = os.environ.get(CACHE_VARIABLE)
    return KafkaCache((Path(given) if given else user_cache_path("harrow", appauthor=False)) / "kafka")


def _found(repository: Path) -> dict[str, str]:
    """Return the artifacts in a folder that is laid out as a repository, each with its digest."""
    found = {}
    for file in sorted(repository.rglob("*.jar")):
        *group, name, version, file_name = file.relative_to(repository).parts
        artifact = f"{'.'.join(group)}:{name}:{version}"
        if file_name == jar_name(artifact):
            found[artifact] = _digest(file)
    return found


def _place(artifact: str) -> Path:
    group, name, version = artifact.split(":")
    return Path(*group.split("."), name, version, jar_name(artifact))


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _compare(release: KafkaRelease, found: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    if missing := wanted.keys() - found.keys():
        raise CacheError(f"of Kafka {release.name} {', '.join(sorted(missing))} did not come")
    if more := found.keys() - wanted.keys():
        raise CacheError(f"Kafka {release.name} came with {', '.join(sorted(more))}, which it does not need")
    for artifact, digest in wanted.items():
        if found[artifact] != digest:
            raise CacheError(
                f"{jar_name(artifact)} is not the one that Kafka {release.name} has: its SHA-256 is {found[artifact]}, "
                f"and should be {digest}"
            )

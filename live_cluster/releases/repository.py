"""Downloads jars from a Maven repository, without Maven."""

import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_TIMEOUT_S: Final = 60


class DownloadError(Exception):
    """A jar could not be downloaded."""


def download_jars(repository: str, artifacts: Iterable[str], folder: Path) -> None:
    """Download the jars of artifacts into a folder with a repository's layout."""
    if not repository.startswith(("https://", "http://", "file://")):
        raise DownloadError(f"{repository} is not the address of a repository: use https:// or file://")
    for artifact in artifacts:
        path = repository_path(artifact)
        file = folder / "repository" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        address = f"{repository.rstrip('/')}/{path}"
        try:
            with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as response:  # noqa: S310 - see above
                file.write_bytes(response.read())
        except (urllib.error.URLError, OSError, ValueError) as error:
            raise DownloadError(f"cannot get {address}: {error}") from error


def repository_path(artifact: str) -> str:
    """Return the path of an artifact's jar in a repository."""
    group, name, version = artifact.split(":")
    return f"{group.replace('.', '/')}/{name}/{version}/{name}-{version}.jar"

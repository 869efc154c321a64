"""A Maven repository that a user names, read without Maven: a plain download for each jar."""

import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_TIMEOUT_S: Final = 60


class DownloadError(Exception):
    """A jar could not be downloaded."""


def download_jars(repository: str, artifacts: Iterable[str], folder: Path) -> None:
    """Download the jars of some artifacts, alone, into a folder that is laid out as a repository is.

    Raises:
        DownloadError: the repository is none, has not got one of them, or does not answer.

    """
    if not repository.startswith(("https://", "http://", "file://")):
        raise DownloadError(f"{repository} is no address of a repository: it begins with https:// or file://")
    for artifact in artifacts:
        path = repository_path(artifact)
        file = folder / "repository" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        address = f"{repository.rstrip('/')}/{path}"
        try:
            with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - see above
                file.write_bytes(answer.read())
        except (urllib.error.URLError, OSError, ValueError) as error:
            raise DownloadError(f"cannot get {address}: {error}") from error


def repository_path(artifact: str) -> str:
    """Return where the jar of an artifact is in a repository."""
    group, name, version = artifact.split(":")
    return f"{group.replace('.', '/')}/{name}/{version}/{name}-{version}.jar"

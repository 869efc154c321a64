"""Class data sharing: Java maps an archive of loaded and verified classes into memory (JEP 310).

More than half of the time of a short run is the start of Java, and an archive halves that time. The
programs of the first run on a release list the classes that they load. When they have ended, harrow
makes an archive from the lists. If the jars or Java have changed since, Java notices that the
archive does not fit, and starts without it.
"""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from filelock import Timeout

from harrow.campaigns.record.build_folder import exclusive_build_folder
from harrow.campaigns.storage.whole_file import whole_path
from harrow.live_cluster.processes.child_processes import ChildProcesses

_LIST: Final = ".classes"
_DUMP_MAX_S: Final = 300.0


class SharedClasses:
    """The class archive of a release with one kind of *metadata*, below a *folder*."""

    def __init__(self, folder: Path, java: Path, metadata: str) -> None:
        self._java = java
        # An archive fits only one version of Java.
        digest = hashlib.sha256(f"{java.resolve()}\n{_version(java)}".encode()).hexdigest()
        self.archive = folder / f"classes-{metadata}-{digest[:12]}.jsa"

    def options(self, folder: Path, program: str) -> list[str]:
        """Return the options that make a *program* use the archive, or list its classes for one."""
        if not self.archive.exists():
            return [f"-XX:DumpLoadedClassList={folder / (program + _LIST)}"]
        # An empty file means that Java could not make an archive.
        return [f"-XX:SharedArchiveFile={self.archive}"] if self.archive.stat().st_size else []

    def make(self, folder: Path, class_path: str, options: Sequence[str]) -> None:
        """Make the archive from the lists below a folder, unless it exists. Ignore failures."""
        lists = sorted(folder.rglob(f"*{_LIST}"))
        classes = {line for file in lists for line in _complete_lines(file)}
        for file in lists:
            file.unlink(missing_ok=True)
        if not classes or self.archive.exists():
            return
        # A read-only cache has no archives, and only one process needs to make one.
        with suppress(OSError, Timeout), exclusive_build_folder(self.archive, waits=False) as site:
            class_list, archive = site / "classes", site / "archive"
            # In the list, lambdas must follow the classes that contain them.
            class_list.write_text("\n".join(sorted(classes, key=_lambdas_last)) + "\n", encoding="utf-8")
            paths = [
                f"-XX:SharedClassListFile={class_list}",
                f"-XX:SharedArchiveFile={archive}",
                "-cp",
                class_path,
            ]
            command: list[str | Path] = [self._java, *options, "-Xshare:dump", *paths]
            with ChildProcesses() as children:
                dump_process = children.start(command, folder=site, log=site / "log")
                if not dump_process.wait(_DUMP_MAX_S):
                    return
            if dump_process.code != 0 or not archive.exists():
                archive.write_bytes(b"")
            with whole_path(self.archive) as whole:
                archive.replace(whole)


def _version(java: Path) -> str:
    """Return the description of a Java installation, without starting it."""
    release = java.resolve().parent.parent / "release"
    return release.read_text(encoding="utf-8", errors="replace") if release.is_file() else ""


def _complete_lines(file: Path) -> list[str]:
    """Return the complete lines of a class list.

    A program that was killed may have written only a part of its last line.
    """
    whole, _, _ = file.read_text(encoding="utf-8", errors="replace").rpartition("\n")
    return [line for line in whole.splitlines() if line and not line.startswith("#")]


def _lambdas_last(line: str) -> tuple[bool, str]:
    return line.startswith("@"), line

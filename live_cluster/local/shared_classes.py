"""Class data sharing: classes of Kafka that Java has loaded and verified once are mapped into memory from then on.

More than half of what a short run costs is Java starting, and an archive of classes takes half of that away (JEP 310). The programs of the
first run on a release list the classes that they load; when they have ended, an archive is made of all lists. Java itself notices when an
archive does not fit, because the jars or Java are others, and starts as it does without one.
"""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from filelock import Timeout

from harrow.campaigns.record.building_site import building_site
from harrow.campaigns.record.whole_file import whole_path
from harrow.live_cluster.processes.child_processes import ChildProcesses

_LIST: Final = ".classes"
_MADE_S: Final = 300.0


class SharedClasses:
    """The archive of what programs of a release load that keeps its metadata in one place; it is in a *folder*."""

    def __init__(self, folder: Path, java: Path, metadata: str) -> None:
        self._java = java
        # An archive is of no use to any other Java.
        digest = hashlib.sha256(f"{java.resolve()}\n{_version(java)}".encode()).hexdigest()
        self.archive = folder / f"classes-{metadata}-{digest[:12]}.jsa"

    def options(self, folder: Path, program: str) -> list[str]:
        """Return the options of Java with which a *program* in a folder takes its classes from the archive, or lists them for one."""
        if not self.archive.exists():
            return [f"-XX:DumpLoadedClassList={folder / (program + _LIST)}"]
        # An empty one says that Java could not make any.
        return [f"-XX:SharedArchiveFile={self.archive}"] if self.archive.stat().st_size else []

    def make(self, folder: Path, class_path: str, options: Sequence[str]) -> None:
        """Make the archive of the lists that programs have left below a folder, unless it is there; programs run without one otherwise."""
        lists = sorted(folder.rglob(f"*{_LIST}"))
        classes = {line for file in lists for line in _whole_lines(file)}
        for file in lists:
            file.unlink(missing_ok=True)
        if not classes or self.archive.exists():
            return
        # A cache that cannot be written to has no archives, and one process that makes an archive is enough.
        with suppress(OSError, Timeout), building_site(self.archive, waits=False) as site:
            listed, archive = site / "classes", site / "archive"
            # Lambdas are listed by the classes that they are in, which have to come before them.
            listed.write_text("\n".join(sorted(classes, key=_is_lambda)) + "\n", encoding="utf-8")
            paths = [
                f"-XX:SharedClassListFile={listed}",
                f"-XX:SharedArchiveFile={archive}",
                "-cp",
                class_path,
            ]
            command: list[str | Path] = [self._java, *options, "-Xshare:dump", *paths]
            with ChildProcesses() as children:
                maker = children.start(command, folder=site, log=site / "log")
                if not maker.wait(_MADE_S):
                    return
            if maker.code != 0 or not archive.exists():
                archive.write_bytes(b"")
            with whole_path(self.archive) as whole:
                archive.replace(whole)


def _version(java: Path) -> str:
    """Return what is known of a Java without starting it."""
    release = java.resolve().parent.parent / "release"
    return release.read_text(encoding="utf-8", errors="replace") if release.is_file() else ""


def _whole_lines(file: Path) -> list[str]:
    """Return the lines of a list; the program that wrote it may have been killed in the middle of the last one."""
    whole, _, _ = file.read_text(encoding="utf-8", errors="replace").rpartition("\n")
    return [line for line in whole.splitlines() if line and not line.startswith("#")]


def _is_lambda(line: str) -> tuple[bool, str]:
    return line.startswith("@"), line

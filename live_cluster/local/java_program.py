"""A Java program of a release of Kafka: its command line, its folder, its log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from harrow.live_cluster.local.shared_classes import SharedClasses
from harrow.live_cluster.processes.child_processes import ChildProcess, ChildProcesses

OPTIONS: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
"""Small, and quick to start: a campaign has three to six of them, and lasts minutes."""
_LOGGING: Final = {
    "log4j.configuration": "log4j.properties",
    "log4j2.configurationFile": "log4j2.properties",
}
"""Log4j of each kind finds its own."""

LOG_FILE: Final = "log"
"""What the file is called, in a program's folder, that has all that it has logged."""


@dataclass(frozen=True, slots=True)
class JavaPrograms:
    """What starts programs of one release: *java*, and the folder with the *jars* of Kafka."""

    java: Path
    jars: Path
    children: ChildProcesses
    shared: SharedClasses | None = None

    @property
    def cache(self) -> Path | None:
        """Return the folder for what programs of this release have in common, None where the jars are in a folder of the user's."""
        return None if self.shared is None else self.jars

    def start(self, main: str, arguments: Sequence[str | Path], folder: Path) -> ChildProcess:
        """Start a program in a folder of its own; what it logs goes to the end of ``log`` there."""
        logging = []
        for setting, name in _LOGGING.items():
            file = folder.absolute() / name
            text = resources.files("harrow.live_cluster.local").joinpath(name).read_text("utf-8")
            file.write_text(text, encoding="utf-8")
            logging.append(f"-D{setting}={file.as_uri()}")
        sharing = [] if self.shared is None else self.shared.options(folder.absolute(), main)
        command = [self.java, *OPTIONS, *logging, *sharing, "-cp", class_path(self.jars), main, *arguments]
        return self.children.start(command, folder=folder, log=folder / LOG_FILE)

    def share_classes(self, folder: Path) -> None:
        """Have programs that are started later, by anybody, load faster what those below a folder have loaded, now that these have ended."""
        if self.shared is not None:
            self.shared.make(folder, class_path(self.jars), OPTIONS)


def class_path(jars: Path) -> str:
    """Return the jars in an order that is the same each time, and no folder: classes are shared by those alone that have the same path."""
    return ":".join(map(str, sorted(jars.glob("*.jar"))))


def properties(values: Mapping[str, object]) -> str:
    """Return settings as a Java properties file has them."""
    return "".join(f"{name}={_escaped(value)}\n" for name, value in values.items())


def _escaped(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return "".join(
        character if " " < character <= "~" and character != "\\" else f"\\u{ord(character):04x}"
        for character in text
    )

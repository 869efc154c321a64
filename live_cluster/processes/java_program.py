"""A Java program of a release of Kafka: its command line, its folder, its log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from harrow.live_cluster.processes.child_processes import ChildProcess, ChildProcesses

_OPTIONS: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
"""Small, and quick to start: a campaign has three to six of them, and lasts minutes."""
_LOGGING: Final = ("log4j.properties", "log4j2.properties")


LOG_FILE: Final = "log"
"""What the file is called, in a program's folder, that has all that it has logged."""


@dataclass(frozen=True, slots=True)
class JavaPrograms:
    """What starts programs of one release: *java*, and the folder with the *jars* of Kafka."""

    java: Path
    jars: Path
    children: ChildProcesses

    def start(self, main: str, arguments: Sequence[str | Path], folder: Path) -> ChildProcess:
        """Start a program in a folder of its own; what it logs goes to the end of ``log`` there."""
        for name in _LOGGING:
            text = resources.files("harrow.live_cluster.processes").joinpath(name).read_text("utf-8")
            (folder / name).write_text(text, encoding="utf-8")
        # Log4j of each kind finds its own; the folder is looked through before the jars.
        command = [
            *(self.java, *_OPTIONS, "-Dlog4j.configuration=log4j.properties"),
            *("-Dlog4j2.configurationFile=log4j2.properties", "-cp", f"{folder}:{self.jars}/*"),
            *(main, *arguments),
        ]
        return self.children.start(command, folder=folder, log=folder / LOG_FILE)


def properties(values: Mapping[str, object]) -> str:
    """Return settings as a Java properties file has them."""
    return "".join(f"{name}={_escaped(value)}\n" for name, value in values.items())


def _escaped(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return "".join(
        character if " " < character <= "~" and character != "\\" else f"\\u{ord(character):04x}"
        for character in text
    )

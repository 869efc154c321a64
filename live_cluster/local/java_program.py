"""Starts the Java programs of a Kafka release: builds command lines, folders and logs."""

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Final

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.live_cluster.local.shared_classes import SharedClasses
from harrow.live_cluster.processes.child_processes import ChildProcess, ChildProcesses

OPTIONS: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
"""The options make programs small and quick to start: a campaign has three to six of them."""
_LOGGING: Final = {
    "log4j.configuration": "log4j.properties",
    "log4j2.configurationFile": "log4j2.properties",
}
"""The names of the configuration files; each version of Log4j reads its own setting."""

LOG_FILE: Final = "log"
"""The name of the log file in a program's folder."""


@dataclass(frozen=True, slots=True)
class JavaPrograms:
    """Starts programs of one release with *java* and a folder of *jars*."""

    java: Path
    jars: Path
    children: ChildProcesses
    shared: SharedClasses | None = None

    @property
    def cache(self) -> Path | None:
        """The folder for shared files of the release, None if the jars are in the user's folder."""
        return None if self.shared is None else self.jars

    def start(self, main: str, arguments: Sequence[str | Path], folder: Path) -> ChildProcess:
        """Start a program in its own folder, and append its output to ``log`` there."""
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
        """Make an archive of the classes that the programs below a folder have loaded."""
        if self.shared is not None:
            self.shared.make(folder, class_path(self.jars), OPTIONS)


def class_path(jars: Path) -> str:
    """Return the jars in a fixed order, because programs share classes only for equal paths."""
    return ":".join(map(str, sorted(jars.glob("*.jar"))))


def properties(values: Mapping[str, object]) -> str:
    """Return settings in the format of a Java properties file."""
    return "".join(f"{name}={_escaped(value)}\n" for name, value in values.items())


def _escaped(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return "".join(
        character if " " < character <= "~" and character != "\\" else f"\\u{ord(character):04x}"
        for character in text
    )

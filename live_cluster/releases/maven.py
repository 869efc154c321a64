"""Downloads jars with Maven, which knows the user's repositories, proxies and credentials."""

import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from harrow.live_cluster.processes.child_processes import ChildProcesses, SupervisorError

_ERROR: Final = "[ERROR]"
_HELP: Final = re.compile(r"\s*-> \[Help \d+\]$")


class MavenError(Exception):
    """Maven is missing, or has failed."""


def copy_jars(artifacts: Iterable[str], folder: Path, *, with_dependencies: bool) -> None:
    """Download the jars of artifacts with Maven into a folder with the layout of a repository."""
    maven = shutil.which("mvn")
    if maven is None:
        raise MavenError("there is no Maven (mvn) that could get Kafka")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pom.xml").write_text(_pom(artifacts), encoding="utf-8")
    command = [
        *(maven, "--batch-mode", "--quiet", "dependency:copy-dependencies", "-DincludeScope=runtime"),
        *("-DoutputDirectory=repository", "-Dmdep.useRepositoryLayout=true"),
        f"-DexcludeTransitive={'false' if with_dependencies else 'true'}",
    ]
    log = folder / "maven.log"
    # Maven takes minutes. It ends with harrow, even if harrow is killed.
    with ChildProcesses() as children:
        try:
            started = children.start(command, folder=folder, log=log)
        except SupervisorError as error:
            raise MavenError(f"Maven could not get Kafka: {error}") from error
        started.wait()
    if started.code:
        output = log.read_text(encoding="utf-8", errors="replace")
        raise MavenError(f"Maven could not get Kafka: {_reason(output)}")


def _reason(output: str) -> str:
    """Return Maven's first error: later lines only explain how to get more output."""
    errors = (line.partition(_ERROR)[2].strip() for line in output.splitlines())
    return _HELP.sub("", next(filter(None, errors), output.strip() or "it printed nothing"))


def _pom(artifacts: Iterable[str]) -> str:
    dependencies = []
    for artifact in artifacts:
        group, name, version = map(escape, artifact.split(":"))
        dependencies.append(
            f"    <dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
            f"<version>{version}</version></dependency>\n"
        )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0">\n'
        "  <modelVersion>4.0.0</modelVersion>\n"
        "  <groupId>harrow</groupId><artifactId>kafka</artifactId><version>1</version>\n"
        f"  <dependencies>\n{''.join(dependencies)}  </dependencies>\n"
        "</project>\n"
    )

"""Checks whether Spark can run on this machine, without importing it."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

JAVA_MIN: Final = 17
"""The oldest Java that Spark 4 runs on."""


def why_spark_cannot_start(*, remote: bool = False) -> str | None:
    """Return why Spark cannot start on this machine; None if it can.

    A *remote* session, through Spark Connect, needs no Java on this machine.
    """
    if find_spec("pyspark") is None:
        return "PySpark is not installed: pip install 'kafka-harrow[spark]'"
    if remote:
        # Spark Connect needs gRPC, which pyspark[sql] does not install.
        return None if find_spec("grpc") else "gRPC is not installed: pip install 'kafka-harrow[connect]'"
    if is_submitted():
        return None  # Java runs already.
    java = _java()
    if java is None:
        return f"Java is not installed: Spark needs version {JAVA_MIN} or newer (set JAVA_HOME or PATH)"
    version = _java_version(java)
    if version is None:
        return f"{java} does not report its version: Spark needs Java {JAVA_MIN} or newer"
    if version < JAVA_MIN:
        return f"Java is too old: {java} is version {version}, Spark needs {JAVA_MIN} or newer"
    return None


def is_submitted() -> bool:
    """Return whether spark-submit, or a service like it, started this process beside its Java."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def is_connect(master: str | None, remote: str | None) -> bool:
    """Return whether a Spark Connect server is named: by the option, or as PySpark reads it."""
    return remote is not None or (master is None and bool(os.environ.get("SPARK_REMOTE")))


def is_on_this_machine(master: str) -> bool:
    """Return whether a master's executors share this machine's files."""
    return master.startswith("local")


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / ("java.exe" if sys.platform == "win32" else "java")
        return str(java) if java.exists() else None
    return shutil.which("java")


def _java_version(java: str) -> int | None:
    try:
        process = subprocess.run(  # noqa: S603 - the Java that Spark would start
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(\d+)(?:\.(\d+))?', process.stderr + process.stdout)
    if match is None:
        return None
    return int(match[2] or 0) if match[1] == "1" else int(match[1])

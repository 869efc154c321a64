"""Finds the Java for brokers."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

VERSION_MIN: Final = 17
"""The version that all releases were tested with, and that the newest require (KIP-1013)."""
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')


class JavaError(Exception):
    """There is no suitable Java."""


def find_java(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the ``java`` of JAVA_HOME, or else the first ``java`` on the path.

    Raise `JavaError` if it is too old.
    """
    home = environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else shutil.which("java", path=environ.get("PATH"))
    if java is None or not Path(java).is_file():
        where = f"none in JAVA_HOME ({home})" if home else "none on the path"
        raise JavaError(
            f"brokers need Java {VERSION_MIN}, and there is {where}: install it, or set JAVA_HOME"
        )
    result = subprocess.run(  # noqa: S603 - the user's own Java
        [java, "-version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    version = _VERSION.search(result.stderr + result.stdout)
    if version is None or int(version[1]) < VERSION_MIN:
        which = f"is Java {version[1]}" if version else "does not print its version"
        raise JavaError(f"brokers need Java {VERSION_MIN}, and {java} {which}: install it, or set JAVA_HOME")
    return Path(java)

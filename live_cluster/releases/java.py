"""The Java that brokers run on."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

WANTED: Final = 17
"""The version that all releases were tried with, and the oldest that the newest ones run on (KIP-1013)."""
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')


class JavaError(Exception):
    """There is no Java, or none that runs Kafka."""


def find_java(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the ``java`` to run: that of JAVA_HOME, else the first on the path.

    Raises:
        JavaError: there is none, or it is too old.

    """
    home = environ.get("JAVA_HOME")
    found = Path(home, "bin", "java") if home else shutil.which("java", path=environ.get("PATH"))
    if found is None or not Path(found).is_file():
        where = f"none in JAVA_HOME ({home})" if home else "none on the path"
        raise JavaError(f"brokers need Java {WANTED}, and there is {where}: install it, or set JAVA_HOME")
    said = subprocess.run(  # noqa: S603 - the user's own Java
        [found, "-version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    version = _VERSION.search(said.stderr + said.stdout)
    if version is None or int(version[1]) < WANTED:
        which = f"is Java {version[1]}" if version else "does not say its version"
        raise JavaError(f"brokers need Java {WANTED}, and {found} {which}: install it, or set JAVA_HOME")
    return Path(found)

"""Builds distributions, and installs them in new environments without the network.

The build backend and harrow's dependencies come from the environment of the tests. A new
environment sees everything installed here except harrow itself.
"""

import base64
import hashlib
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.patience import PATIENCE_S
from tests.plain_environment import plain_environment

_OURS: Final = ("harrow", "kafka_harrow-")
_PYTEST: Final = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD", "PYTHONPATH", "CI")


def run(*words: str | Path, folder: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a command without variables that would change which code is imported.

    The core stays plain Python, because compiling it would take minutes.
    """
    variables = {name: value for name, value in plain_environment().items() if name not in _PYTEST}
    completed = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=variables | {"HARROW_PURE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert not check or completed.returncode == 0, f"{completed.args}\n{completed.stdout}\n{completed.stderr}"
    return completed


def build(target: str, source: Path, folder: Path) -> Path:
    """Build a ``wheel`` or an ``sdist`` from a source tree, and return the file."""
    folder.mkdir()
    run(sys.executable, "-m", "hatchling", "build", "-t", target, "-d", folder, folder=source)
    (file,) = folder.iterdir()
    return file


def unpack(sdist: Path, folder: Path) -> Path:
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (top,) = folder.iterdir()
    return top


def content(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def foreign_wheel(folder: Path, files: Mapping[str, str]) -> Path:
    """Return the wheel of another distribution, with these files."""
    info = "foreign-1.0.dist-info"
    members = {
        **files,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: foreign\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [f"{name},sha256={_digest(text)},{len(text.encode())}" for name, text in members.items()]
    members[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""])
    wheel = folder / "foreign-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return wheel


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@dataclass(frozen=True)
class VirtualEnvironment:
    """A new environment with harrow's dependencies, but without harrow."""

    home: Path

    def __post_init__(self) -> None:
        run(sys.executable, "-m", "venv", "--without-pip", self.home, folder=self.home.parent)
        dependencies = self.home / "dependencies"
        dependencies.mkdir()
        for place in dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))):
            for entry in Path(place).iterdir():
                if not entry.name.startswith(_OURS) and entry.suffix != ".pth":
                    (dependencies / entry.name).symlink_to(entry)
        (self.site / "dependencies.pth").write_text(f"{dependencies}\n", encoding="utf-8")

    @property
    def site(self) -> Path:
        """The folder for installed packages."""
        places = {"base": str(self.home), "platbase": str(self.home)}
        return Path(sysconfig.get_path("purelib", vars=places))

    @property
    def python(self) -> Path:
        return self.home / "bin" / "python"

    def pip(self, *words: str | Path) -> None:
        """Install or uninstall here with the pip of the tests."""
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", self.python)
        run(*pip, *words, folder=self.home)

    def install(self, *words: str | Path) -> None:
        self.pip("install", "--no-index", "--no-deps", "--no-build-isolation", "--no-compile", *words)

    def run(self, *words: str | Path, folder: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run ``python ARGUMENT...`` or an installed command."""
        first, *rest = words
        return run(self.home / "bin" / first, *rest, folder=folder, check=check)

    def files(self) -> dict[str, bytes]:
        """Return the installed files, without Python's caches."""
        return {
            str(path.relative_to(self.site)): path.read_bytes()
            for path in sorted(self.site.rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts
        }

"""Packs harrow's own packages into one zip, which is all that Spark's executors need to run plans.

The library of the compiled core travels beside the zip. Executors use it if it fits their Python.
"""

import zipfile
from pathlib import Path
from typing import Final

import harrow
from harrow import compilation
from harrow.campaigns.record.json_text import json_document
from harrow.campaigns.version import BUILT, identity

ROOMS: Final = ("cluster_model", "faults", "checks", "campaigns")
_SUFFIXES: Final = (".py", ".txt")
"""Files of code, and tables that the code reads. Executors get plans, so they need no campaigns."""

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The oldest time that a zip can hold. With it, the same code makes the same archive."""


def write_code_archive(path: Path) -> Path:
    """Write the archive and return its path.

    Raises:
        OSError: The archive cannot be written.

    """
    home = Path(str(harrow.__file__)).parent
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        # In an editable installation, the packages are links. `rglob` follows a link only if it
        # starts there.
        files = [
            home / "__init__.py",
            home / "compilation.py",
            *(file for room in ROOMS for file in (home / room).rglob("*") if file.suffix in _SUFFIXES),
        ]
        # Only the driver can tell which version and which sources the code comes from.
        _add(archive, f"campaigns/{BUILT}", json_document(identity()).encode())
        for file in sorted(files):
            _add(archive, file.relative_to(home).as_posix(), file.read_bytes())
        compiled = library()
        if compiled is not None:
            sources = compiled.with_name(f"{compiled.name}.sources")
            _add(archive, sources.name, sources.read_bytes())
    return path


def library() -> Path | None:
    """Return the library of the compiled core, if this process runs it."""
    return compilation.LIBRARY if compilation.compilation()[0] == compilation.COMPILED else None


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(f"harrow/{name}", _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, content)

"""The project's own packages as one zip: all that an executor has to be given to run plans."""

import zipfile
from pathlib import Path
from typing import Final

import harrow

ROOMS: Final = ("cluster_model", "faults", "checks", "campaigns")

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The oldest time that a zip knows: the same code makes the same archive."""


def write_code_archive(path: Path) -> Path:
    """Write the archive and return its path.

    Raises:
        OSError: it cannot be written.

    """
    home = Path(str(harrow.__file__)).parent
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        # Of an editable installation the rooms are links, which `rglob` does not follow from above.
        files = [
            home / "__init__.py",
            home / "compilation.py",
            *(file for room in ROOMS for file in (home / room).rglob("*.py")),
        ]
        for file in sorted(files):
            info = zipfile.ZipInfo(f"harrow/{file.relative_to(home).as_posix()}", _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, file.read_bytes())
    return path

"""The project's own packages as one zip: all that an executor has to be given to run plans."""

import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

ROOMS: Final = ("cluster_model", "faults", "checks", "campaigns")

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The oldest time that a zip knows: the same code makes the same archive."""


def write_code_archive(path: Path) -> Path:
    """Write the archive and return its path.

    Raises:
        OSError: it cannot be written.

    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for room in ROOMS:
            folder = _folder_of(room)
            for file in sorted(folder.rglob("*.py")):
                name = f"{room}/{file.relative_to(folder).as_posix()}"
                info = zipfile.ZipInfo(name, _EPOCH)
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, file.read_bytes())
    return path


def _folder_of(room: str) -> Path:
    spec = find_spec(room)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent

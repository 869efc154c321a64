"""The sources from which commands read a user's cluster, also a live one."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from harrow.campaigns.sources.description import Description, Kind
from harrow.campaigns.sources.files import Sources, read_sources
from harrow.campaigns.sources.kinds import KINDS, description_of
from harrow.campaigns.sources.source_text import file_text
from harrow.cli.extras import need
from harrow.cli.session import Refusal

_BOOTSTRAP: Final = re.compile(r"""^["']?bootstrap["']?\s*:""", re.MULTILINE)


def sources_of_cluster(paths: Sequence[Path]) -> Sources:
    """Read sources. For a target file, ask the brokers that it names.

    Raises:
        CampaignError: A file cannot be read, is no source, or has mistakes.
        Refusal: A live cluster does not describe itself.

    """
    return read_sources(paths, (_TARGET_FILE, *KINDS))


def is_source(path: Path) -> bool:
    """Return whether a file is a source, without asking the brokers of a target file.

    Raises:
        CampaignError: The file cannot be read, or has mistakes.

    """
    text = file_text(path)
    return bool(_BOOTSTRAP.search(text)) or description_of(str(path), text) is not None


def _describe_live(file: str, text: str) -> Description | None:
    if not _BOOTSTRAP.search(text):
        return None
    need("live")
    from harrow.live_cluster.errors import LiveError
    from harrow.live_cluster.users.surveyed_cluster import describe_target

    try:
        return describe_target(file)
    except LiveError as error:
        raise Refusal(str(error)) from error


_TARGET_FILE: Final = Kind(name="target files, whose brokers it asks", read=_describe_live)

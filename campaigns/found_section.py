"""The model of the section ``found``: what a regression is of, and whether it is still there."""

import re
from typing import Annotated, Final

from pydantic import Field

from campaigns.literals import LiteralError
from campaigns.plan import FIXED, OPEN
from campaigns.section import Leaf, Natural, Section, Text, one_of
from campaigns.spelling import quoted

_VERSION_PATTERN: Final = r"[0-9]+(\.[0-9]+){1,3}([.+-]?[A-Za-z0-9]+)*"
_VERSION: Final = re.compile(_VERSION_PATTERN)
_VERSION_CHARACTERS_MAX: Final = 60


def _version(text: str) -> str:
    if len(text) > _VERSION_CHARACTERS_MAX or not _VERSION.fullmatch(text):
        raise LiteralError(f"a version of harrow is wanted, such as 0.1.0, not {quoted(text)}")
    return text


Version = Annotated[
    str,
    Leaf(_version, {"type": ["string", "number"], "pattern": f"^{_VERSION_PATTERN}$", "examples": ["0.1.0"]}),
]


class FoundSection(Section):
    """Where a failure comes from; a campaign with it can be an entry of a corpus (`harrow regress`)."""

    version: Version = Field(description="The version of harrow that found it.")
    rule: Text = Field(description="The rule that it broke (`harrow list rules`).")
    status: Annotated[str, one_of(OPEN, FIXED)] = Field(
        description="`open`: it still happens, and `expect` says how; `fixed`: it must never happen again."
    )
    seed: Natural | None = Field(default=None, description="The seed that it is run with; by default 0.")

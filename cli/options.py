"""Options that several commands share, and how their values are read."""

import re
from enum import StrEnum
from typing import Annotated, Final

import typer

_US_PER_SECOND: Final = 1_000_000
_SEED_END: Final = 2**63


class RunFormat(StrEnum):
    """How `harrow run` prints."""

    TABLE = "table"
    JSON = "json"
    NDJSON = "ndjson"


class ListFormat(StrEnum):
    """How commands print what is no run."""

    TABLE = "table"
    JSON = "json"


NoColor = Annotated[bool, typer.Option("--no-color", help="No colours, as with NO_COLOR.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only what went wrong.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="More about each run.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A Kafka setting or a campaign field; may be repeated."),
]


def parse_seeds(text: str) -> range:
    """Return the seeds of ``A..B``; B is excluded."""
    match = re.fullmatch(r"(\d+)\.\.(\d+)", text.strip())
    if match is None:
        raise typer.BadParameter(f"{text!r} is not of the form A..B, such as 0..100")
    first, end = int(match[1]), int(match[2])
    if first >= end:
        raise typer.BadParameter(f"there is no seed in {text}: A..B begins with A and ends before B")
    return range(check_seed(first), check_seed(end - 1) + 1)


def check_seed(seed: int) -> int:
    """Return *seed* if a run can have it."""
    if not 0 <= seed < _SEED_END:
        raise typer.BadParameter("a seed is a whole number from 0 to 2^63 - 1")
    return seed


def parse_time_s(text: str) -> float:
    """Return the seconds of a time such as ``500ms``, ``30s``, ``2m`` or ``1h``."""
    from campaigns.literals import LiteralError, duration

    try:
        return duration(text) / _US_PER_SECOND
    except LiteralError as error:
        raise typer.BadParameter(str(error)) from error

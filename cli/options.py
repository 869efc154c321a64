"""Options that several commands share, and how their values are read."""

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from campaigns import seeds
from cli import completion
from cluster_model.virtual_time import US_PER_SECOND

DEFAULT_RESULTS: Final = Path("results")
"""Where runs are written, and looked for by their ids."""


class RunFormat(StrEnum):
    """How `harrow run` prints."""

    TABLE = "table"
    JSON = "json"
    NDJSON = "ndjson"
    JUNIT = "junit"
    GITHUB = "github"


class ReportFormat(StrEnum):
    """How commands print what a CI job has to know."""

    TABLE = "table"
    JSON = "json"
    JUNIT = "junit"
    GITHUB = "github"


class ListFormat(StrEnum):
    """How commands print what nobody can fail."""

    TABLE = "table"
    JSON = "json"


Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Print to a file.", dir_okay=False)
]
RunsFolder = Annotated[
    Path,
    typer.Option("--results", metavar="DIR", help="Where a run is looked for by its id.", file_okay=False),
]
Variants = Annotated[
    list[str] | None,
    typer.Option(
        "--variant",
        metavar="NAME",
        autocompletion=completion.variants,
        help="Only this variant (`base` for none); may be repeated.",
    ),
]
NoColor = Annotated[bool, typer.Option("--no-color", help="No colours, as with NO_COLOR.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only what went wrong.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="More about each run.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A Kafka setting or a campaign field; may be repeated."),
]


def parse_seeds(text: str) -> range:
    """Return the seeds of ``A..B``; B is excluded."""
    try:
        return seeds.parse_seeds(text)
    except seeds.SeedError as error:
        raise typer.BadParameter(str(error)) from error


def check_seed(seed: int) -> int:
    """Return *seed* if a run can have it."""
    try:
        return seeds.check_seed(seed)
    except seeds.SeedError as error:
        raise typer.BadParameter(str(error)) from error


def parse_time_s(text: str) -> float:
    """Return the seconds of a time such as ``500ms``, ``30s``, ``2m`` or ``1h``."""
    from campaigns.literals import LiteralError, duration

    try:
        return duration(text) / US_PER_SECOND
    except LiteralError as error:
        raise typer.BadParameter(str(error)) from error


def parse_speed(text: str) -> float:
    """Return how many seconds of the cluster pass in a second: ``5``, ``0.5x``, or infinitely many for ``max``."""
    if text == "max":
        return math.inf
    try:
        speed = float(text.removesuffix("x"))
    except ValueError:
        speed = 0.0
    if not 0 < speed < math.inf:
        message = f"{text!r} is no speed: a number above 0, as 5 or 0.5, or max"
        raise typer.BadParameter(message, param_hint="--speed")
    return speed


def need_terminal() -> None:
    """Refuse ``--watch`` where nobody could see it: it is drawn on standard error, whatever is printed where."""
    from cli.console import can_be_redrawn, message_console

    if not can_be_redrawn(message_console()):
        message = "draws on a terminal, and standard error is none; leave it out, or see `harrow trace`"
        raise typer.BadParameter(message, param_hint="--watch")


def check_rule(name: str | None) -> str | None:
    """Return the name of a rule that runs are judged by, or None for None."""
    from campaigns.sections.judged import rule_names
    from campaigns.spelling import suggestion

    known = rule_names()
    if name is None or name in known:
        return name
    raise typer.BadParameter(f"unknown rule {name!r}{suggestion(name, known)}", param_hint="--rule")

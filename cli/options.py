"""Options that several commands share, and how their values are read."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from harrow.campaigns.language import seeds
from harrow.campaigns.language.spelling import printable
from harrow.cli import completion
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

Completion = Callable[..., list[str]]

DEFAULT_RESULTS: Final = Path("results")
"""Where runs are written, and looked for by their ids."""


RunFormat = Literal["table", "json", "ndjson", "junit", "github"]
"""The output formats of `harrow run`."""

ReportFormat = Literal["table", "json", "junit", "github"]
"""The output formats of commands that a CI job runs."""

TraceFormat = Literal["table", "json", "mermaid", "html"]
"""The output formats of a story."""

ListFormat = Literal["table", "json"]
"""The output formats of commands that have no verdict."""

RunEngine = Literal["seeds", "hypothesis"]
"""What makes the choices that a campaign leaves open."""

SweepEngine = Literal["auto", "spark", "process"]
"""What runs a sweep."""

Kind = Literal[
    "faults",
    "actions",
    "conditions",
    "clients",
    "rules",
    "campaigns",
    "probes",
    "releases",
    "behaviours",
    "mutants",
    "settings",
    "terms",
    "tickets",
]
"""The catalogues of `harrow list`."""


def parse_seeds(text: str) -> range:
    """Return the seeds of ``A..B`` or ``N`` (`seeds.parse_seeds`)."""
    try:
        return seeds.parse_seeds(text)
    except seeds.SeedError as error:
        raise typer.BadParameter(str(error)) from error


def check_seed(seed: int | None) -> int | None:
    """Return *seed* if a run can have it."""
    try:
        return None if seed is None else seeds.check_seed(seed)
    except seeds.SeedError as error:
        raise typer.BadParameter(str(error)) from error


def parse_time_s(text: str) -> float:
    """Return the seconds of a time such as ``500ms``, ``30s``, ``2m`` or ``1h``."""
    from harrow.campaigns.language.literals import LiteralError, duration

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
        raise typer.BadParameter(f"{text!r} is not a speed: give a number above 0, such as 5 or 0.5, or max")
    return speed


def need_terminal() -> None:
    """Refuse ``--watch`` when standard error, which it draws on, is not a terminal."""
    from harrow.cli.console import can_be_redrawn, message_console

    if not can_be_redrawn(message_console()):
        message = "draws on a terminal, and standard error is none; leave it out, or see `harrow trace`"
        raise typer.BadParameter(message, param_hint="--watch")


def check_rule(name: str | None) -> str | None:
    """Return *name* if it is the name of a rule that runs are judged by."""
    from harrow.campaigns.language.readers.judgement import rule_names
    from harrow.campaigns.language.spelling import suggestion

    known = rule_names()
    if name is None or name in known:
        return name
    raise typer.BadParameter(f"unknown rule {name!r}{suggestion(name, known)}")


FORMAT: Final = typer.Option("--format", help="The output format.")
_URI: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):/+(?P<rest>.*)", re.DOTALL)
"""An address such as ``s3a://bucket/key``, or what `Path` makes of one; a drive of Windows has a single letter."""


def check_path(path: Path | None) -> Path | None:
    """Return *path* unless it is an address: harrow would make a folder that is called ``s3a:``."""
    match = None if path is None else _URI.fullmatch(str(path))
    if match is None:
        return path
    scheme, rest = match["scheme"], printable(match["rest"])
    if scheme.lower() == "file":
        raise typer.BadParameter(f"file:// is an address; name the file or folder itself: /{rest}")
    message = f"{scheme}://{rest} is an address, and harrow writes to folders that this machine has mounted"
    raise typer.BadParameter(message)


Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the output to a file.",
        dir_okay=False,
        callback=check_path,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only what went wrong.")]
NoMessages = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result, and no messages.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print all that is known.")]
NoColor = Annotated[bool, typer.Option("--no-color", help="Use no colours, as with NO_COLOR.")]


def named(metavar: str, complete: Completion, meaning: str) -> Any:
    """Return an argument that names something which can be completed."""
    return typer.Argument(metavar=metavar, autocompletion=complete, help=meaning)


def folder(meaning: str, *names: str) -> Any:
    return typer.Option(*names, metavar="DIR", file_okay=False, callback=check_path, help=meaning)


def seed(meaning: str) -> Any:
    return typer.Option(metavar="N", callback=check_seed, help=meaning)


def variant(meaning: str) -> Any:
    return typer.Option("--variant", metavar="NAME", autocompletion=completion.variants, help=meaning)


def anomaly(name: str, meaning: str) -> Any:
    return typer.Option(name, metavar="NAME", autocompletion=completion.anomalies, help=meaning)


CAMPAIGN: Final = named(
    "CAMPAIGN", completion.campaigns, "A file, a folder, or the name of a campaign of the library."
)
RUN: Final = named("RUN", completion.runs, "A folder of results, such as results/latest, or the id of a run.")
RunsFolder = Annotated[Path, folder("Where to look for a run by its id.", "--results")]
Seed = Annotated[int | None, seed("The seed; 0 by default.")]
Seeds = Annotated[
    range | None,
    typer.Option(
        metavar="A..B|N", parser=parse_seeds, help="Several seeds: A and up, B excluded; N is 0..N."
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", metavar="N", min=1, help="How many runs at once; by default one for each core."
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A Kafka setting or a campaign field; may be repeated."),
]
Then = Annotated[
    list[str] | None,
    typer.Option(
        "--then",
        metavar="KEY=VALUE",
        help="As --set, laid over what the seed has drawn: everything else stays as drawn; may be repeated.",
    ),
]
Variants = Annotated[
    list[str] | None,
    variant("Only this variant (`base` for the campaign itself); may be repeated."),
]
KafkaHome = Annotated[
    Path | None,
    typer.Option(
        "--kafka-home",
        metavar="DIR",
        envvar="HARROW_KAFKA_HOME",
        file_okay=False,
        help="The folder of a distribution of the release that is there, in place of harrow's own.",
    ),
]
Consent = Annotated[
    bool,
    typer.Option(
        "--yes", help="On a cluster of yours: do what the campaigns say, also what its file does not allow."
    ),
]
FailuresMax = Annotated[
    int | None, typer.Option("--max-failures", metavar="N", min=1, help="Stop after N failed runs.")
]
TimeMax = Annotated[
    float | None,
    typer.Option(
        "--max-time",
        metavar="DURATION",
        parser=parse_time_s,
        help="Stop after this time, such as 5m.",
    ),
]

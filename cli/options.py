"""The options that several commands share, and how their values are parsed."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from harrow.campaigns.language import seeds
from harrow.campaigns.language.spelling import printable
from harrow.campaigns.storage.location import Location, location
from harrow.cli import completion
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

Completion = Callable[..., list[str]]

DEFAULT_RESULTS: Final = Path("results")
"""The folder for recorded runs, which is also where harrow looks for a run by its id."""

RunFormat = Literal["table", "json", "ndjson", "junit", "github"]
"""The output formats of `harrow run`."""

ReportFormat = Literal["table", "json", "junit", "github"]
"""The output formats of commands that a CI job runs."""

SweepFormat = Literal["table", "json", "junit", "github", "markdown", "html"]
"""The output formats of `harrow sweep` and `harrow assess`."""

TraceFormat = Literal["table", "json", "mermaid", "html"]
"""The output formats of a story."""

ListFormat = Literal["table", "json"]
"""The output formats of commands that have no verdict."""

RunEngine = Literal["seeds", "hypothesis"]
"""What makes the choices that a campaign leaves open."""

SweepEngine = Literal["auto", "spark", "process"]
"""What executes many runs."""

CheckEngine = Literal["process", "spark"]
"""What reads a history."""

SchemaKind = Literal["campaign", "cluster"]
"""The kinds of files with a JSON Schema."""

Kind = Literal[
    "faults",
    "actions",
    "conditions",
    "clients",
    "rules",
    "campaigns",
    "fault-models",
    "probes",
    "releases",
    "behaviours",
    "mutants",
    "settings",
    "terms",
    "tickets",
]
"""The catalogues of `harrow list`."""


@contextmanager
def _as_usage_error() -> Iterator[None]:
    """Turn errors of the campaign language, which are `ValueError`s, into errors of the option."""
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def parse_seeds(text: str) -> range:
    """Return the seeds of ``A..B`` or ``N`` (`seeds.parse_seeds`)."""
    with _as_usage_error():
        return seeds.parse_seeds(text)


def check_seed(seed: int | None) -> int | None:
    with _as_usage_error():
        return None if seed is None else seeds.check_seed(seed)


def parse_time_s(text: str) -> float:
    """Return the seconds of a duration such as ``500ms``, ``30s``, ``2m`` or ``1h``."""
    from harrow.campaigns.language.literals import duration

    with _as_usage_error():
        return duration(text) / US_PER_SECOND


def parse_release(text: str) -> str:
    """Return the release of the model that *text* names."""
    from harrow.campaigns.language.literals import release

    with _as_usage_error():
        return release(text)


def parse_speed(text: str) -> float:
    """Return the cluster seconds per wall-clock second of ``5``, ``0.5x`` or ``max`` (infinity)."""
    if text == "max":
        return math.inf
    try:
        speed = float(text.removesuffix("x"))
    except ValueError:
        speed = 0.0
    if not 0 < speed < math.inf:
        raise typer.BadParameter(f"{text!r} is not a speed: give a number above 0, such as 5 or 0.5, or max")
    return speed


def refuse(values: Mapping[str, object], reason: str) -> None:
    """Refuse the options in *values* that have a value. The keys are their names."""
    for name, value in values.items():
        if value is not None and value is not False:
            raise typer.BadParameter(reason, param_hint=name)


def need_terminal() -> None:
    """Refuse ``--watch`` unless standard error, which it draws on, is a terminal."""
    from harrow.cli.console import can_be_redrawn, message_console

    if not can_be_redrawn(message_console()):
        message = "standard error is not a terminal to draw on; leave the option out"
        raise typer.BadParameter(message, param_hint="--watch")


def check_rule(name: str | None) -> str | None:
    from harrow.campaigns.language.readers.judgement import rule_names
    from harrow.campaigns.language.spelling import suggestion

    rules = rule_names()
    if name is None or name in rules:
        return name
    raise typer.BadParameter(f"unknown rule {name!r}{suggestion(name, rules)}")


_URI: Final = r"(?s)(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):/+(?P<rest>.*)"
"""An address such as ``s3a://bucket/key``, also with one slash as in a `Path`; no drive ``C:``."""


def check_path(path: Path | None) -> Path | None:
    """Refuse an address. As a path, it would make harrow create a folder called ``s3a:``."""
    match = None if path is None else re.fullmatch(_URI, str(path))
    if match is None:
        return path
    scheme, rest = match["scheme"], printable(match["rest"])
    if scheme.lower() == "file":
        raise typer.BadParameter(f"file:// is an address; give the path instead: /{rest}")
    message = f"{scheme}://{rest} is an address; harrow writes only to mounted folders"
    raise typer.BadParameter(message)


def option(names: str, metavar: str, meaning: str, **more: Any) -> Any:
    """Declare an option with a value. In *names*, blanks separate its names."""
    return typer.Option(*names.split(), metavar=metavar, help=meaning, **more)


def repeatable_option(name: str, metavar: str, meaning: str, **more: Any) -> Any:
    """Declare an option that may be repeated."""
    return option(name, metavar, f"{meaning} May be repeated.", **more)


def flag(names: str, meaning: str) -> Any:
    return typer.Option(*names.split(), help=meaning)


def argument(metavar: str, meaning: str, complete: Completion | None = None, **more: Any) -> Any:
    return typer.Argument(metavar=metavar, help=meaning, autocompletion=complete, **more)


def folder(name: str, meaning: str) -> Any:
    return option(name, "DIR", meaning, file_okay=False, callback=check_path)


def folder_or_uri(name: str, meaning: str) -> Any:
    return option(name, "DIR|URI", f"{meaning} It may be a URI, such as s3://bucket/folder.", parser=place_of)


def place_of(text: str | Path) -> Location:
    try:
        return location(text)
    except OSError as error:
        raise typer.BadParameter(
            f"{error.filename or printable(str(text))}: {error.strerror or error}"
        ) from None


def output(meaning: str) -> Any:
    return option("--output -o", "FILE", meaning, dir_okay=False, callback=check_path)


def seed(meaning: str) -> Any:
    return option("--seed", "N", meaning, callback=check_seed)


def variant(meaning: str, declare: Callable[..., Any] = option) -> Any:
    return declare("--variant", "NAME", meaning, autocompletion=completion.variants)


def anomaly(name: str, meaning: str) -> Any:
    return repeatable_option(name, "NAME", meaning, autocompletion=completion.anomalies)


FORMAT: Final = flag("--format", "The output format.")
CAMPAIGN: Final = argument(
    "CAMPAIGN", "A file, a folder, or the name of a library campaign.", completion.campaigns
)
RUN: Final = argument("RUN", "A results folder, such as results/latest, or a run id.", completion.runs)
Junit = Annotated[
    Path | None,
    option(
        "--junit",
        "FILE",
        "Write a JUnit file as well, whatever the output format.",
        dir_okay=False,
        callback=check_path,
    ),
]
Output = Annotated[Path | None, output("Write the output to a file.")]
Quiet = Annotated[bool, flag("--quiet -q", "Print only failures and mistakes.")]
NoMessages = Annotated[bool, flag("--quiet -q", "Print the result without messages.")]
Verbose = Annotated[bool, flag("--verbose -v", "Print all details.")]
NoColor = Annotated[bool, flag("--no-color", "Do not use colours, as with NO_COLOR.")]
NoResults = Annotated[bool, flag("--no-results", "Do not write result files.")]
RunsFolder = Annotated[Path, folder("--results", "The folder where harrow looks for a run id.")]
Seed = Annotated[int | None, seed("The seed; 0 by default.")]
Seeds = Annotated[
    range | None, option("--seeds", "A..B|N", "Run seeds A to B-1. N means 0..N.", parser=parse_seeds)
]
Jobs = Annotated[int | None, option("--jobs -j", "N", "Run N runs at once; by default one per core.", min=1)]
Engine = Annotated[
    SweepEngine,
    typer.Option(
        help="What executes the runs: `auto` is Spark if PySpark and Java are installed, else processes."
    ),
]
Master = Annotated[
    str | None, option("--master", "URL", "The Spark master; by default local[*], in this process.")
]
Remote = Annotated[str | None, option("--remote", "URL", "A Spark Connect server, such as sc://host:15002.")]
Overrides = Annotated[
    list[str] | None, repeatable_option("--set", "KEY=VALUE", "Set a Kafka setting or a campaign field.")
]
Cluster = Annotated[
    Path | None,
    option(
        "--cluster",
        "FILE",
        "Run on the cluster of this file: its release, brokers and settings replace those of the campaign, "
        "and its topics if it has any.",
        dir_okay=False,
    ),
]
Then = Annotated[
    list[str] | None,
    repeatable_option(
        "--then",
        "KEY=VALUE",
        "Like --set, but applied after the seed has made all choices, so that nothing else changes.",
    ),
]
Variants = Annotated[
    list[str] | None, variant("Run only this variant; `base` is the campaign itself.", repeatable_option)
]
KafkaHome = Annotated[
    Path | None,
    option(
        "--kafka-home",
        "DIR",
        "Use the Kafka distribution in this folder instead of harrow's own copy of the release.",
        envvar="HARROW_KAFKA_HOME",
        file_okay=False,
    ),
]
Consent = Annotated[
    bool,
    flag("--yes", "On your own cluster: also perform actions that the target file does not allow."),
]
FailuresMax = Annotated[int | None, option("--max-failures", "N", "Stop after N failed runs.", min=1)]
TimeMax = Annotated[
    float | None, option("--max-time", "DURATION", "Stop after this time, such as 5m.", parser=parse_time_s)
]

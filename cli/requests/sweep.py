"""What `harrow sweep` can be asked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from harrow.cli import completion, options
from harrow.cli.requests.request import WrittenRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRequest(WrittenRequest):
    """Run campaigns for many seeds and settings.

    A sweep runs on Spark, or on all cores of this machine. Every run leaves a row in Parquet files.
    The report groups the failures, says how often each setting showed an anomaly, with the 95%
    interval, and lists the rare states that no run reached.
    """

    campaigns: Annotated[
        list[str] | None,
        options.named(
            "CAMPAIGN", completion.campaigns, "A file, a folder, or the name of a campaign of the library."
        ),
    ] = None
    seeds: options.Seeds = None
    varies: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="KEY=V1,V2",
            help="Run everything with each of these values, as --set would set them; several make a grid.",
        ),
    ] = None
    cells_max: Annotated[
        int,
        typer.Option(
            "--max-cells", metavar="N", min=1, help="Refuse a grid with more combinations of values."
        ),
    ] = 10_000
    overrides: options.Overrides = None
    variants: options.Variants = None
    engine: Annotated[
        options.SweepEngine,
        typer.Option(help="What runs it; `auto` is Spark if PySpark and Java are there, else processes."),
    ] = "auto"
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="The Spark master; by default local[*], embedded.")
    ] = None
    remote: Annotated[
        str | None, typer.Option(metavar="URL", help="A Spark Connect server, such as sc://host:15002.")
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="How many tasks run at once; by default one for each core."),
    ] = None
    out: Annotated[
        Path | None,
        options.folder("The folder of the sweep; by default one below --results, named after its contents."),
    ] = None
    results: Annotated[Path, options.folder("Where sweeps without --out go.")] = options.DEFAULT_RESULTS
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a sweep: run only what its folder lacks.")
    ] = False
    failures_max: options.FailuresMax = None
    time_max_s: options.TimeMax = None
    shrink: Annotated[
        bool, typer.Option("--shrink", help="Then shrink the shortest failure of each kind.")
    ] = False
    shrink_time: Annotated[
        str, typer.Option("--shrink-time", metavar="DURATION", help="How long each shrink may take.")
    ] = "60s"
    report: Annotated[Path | None, options.folder("Run nothing: print the report of this sweep.")] = None
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Show the results on the terminal while it runs: the grid, each kind of failure with its earliest "
            "seed, the rarest states. Standard error has to be a terminal.",
        ),
    ] = False
    output_format: Annotated[options.ReportFormat, options.FORMAT] = "table"
    verbose: options.Verbose = False

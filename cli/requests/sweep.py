"""The options of `harrow sweep`."""

from pathlib import Path
from typing import Annotated

import typer

from harrow.cli import options
from harrow.cli.options import flag, folder, many, option
from harrow.cli.requests.request import OnCluster, WrittenRequest
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRequest(OnCluster, WrittenRequest):
    """Run campaigns for many seeds and settings.

    A sweep runs on Spark, or on all cores of this machine. Each run writes a row to Parquet files.
    The report groups the failures, shows how often each setting led to an anomaly, with its 95%
    interval, and lists the rare states that no run reached.
    """

    campaigns: Annotated[list[str] | None, options.CAMPAIGN] = None
    seeds: options.Seeds = None
    varies: Annotated[
        list[str] | None,
        many(
            "--vary", "KEY=V1,V2", "Run everything with each value, as if set by --set; several make a grid."
        ),
    ] = None
    cells_max: Annotated[
        int, option("--max-cells", "N", "Refuse a grid with more combinations of values.", min=1)
    ] = 10_000
    cluster: options.Cluster = None
    overrides: options.Overrides = None
    variants: options.Variants = None
    engine: Annotated[
        options.SweepEngine,
        typer.Option(
            help="What executes the runs: `auto` is Spark if PySpark and Java are installed, else processes."
        ),
    ] = "auto"
    master: Annotated[
        str | None, option("--master", "URL", "The Spark master; by default local[*], in this process.")
    ] = None
    remote: Annotated[
        str | None, option("--remote", "URL", "A Spark Connect server, such as sc://host:15002.")
    ] = None
    workers: Annotated[
        int | None, option("--workers", "N", "Run N tasks at a time; by default one per core.", min=1)
    ] = None
    out: Annotated[
        Path | None,
        folder("--out", "The folder of the sweep; by default one below --results, named by content."),
    ] = None
    results: Annotated[Path, folder("--results", "Where sweeps without --out go.")] = options.DEFAULT_RESULTS
    resume: Annotated[bool, flag("--resume", "Continue a sweep: run only what its folder lacks.")] = False
    failures_max: options.FailuresMax = None
    time_max_s: options.TimeMax = None
    shrink: Annotated[bool, flag("--shrink", "Then shrink the shortest failure of each kind.")] = False
    shrink_time: Annotated[str, option("--shrink-time", "DURATION", "How long each shrink may take.")] = "60s"
    report: Annotated[Path | None, folder("--report", "Run nothing; print the report of this sweep.")] = None
    watch: Annotated[
        bool,
        flag(
            "--watch",
            "Show results on the terminal as they arrive: the grid, each kind of failure with its earliest seed, "
            "the rarest states. Standard error must be a terminal.",
        ),
    ] = False
    output_format: Annotated[options.ReportFormat, options.FORMAT] = "table"
    junit: options.Junit = None
    verbose: options.Verbose = False

"""The options of `harrow sweep`."""

from pathlib import Path
from typing import Annotated

from harrow.campaigns.storage.location import Location
from harrow.cli import options
from harrow.cli.options import flag, folder, folder_or_uri, option, repeatable_option
from harrow.cli.requests.request import OnCluster, WrittenRequest
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRequest(WrittenRequest, OnCluster):
    """Run campaigns for many seeds and settings.

    A sweep runs on Spark, or on all cores of this machine. Each run adds a row to Parquet files.
    The report groups the failures by kind, shows how often each setting led to an anomaly, with a
    95% confidence interval, and names rare states that no run reached.
    """

    campaigns: Annotated[list[str] | None, options.CAMPAIGN] = None
    seeds: options.Seeds = None
    varies: Annotated[
        list[str] | None,
        repeatable_option(
            "--vary",
            "KEY=V1,V2",
            "Run all campaigns with each value, as --set would set it. Several --vary make a grid.",
        ),
    ] = None
    cells_max: Annotated[
        int, option("--max-cells", "N", "Refuse a grid with more than N combinations of values.", min=1)
    ] = 10_000
    cluster: options.Cluster = None
    overrides: options.Overrides = None
    variants: options.Variants = None
    engine: options.Engine = "auto"
    master: options.Master = None
    remote: options.Remote = None
    workers: Annotated[
        int | None, option("--workers", "N", "Run N tasks at once; by default one per core.", min=1)
    ] = None
    out: Annotated[
        Location | None,
        folder_or_uri(
            "--out",
            "The folder of the sweep; by default a folder in --results, named after the sweep's content.",
        ),
    ] = None
    results: Annotated[Path, folder("--results", "The folder for sweeps without --out.")] = (
        options.DEFAULT_RESULTS
    )
    resume: Annotated[
        bool, flag("--resume", "Continue a sweep: run only the seeds that its folder lacks.")
    ] = False
    failures_max: options.FailuresMax = None
    time_max_s: options.TimeMax = None
    shrink: Annotated[bool, flag("--shrink", "Afterwards, shrink the shortest failure of each kind.")] = False
    shrink_time: Annotated[str, option("--shrink-time", "DURATION", "The time limit for each shrink.")] = (
        "60s"
    )
    report: Annotated[
        Location | None,
        folder_or_uri("--report", "Run nothing; print the report of the sweep in this folder."),
    ] = None
    by: Annotated[
        str | None,
        option(
            "--by",
            "KEY,KEY",
            "Report cells together that have equal values of these keys of the grid; `variant` and `campaign` are keys too.",
        ),
    ] = None
    watch: Annotated[
        bool,
        flag(
            "--watch",
            "Show results on the terminal as they arrive: the grid, each kind of failure with its earliest seed, "
            "and the rarest states. Standard error must be a terminal.",
        ),
    ] = False
    output_format: Annotated[options.SweepFormat, options.FORMAT] = "table"
    junit: options.Junit = None
    verbose: options.Verbose = False

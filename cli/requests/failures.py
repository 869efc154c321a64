"""The options of `harrow regress` and `harrow shrink`, which work on failing campaigns."""

from pathlib import Path
from typing import Annotated

from harrow.campaigns.storage.location import LocalLocation, Location
from harrow.cli import completion, options
from harrow.cli.options import argument, option
from harrow.cli.requests.request import OnCluster, WrittenRequest
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressRequest(WrittenRequest, OnCluster):
    """Run the corpus: campaigns that once failed.

    Reports each campaign as STILL FAILING, FIXED, CHANGED or ERROR. Exits with 0 if each has the
    outcome that its file states: an `open` campaign still fails, a `fixed` one no longer does.
    Otherwise exits with 1, or with 2 if a file cannot be run, or with 3 if the corpus is empty.
    """

    corpus: Annotated[
        Location,
        argument(
            "DIR|URI",
            "The corpus: a folder of campaigns, or one file in it; a path or a URI.",
            parser=options.place_of,
        ),
    ] = LocalLocation(Path("tests/regressions"))
    added: Annotated[
        str | None,
        option(
            "--add",
            "CAMPAIGN",
            "Run nothing else; add this failing campaign to the corpus.",
            autocompletion=completion.campaigns,
        ),
    ] = None
    seed: Annotated[int | None, options.seed("With --add: the seed that fails; 0 by default.")] = None
    variant: Annotated[str | None, options.variant("With --add: the variant that fails.")] = None
    name: Annotated[str | None, option("--name", "NAME", "With --add: the name of the new file.")] = None
    cluster: options.Cluster = None
    overrides: options.Overrides = None
    jobs: options.Jobs = None
    output_format: Annotated[options.ReportFormat, options.FORMAT] = "table"
    junit: options.Junit = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkRequest(OnCluster):
    """Find the smallest campaign that fails in the same way as a run.

    The result breaks the same promise for the same cause, or misses the same bound of
    `expect.service`. harrow removes faults, records, brokers
    and settings, rounds times, runs each candidate, and keeps it if it still fails. `harrow run`
    of the result exits with 1. Ctrl-C stops and keeps the smallest campaign found by then. harrow
    cannot shrink a run that does neither (exit code 2, or 3 if the run is inconclusive). With
    --rule it shrinks an anomaly that the settings permit, and the result expects that anomaly.
    """

    campaign: Annotated[
        str, argument("CAMPAIGN", "A file, or the name of a library campaign.", completion.campaigns)
    ]
    seed: Annotated[int, options.seed("The seed that fails.")]
    cluster: options.Cluster = None
    overrides: options.Overrides = None
    variant: Annotated[
        str | None, options.variant("The variant that fails; `base`, the default, is the campaign itself.")
    ] = None
    rule: Annotated[
        str | None,
        option(
            "--rule",
            "RULE",
            "Shrink this anomaly, even if the settings permit it.",
            autocompletion=completion.rules,
            callback=options.check_rule,
        ),
    ] = None
    jobs: options.Jobs = None
    time_max: Annotated[
        str,
        option(
            "--max-time", "DURATION", "Stop after this time, and keep the smallest campaign found by then."
        ),
    ] = "5m"
    output: Annotated[Path | None, options.output("Also write the campaign to a file.")] = None
    quiet: options.NoMessages = False
    no_color: options.NoColor = False

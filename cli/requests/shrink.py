"""What `harrow shrink` can be asked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from harrow.cli import completion, options
from harrow.cli.requests.request import CommandRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkRequest(CommandRequest):
    """Find the smallest campaign that fails like a run.

    It breaks the same promise for the same cause. harrow leaves out faults, records, brokers and settings
    and rounds times as long as the campaign still fails; it runs each candidate. The result fails by itself:
    `harrow run` ends with 1. Ctrl-C keeps the best so far. A run that breaks no promise cannot be shrunk
    (exit code 2; 3 if inconclusive), but with `--rule` an anomaly that the settings permit can: the result
    expects it.
    """

    campaign: Annotated[
        str,
        options.named("CAMPAIGN", completion.campaigns, "A file, or the name of a campaign of the library."),
    ]
    seed: Annotated[int, options.seed("The seed that fails.")]
    overrides: options.Overrides = None
    variant: Annotated[
        str | None,
        options.variant("This variant (`base`, the default, for the campaign itself)."),
    ] = None
    rule: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            autocompletion=completion.rules,
            callback=options.check_rule,
            help="Shrink this anomaly, even if the settings permit it.",
        ),
    ] = None
    time_max: Annotated[
        str, typer.Option("--max-time", metavar="DURATION", help="Take the best so far after this time.")
    ] = "5m"
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Also write the campaign to a file.",
            dir_okay=False,
            callback=options.check_path,
        ),
    ] = None
    quiet: options.NoMessages = False
    no_color: options.NoColor = False

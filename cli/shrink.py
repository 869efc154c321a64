"""``harrow shrink``: make a small campaign of a failing run."""

from pathlib import Path
from typing import Annotated

import typer

from cli import completion
from cli.options import NoColor, Overrides, Quiet, check_rule, check_seed, parse_time_s

_TIME_MAX = "5m"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("shrink", short_help="Make the smallest campaign that fails like a run.")(shrink)


def shrink(
    campaign: Annotated[
        str,
        typer.Argument(
            metavar="CAMPAIGN",
            autocompletion=completion.campaigns,
            help="A file, or the name of a campaign of the library.",
        ),
    ],
    seed: Annotated[int, typer.Option(metavar="N", help="The seed that fails.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write the campaign to a file too.", dir_okay=False
        ),
    ] = None,
    overrides: Overrides = None,
    variant: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            autocompletion=completion.variants,
            help="This variant (`base`, the default, for none).",
        ),
    ] = None,
    rule: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            autocompletion=completion.rules,
            help="Shrink this anomaly, also if the settings permit it.",
        ),
    ] = None,
    time_max: Annotated[
        str, typer.Option("--max-time", metavar="DURATION", help="Be content with the best after this time.")
    ] = _TIME_MAX,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Print the smallest campaign that breaks the same promise as a failing run, for the same cause.

    Faults, records, brokers and settings are left out while it still fails, times are rounded; each
    candidate is run. The campaign that is left fails by itself: `harrow run` ends with 1. Ctrl-C keeps
    the best so far. A run that breaks no promise cannot be shrunk (exit code 2; 3 if inconclusive), but
    what the settings permit can, with `--rule`: the campaign that is left expects it.
    """
    from cli.shrink_session import ShrinkRequest, shrink_session

    request = ShrinkRequest(
        argument=campaign,
        seed=check_seed(seed),
        overrides=tuple(overrides or ()),
        variant=variant,
        rule=check_rule(rule),
        output=None if str(output) == "-" else output,
        time_max_s=parse_time_s(time_max),
    )
    raise typer.Exit(shrink_session(request, quiet=quiet, no_color=no_color))

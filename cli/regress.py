"""``harrow regress``: run the corpus of regressions."""

from pathlib import Path
from typing import Annotated

import typer

from cli import completion
from cli.options import NoColor, Output, Overrides, Quiet, ReportFormat, check_seed


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("regress", short_help="Run the corpus of campaigns that failed once.")(regress)


def regress(
    place: Annotated[
        Path, typer.Argument(metavar="DIR", help="The corpus: a folder of campaigns, or one of them.")
    ] = Path("tests/regressions"),
    added: Annotated[
        str | None,
        typer.Option(
            "--add",
            metavar="CAMPAIGN",
            autocompletion=completion.campaigns,
            help="Put a failing campaign into the corpus instead.",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="With --add: the seed that it fails with; 0 by default.")
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", autocompletion=completion.variants, help="With --add: the variant that fails."
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --add: what the entry is called.")
    ] = None,
    overrides: Overrides = None,
    output_format: Annotated[
        ReportFormat, typer.Option("--format", help="How to print.")
    ] = ReportFormat.TABLE,
    output: Output = None,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Run the corpus of regressions: each entry is STILL FAILING, FIXED, CHANGED or ERROR.

    Ends with 0 when each entry came out as its status says: `open` is still failing, `fixed` is
    fixed. Anything else is 1, a file that cannot be run 2, an empty corpus 3.
    """
    from cli.regress_session import add_session, regress_session

    if added is not None:
        code = add_session(
            added,
            place,
            seed=check_seed(0 if seed is None else seed),
            variant=variant,
            name=name,
            overrides=tuple(overrides or ()),
            output_format=output_format,
            output=output,
            quiet=quiet,
            no_color=no_color,
        )
        raise typer.Exit(code)
    for option, given in (
        ("--seed", seed),
        ("--variant", variant),
        ("--name", name),
        ("--set", overrides),
    ):
        if given is not None and given != []:
            raise typer.BadParameter("it goes with --add", param_hint=option)
    raise typer.Exit(
        regress_session(place, output_format=output_format, output=output, quiet=quiet, no_color=no_color)
    )

"""What `harrow regress` can be asked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from harrow.cli import completion, options
from harrow.cli.requests.request import WrittenRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressRequest(WrittenRequest):
    """Run the corpus of campaigns that failed once.

    Each entry is STILL FAILING, FIXED, CHANGED or ERROR. Ends with 0 if each entry matches its
    status: `open` is still failing, `fixed` is fixed. Otherwise it ends with 1, with 2 if a file
    cannot be run, and with 3 if the corpus is empty.
    """

    corpus: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            callback=options.check_path,
            help="The corpus: a folder of campaigns, or one of them.",
        ),
    ] = Path("tests/regressions")
    added: Annotated[
        str | None,
        typer.Option(
            "--add",
            metavar="CAMPAIGN",
            autocompletion=completion.campaigns,
            help="Instead, add a failing campaign to the corpus.",
        ),
    ] = None
    seed: Annotated[int | None, options.seed("With --add: the seed that fails; 0 by default.")] = None
    variant: Annotated[str | None, options.variant("With --add: the variant that fails.")] = None
    name: Annotated[str | None, typer.Option(metavar="NAME", help="With --add: the name of the entry.")] = (
        None
    )
    overrides: options.Overrides = None
    jobs: options.Jobs = None
    output_format: Annotated[options.ReportFormat, options.FORMAT] = "table"

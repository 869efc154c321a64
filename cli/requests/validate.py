"""What `harrow validate` can be asked."""

from dataclasses import dataclass
from typing import Annotated

from harrow.cli import completion, options
from harrow.cli.requests.request import CommandRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateRequest(CommandRequest):
    """Check campaign files, and report all mistakes at once."""

    paths: Annotated[
        list[str],
        options.named("PATH", completion.campaigns, "Files, folders, or names of campaigns of the library."),
    ]
    overrides: options.Overrides = None
    output_format: Annotated[options.ReportFormat, options.FORMAT] = "table"
    quiet: options.Quiet = False
    no_color: options.NoColor = False

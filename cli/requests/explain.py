"""What `harrow explain` can be asked."""

from dataclasses import dataclass
from typing import Annotated

from harrow.cli import completion, options
from harrow.cli.requests.request import CommandRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainRequest(CommandRequest):
    """Explain anything that `harrow list` shows."""

    name: Annotated[
        str,
        options.named(
            "NAME",
            completion.names,
            "A fault, rule, setting, release, behaviour, mutant, probe, campaign ...",
        ),
    ]
    output_format: Annotated[options.ListFormat, options.FORMAT] = "table"
    no_color: options.NoColor = False

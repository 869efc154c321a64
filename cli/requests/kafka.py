"""What `harrow kafka` can be asked."""

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from harrow.cli import options
from harrow.cli.requests.request import CommandRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaRequest(CommandRequest):
    """Get releases of Kafka, to run campaigns on real brokers.

    They are kept in the user's cache folder, or below HARROW_CACHE. Maven gets them, with the settings that it has here;
    each jar of a pinned release is compared with the SHA-256 that harrow knows.
    """

    action: Annotated[
        Literal["get", "list", "remove"], typer.Argument(metavar="ACTION", help="get, list or remove.")
    ]
    releases: Annotated[
        list[str] | None, typer.Argument(metavar="[RELEASE]...", help="By number, such as 3.9.2.")
    ] = None
    repository: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="HARROW_MAVEN_REPOSITORY",
            help="Download from a Maven repository, without Maven.",
        ),
    ] = None
    output_format: Annotated[options.ListFormat, options.FORMAT] = "table"
    quiet: options.NoMessages = False
    no_color: options.NoColor = False

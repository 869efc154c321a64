"""The options of commands that use real brokers."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from harrow.cli import options
from harrow.cli.options import argument, option
from harrow.cli.requests.request import CommandRequest, WrittenRequest
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformRequest(WrittenRequest):
    """Compare what real brokers do with what the model allows.

    Each campaign runs on real brokers, and on the model with many seeds. The result on brokers must
    be among the results of the model. harrow compares the verdict of each rule, the lost and the
    duplicated values, and the replicas' logs and ISR at the end.

    With --requests, no campaign runs. Instead, a real broker and a model broker get the same
    requests, in sequences that Hypothesis draws, with elections in between. Their responses must be
    equal; harrow shrinks a sequence whose responses differ. With --of groups or --of transactions,
    the requests address the broker as a coordinator.
    """

    campaigns: Annotated[list[str] | None, options.CAMPAIGN] = None
    target: Annotated[
        str,
        option(
            "--target", "kafka:RELEASE|FILE", "The brokers to start, such as kafka:2.4.1, or a target file."
        ),
    ]
    requests: Annotated[
        int | None, option("--requests", "N", "Compare N single requests instead of campaigns.", min=1)
    ] = None
    of: Annotated[
        Literal["brokers", "groups", "transactions"],
        typer.Option(
            help="The requests to compare: those to logs and leaders (brokers), to groups, or to transactions."
        ),
    ] = "brokers"
    seed: Annotated[int | None, options.seed("The seed of the requests; 0 by default.")] = None
    times: Annotated[int, option("--times", "N", "Run each campaign N times on brokers.", min=1)] = 1
    seeds: Annotated[
        range | None,
        option("--seeds", "A..B", "The seeds for the model; 0..50 by default.", parser=options.parse_seeds),
    ] = None
    overrides: options.Overrides = None
    variants: options.Variants = None
    kafka_home: options.KafkaHome = None
    consent: options.Consent = False
    results: Annotated[
        Path, options.folder("--results", "The folder for the result files of runs on brokers.")
    ] = options.DEFAULT_RESULTS
    no_results: options.NoResults = False
    output_format: Annotated[Literal["table", "json", "markdown"], options.FORMAT] = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRequest(CommandRequest):
    """Check your cluster, and list what can run on it.

    `check` connects to the cluster, and changes nothing. It lists the brokers and whether each
    responds, the faults that have a command, the campaigns that can run there, and why others
    cannot; --verbose gives the reason for each campaign. `schema` prints the JSON Schema of target
    files.
    """

    action: Annotated[Literal["check", "schema"], argument("ACTION", "check or schema.")]
    file: Annotated[Path | None, argument("FILE", "The file that describes the cluster.", dir_okay=False)] = (
        None
    )
    campaigns: Annotated[
        list[str] | None,
        argument("CAMPAIGN", "The campaigns to check; by default those of the library."),
    ] = None
    overrides: options.Overrides = None
    verbose: options.Verbose = False
    no_color: options.NoColor = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HealRequest(CommandRequest):
    """Undo the faults that a killed run left on your clusters.

    Before each change to your cluster, harrow writes down how to undo it, in the folder
    HARROW_STATE or in the system's folder for program state. `heal` follows these notes: it
    restores links, resumes and starts brokers, and deletes topics.
    """

    file: Annotated[
        Path | None,
        argument("FILE", "The target file of the cluster to heal; by default all clusters.", dir_okay=False),
    ] = None
    quiet: options.NoMessages = False
    no_color: options.NoColor = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaRequest(CommandRequest):
    """Get releases of Kafka, to run campaigns on real brokers.

    harrow keeps releases in the user's cache folder, or in the folder HARROW_CACHE. Maven downloads
    them with its settings on this machine. harrow checks the SHA-256 of each jar of the releases
    that it pins.
    """

    action: Annotated[Literal["get", "list", "remove"], argument("ACTION", "get, list or remove.")]
    releases: Annotated[list[str] | None, argument("RELEASE", "Release numbers, such as 3.9.2.")] = None
    repository: Annotated[
        str | None,
        option(
            "--repository",
            "URL",
            "Download from this Maven repository, without Maven.",
            envvar="HARROW_MAVEN_REPOSITORY",
        ),
    ] = None
    output_format: Annotated[options.ListFormat, options.FORMAT] = "table"
    quiet: options.NoMessages = False
    no_color: options.NoColor = False

"""The options of commands that help to write campaigns."""

from pathlib import Path
from typing import Annotated, get_args

from harrow.cli import completion, options
from harrow.cli.options import argument, flag, option
from harrow.cli.requests.request import CommandRequest, OnCluster
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRequest(CommandRequest):
    """Write a commented campaign to start from.

    Writes NAME.yaml in the current folder, and never overwrites a file. With --from, the campaign
    describes your own cluster: its brokers, racks, topics, replicas and settings. The sources are
    those of `harrow import`, or a target file, whose brokers harrow asks.
    """

    name: Annotated[str, argument("NAME", "The name of the campaign, or the file to write.")]
    sources: Annotated[
        list[Path] | None,
        option("--from", "SOURCE", "A file that describes your cluster, or a folder; may be repeated."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest(CommandRequest):
    """Make a cluster file from what describes your cluster.

    A SOURCE is a `.properties` file of brokers, producers or consumers, resources of Strimzi, a
    docker-compose file, the output of `kafka-topics --describe` or `kafka-configs --describe`, a
    target file, whose brokers harrow asks, a folder with such files, or `-` for standard input.
    harrow recognises it by its content, and prints what became of each line: taken over, without
    effect on the model, not in the model (and what that can hide), or not a setting of the release.
    """

    sources: Annotated[
        list[Path], argument("SOURCE", "Files that describe your cluster, folders of them, or `-`.")
    ]
    cluster: Annotated[
        Path,
        option("--output -o", "FILE", "The cluster file to write; an existing file is kept.", dir_okay=False),
    ] = Path("cluster.yaml")
    kafka: Annotated[
        str | None,
        option(
            "--kafka",
            "RELEASE",
            "The release; by default the newest with the brokers' control plane.",
            parser=options.parse_release,
        ),
    ] = None
    brokers: Annotated[
        int | None, option("--brokers", "N", "How many brokers one file stands for; 3 by default.", min=1)
    ] = None
    output_format: Annotated[options.ListFormat, options.FORMAT] = "table"
    quiet: options.NoMessages = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateRequest(OnCluster):
    """Check campaigns and cluster files, and report all mistakes."""

    paths: Annotated[
        list[str], argument("PATH", "Files, folders, or names of library campaigns.", completion.campaigns)
    ]
    cluster: options.Cluster = None
    overrides: options.Overrides = None
    output_format: Annotated[options.ReportFormat, options.FORMAT] = "table"
    quiet: options.Quiet = False
    no_color: options.NoColor = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRequest(CommandRequest):
    """Print the JSON Schema of campaigns or clusters, for editors.

    The first line of a file that `harrow new` or `harrow import` writes links to the schema of the
    latest harrow release. The YAML language server of an editor downloads it from there. Without a
    network, run `harrow schema > campaign.schema.json` and begin a campaign with
    `# yaml-language-server: $schema=campaign.schema.json`.
    """

    kind: Annotated[options.SchemaKind, argument("KIND", "The kind of file: campaign or cluster.")] = (
        "campaign"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest(CommandRequest):
    """List faults, rules, settings, campaigns and more."""

    kind: Annotated[
        options.Kind, argument("KIND", f"The catalogue to list: {', '.join(get_args(options.Kind))}.")
    ]
    output_format: Annotated[options.ListFormat, options.FORMAT] = "table"
    quiet: Annotated[bool, flag("--quiet -q", "Print only the names, one per line.")] = False
    no_color: options.NoColor = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainRequest(CommandRequest):
    """Explain anything that `harrow list` shows."""

    name: Annotated[
        str,
        argument(
            "NAME",
            "A fault, rule, setting, release, behaviour, mutant, probe, campaign ...",
            completion.names,
        ),
    ]
    output_format: Annotated[options.ListFormat, options.FORMAT] = "table"
    no_color: options.NoColor = False

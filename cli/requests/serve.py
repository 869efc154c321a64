"""The options of `harrow serve`."""

from pathlib import Path
from typing import Annotated

from harrow.campaigns.storage.location import LocalLocation, Location
from harrow.cli import options
from harrow.cli.options import argument, flag, option
from harrow.cli.requests.request import OnCluster, WrittenRequest
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeRequest(WrittenRequest, OnCluster):
    """Let real clients use a modelled cluster, and judge them.

    Each broker gets a port on this machine. The faults and the script of the campaign strike at
    their times, and real clients take the place of its workload. With a COMMAND after --, harrow
    starts it with KAFKA_BOOTSTRAP_SERVERS, replaces {bootstrap} in its arguments, and ends with it;
    otherwise it ends with Ctrl-C. Then it judges what the clients sent and read.
    """

    campaign: Annotated[str, argument("CAMPAIGN", "A campaign, or a cluster file, which has no faults.")]
    command: Annotated[
        list[str] | None,
        argument("COMMAND", "A program that uses the cluster, with its arguments, after --."),
    ] = None
    seed: options.Seed = None
    cluster: options.Cluster = None
    overrides: options.Overrides = None
    variant: Annotated[
        str | None, options.variant("The variant to serve; `base`, the default, is the campaign itself.")
    ] = None
    host: Annotated[
        str,
        option("--host", "ADDRESS", "The address to listen on. Everyone who reaches it can use the cluster."),
    ] = "127.0.0.1"
    port: Annotated[
        int | None,
        option(
            "--port",
            "N",
            "The first broker's port; the others follow. By default any free ports.",
            min=1,
            max=65535,
        ),
    ] = None
    control: Annotated[
        int | None,
        option(
            "--control",
            "PORT",
            "Take requests that strike faults and ask for the verdict, by HTTP on this port of 127.0.0.1; "
            "0 means any free one. The program finds it in HARROW_CONTROL.",
            min=0,
            max=65535,
        ),
    ] = None
    connections_max: Annotated[
        int | None,
        option(
            "--max-connections",
            "N",
            "Close connections of clients beyond this number. The default is 10000, or as many as the limit of open "
            "files allows.",
            min=1,
        ),
    ] = None
    users: Annotated[
        Path | None,
        option(
            "--sasl-plain",
            "FILE",
            "Clients must log in with SASL/PLAIN; the file has a line USER=PASSWORD for each user.",
            dir_okay=False,
        ),
    ] = None
    until_eof: Annotated[
        bool,
        flag("--until-eof", "Also end when standard input ends, as it does when the parent process dies."),
    ] = False
    unique: Annotated[
        str | None,
        option(
            "--unique",
            "WHAT",
            "What identifies a record: key, value or header:NAME. Finds records that a program sends twice.",
        ),
    ] = None
    time_scale: Annotated[
        float,
        option("--time-scale", "N", "How many seconds pass in the cluster in one second.", min=0.1, max=1000),
    ] = 1.0
    watch: Annotated[
        bool,
        flag(
            "--watch",
            "Show the cluster on the terminal while it is served: brokers, leaders, ISRs, the LEO and HW of each "
            "replica, active faults, clients. Standard error must be a terminal. What the program prints on a "
            "terminal follows below the view when the cluster has ended.",
        ),
    ] = False
    results: Annotated[Location, options.folder_or_uri("--results", "The folder for result files.")] = (
        LocalLocation(options.DEFAULT_RESULTS)
    )
    no_results: options.NoResults = False
    output_format: Annotated[options.RunFormat, options.FORMAT] = "table"
    junit: options.Junit = None
    verbose: options.Verbose = False

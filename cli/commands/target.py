"""`harrow target`: what a cluster of the user's is, and what can run there."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from harrow.campaigns.language.library_index import library_names
from harrow.campaigns.language.problem import CampaignError, Problem
from harrow.campaigns.language.spelling import counted
from harrow.cli import exit_code
from harrow.cli.commands.run_selection import Selection, select
from harrow.cli.console import data_console, show
from harrow.cli.extras import need
from harrow.cli.interrupts import Interrupts
from harrow.cli.render.layout import DIM, columns, indented
from harrow.cli.requests.target import TargetRequest
from harrow.cli.session import Refusal, write_json
from harrow.cli.text import Text

if TYPE_CHECKING:
    from harrow.live_cluster.user_cluster.cluster_file import ClusterFile
    from harrow.live_cluster.user_cluster.users_reach import Settings
    from harrow.live_cluster.wire.survey import Survey


def session(request: TargetRequest) -> int:
    """Look at the cluster, print what was seen, and return the exit code."""
    need("live")
    from harrow.live_cluster.errors import LiveError
    from harrow.live_cluster.user_cluster.cluster_file import cluster_file_schema, load_cluster_file
    from harrow.live_cluster.user_cluster.users_brokers import settings_of_brokers, surveyed

    console = data_console(no_color=request.no_color)
    if request.action == "schema":
        write_json(console, cluster_file_schema())
        return exit_code.OK
    if request.file is None:
        raise typer.BadParameter("name the file of the cluster", param_hint="FILE")
    file = load_cluster_file(request.file)
    if request.campaigns:
        selections = select(request.campaigns, request.overrides, None)
    else:
        selections = _library(request.overrides)
    with Interrupts():
        try:
            seen = surveyed(file)
            answers = dict(_answering(file, seen))
            settings = settings_of_brokers(file, seen) if all(answers.values()) else {}
        except LiveError as error:
            raise Refusal(str(error)) from error
    _show_cluster(console, seen, answers)
    _show_commands(console, file)
    if not all(answers.values()):
        return exit_code.BROKEN
    can_run = _show_campaigns(console, file, seen, settings, selections)
    return exit_code.OK if can_run else exit_code.INCONCLUSIVE


def _library(overrides: Sequence[str] | None) -> list[Selection]:
    """Return the campaigns of the library that options suit: Kafka 2.4, say, has no settings of KRaft for those that have some.

    Raises:
        CampaignError: they suit none.

    """
    found: list[Selection] = []
    problems: list[Problem] = []
    for name in library_names():
        try:
            found += select([name], overrides, None)
        except CampaignError as error:
            problems += error.problems
    if not found:
        raise CampaignError(problems)
    return found


def _answering(file: "ClusterFile", seen: "Survey") -> Iterator[tuple[int, bool]]:
    from harrow.live_cluster.wire.connection import BrokerConnection

    for broker in seen.brokers:
        with BrokerConnection((broker.host, broker.port), security=file.security) as connection:
            yield broker.id, connection.answers()


def _show_cluster(console: Console, seen: "Survey", answers: Mapping[int, bool]) -> None:
    show(console, Text(f"cluster {seen.cluster_id}: Kafka {seen.release.name}, metadata in {seen.metadata}"))
    table = columns("broker", "address", "rack", "")
    for broker in seen.brokers:
        role = "controller" if broker.id == seen.controller and seen.metadata == "zookeeper" else ""
        state = role if answers[broker.id] else "does not answer"
        table.add_row(str(broker.id), f"{broker.host}:{broker.port}", broker.rack or "-", state)
    show(console, indented(table, 2))


def _show_commands(console: Console, file: "ClusterFile") -> None:
    from harrow.live_cluster.user_cluster.cluster_file import HEALED_BY, TOPICS

    known = {*file.commands, *(deed for broker in file.brokers.values() for deed in broker.commands)}
    table = columns("", "command", "allowed")
    commands = {TOPICS: "-"}
    for deed, cure in HEALED_BY.items():
        commands[deed] = f"yes, undone by {cure}" if deed in known else "none"
    for word, command in commands.items():
        table.add_row(word, command, "yes" if word in file.allowed else "with --yes")
    show(console, Text(), indented(table, 2))


def _show_campaigns(
    console: Console,
    file: "ClusterFile",
    seen: "Survey",
    settings: "Settings",
    selections: Sequence[Selection],
) -> int:
    """Print which campaigns can run, and why others can not; return how many can."""
    from harrow.campaigns.language.spelling import run_name
    from harrow.live_cluster.user_cluster.users_reach import obstacles_on

    can_run, plans = 0, [plan for selection in selections for plan in selection.plans]
    show(console, Text())
    for plan in plans:
        reasons = list(obstacles_on(plan, file, seen, settings))
        name = run_name(plan.campaign, plan.variant)
        can_run += not reasons
        show(console, Text.assemble("can run  " if not reasons else ("skipped  ", DIM), name))
        for reason in reasons:
            show(console, indented(reason, 9, DIM))
    show(console, Text(), Text(f"{can_run} of {counted(len(plans), 'plan')} can run there"))
    return can_run

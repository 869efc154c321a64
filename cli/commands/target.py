"""`harrow target`: surveys the user's cluster, and lists the campaigns that can run there."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import typer
from rich.console import Console

from harrow.campaigns.language.library_index import library_names
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.problem import CampaignError, Problem
from harrow.campaigns.language.release_options import BrokerRelease
from harrow.campaigns.language.spelling import counted, run_name
from harrow.campaigns.record.report import variant_name
from harrow.cli import exit_code
from harrow.cli.commands.run_selection import Selection, select
from harrow.cli.console import data_console, show
from harrow.cli.extras import need
from harrow.cli.interrupts import Interrupts
from harrow.cli.render.layout import DIM, columns, indented
from harrow.cli.requests.real_brokers import TargetRequest
from harrow.cli.session import Refusal, write_json
from harrow.cli.text import Text

if TYPE_CHECKING:
    from harrow.live_cluster.users.target_file import TargetFile
    from harrow.live_cluster.wire.survey import Survey

_REASONS_SHOWN: Final = 8


def session(request: TargetRequest) -> int:
    need("live")
    from harrow.live_cluster.errors import LiveError
    from harrow.live_cluster.users.target_file import load_target_file, target_file_schema
    from harrow.live_cluster.users.users_brokers import settings_of_brokers, survey_of
    from harrow.live_cluster.users.users_reach import obstacles_on

    console = data_console(no_color=request.no_color)
    if request.action == "schema":
        write_json(console, target_file_schema())
        return exit_code.OK
    if request.file is None:
        raise typer.BadParameter("give the target file", param_hint="FILE")
    file = load_target_file(request.file)
    with Interrupts():
        try:
            survey = survey_of(file)
            responses = dict(_responses(file, survey))
            settings = settings_of_brokers(file, survey) if all(responses.values()) else {}
        except LiveError as error:
            raise Refusal(str(error)) from error
    brokers = BrokerRelease(survey.release.model_release, survey.metadata)
    if request.campaigns:
        selections = select(request.campaigns, request.overrides, None, brokers)
    else:
        selections = _library(request.overrides, brokers)
    _show_cluster(console, survey, responses)
    _show_commands(console, file)
    if not all(responses.values()):
        return exit_code.BROKEN
    plans = [
        (plan, tuple(obstacles_on(plan, file, survey, settings)))
        for selection in selections
        for plan in selection.plans
    ]
    show(console, Text())
    (_show_each if request.verbose else _show_summary)(console, plans)
    can_run = sum(not reasons for _, reasons in plans)
    show(console, Text(), Text(f"{can_run} of {counted(len(plans), 'plan')} can run there"))
    return exit_code.OK if can_run else exit_code.INCONCLUSIVE


def _library(overrides: Sequence[str] | None, brokers: BrokerRelease | None = None) -> list[Selection]:
    """Return the library campaigns that suit the options. Kafka 2.4, for example, has no KRaft.

    Raises:
        CampaignError: No campaign suits the options.

    """
    selections: list[Selection] = []
    problems: list[Problem] = []
    for name in library_names():
        try:
            selections += select([name], overrides, None, brokers)
        except CampaignError as error:
            problems += error.problems
    if not selections:
        raise CampaignError(problems)
    return selections


def _responses(file: "TargetFile", survey: "Survey") -> Iterator[tuple[int, bool]]:
    """Yield the id of each broker, and whether the broker responds."""
    from harrow.live_cluster.wire.connection import BrokerConnection

    for broker in survey.brokers:
        with BrokerConnection((broker.host, broker.port), security=file.security) as connection:
            yield broker.id, connection.answers()


def _show_cluster(console: Console, survey: "Survey", responses: Mapping[int, bool]) -> None:
    release, metadata = survey.release.name, survey.metadata
    show(console, Text(f"cluster {survey.cluster_id}: Kafka {release}, metadata in {metadata}"))
    table = columns("broker", "address", "rack", "")
    for broker in survey.brokers:
        role = "controller" if broker.id == survey.controller and metadata == "zookeeper" else ""
        state = role if responses[broker.id] else "does not respond"
        table.add_row(str(broker.id), f"{broker.host}:{broker.port}", broker.rack or "-", state)
    show(console, indented(table, 2))


def _show_commands(console: Console, file: "TargetFile") -> None:
    from harrow.live_cluster.users.target_file import HEALED_BY, TOPICS

    available = {*file.commands, *(name for broker in file.brokers.values() for name in broker.commands)}
    table = columns("", "command", "allowed")
    commands = {TOPICS: "-"}
    commands |= {
        name: f"yes, undone by {cure}" if name in available else "none" for name, cure in HEALED_BY.items()
    }
    for name, command in commands.items():
        table.add_row(name, command, "yes" if name in file.allowed else "with --yes")
    show(console, Text(), indented(table, 2))


def _show_each(console: Console, plans: Sequence[tuple[Plan, tuple[str, ...]]]) -> None:
    """Print, for each plan, that it can run, or why it cannot."""
    for plan, reasons in plans:
        name = run_name(plan.campaign, plan.variant)
        show(console, Text.assemble("can run  " if not reasons else ("skipped  ", DIM), name))
        for reason in reasons:
            show(console, indented(reason, 9, DIM))


def _show_summary(console: Console, plans: Sequence[tuple[Plan, tuple[str, ...]]]) -> None:
    """Print the campaigns that can run with their variants, and the main reasons against others."""
    can_run: dict[str, list[str]] = {}
    for plan, reasons in plans:
        if not reasons:
            can_run.setdefault(plan.campaign, []).append(variant_name(plan))
    table = columns("can run", "variants")
    for campaign, variants in can_run.items():
        table.add_row(campaign, ", ".join(variants))
    if can_run:
        show(console, indented(table, 2), Text())
    counts = Counter(reason for _, reasons in plans for reason in dict.fromkeys(reasons))
    table = columns("plans", "are skipped because")
    for reason, count in counts.most_common(_REASONS_SHOWN):
        table.add_row(str(count), reason)
    if counts:
        show(console, indented(table, 2))
    if len(counts) > _REASONS_SHOWN:
        rest = f"and {len(counts) - _REASONS_SHOWN} more reasons; --verbose lists them for each plan"
        show(console, indented(rest, 2, DIM))

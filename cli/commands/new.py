"""`harrow new`: writes a campaign to start from."""

import shlex
from pathlib import Path

import typer

from harrow.campaigns.language.spelling import printable
from harrow.campaigns.language.template import new_campaign
from harrow.campaigns.version import SCHEMA_URL
from harrow.cli import exit_code
from harrow.cli.completion import SUFFIXES
from harrow.cli.console import message_console, say
from harrow.cli.extras import need
from harrow.cli.requests.authoring import NewRequest
from harrow.cli.session import Refusal, write_new


def session(request: NewRequest) -> int:
    name = request.name
    if not Path(name).name:
        raise typer.BadParameter("a campaign needs a name", param_hint="NAME")
    path = Path(name if name.endswith(SUFFIXES) else f"{name}.yaml")
    text = new_campaign(path.stem) if request.cluster is None else _campaign_for(request.cluster, path.stem)
    write_new(path, f"# yaml-language-server: $schema={SCHEMA_URL}\n{text}")
    typer.echo(printable(str(path)))
    say(message_console(), f"edit it, then run: harrow run {shlex.quote(str(path))}")
    return exit_code.OK


def _campaign_for(cluster: Path, name: str) -> str:
    """Return a campaign that describes the user's cluster."""
    need("live")
    from harrow.live_cluster.errors import LiveError
    from harrow.live_cluster.users.target_file import load_target_file
    from harrow.live_cluster.users.users_brokers import settings_of_brokers, settings_of_topics, survey_of
    from harrow.live_cluster.users.users_campaign import UnwritablePlanError, users_campaign

    file = load_target_file(cluster)
    try:
        survey = survey_of(file)
        return users_campaign(
            name, survey, settings_of_brokers(file, survey), settings_of_topics(file, survey)
        )
    except (LiveError, UnwritablePlanError) as error:
        raise Refusal(str(error)) from error

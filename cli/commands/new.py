"""`harrow new`: writes a campaign to start from."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import typer

from harrow.campaigns.language.spelling import printable
from harrow.campaigns.language.template import new_campaign
from harrow.campaigns.version import SCHEMA_URL
from harrow.cli import exit_code
from harrow.cli.completion import SUFFIXES
from harrow.cli.console import message_console, say
from harrow.cli.requests.authoring import NewRequest
from harrow.cli.session import Refusal, write_new


def session(request: NewRequest) -> int:
    name = request.name
    if not Path(name).name:
        raise typer.BadParameter("a campaign needs a name", param_hint="NAME")
    path = Path(name if name.endswith(SUFFIXES) else f"{name}.yaml")
    text = _campaign_for(request.sources, path.stem) if request.sources else new_campaign(path.stem)
    write_new(path, f"# yaml-language-server: $schema={SCHEMA_URL}\n{text}")
    typer.echo(printable(str(path)))
    say(message_console(), f"edit it, then run: harrow run {shlex.quote(str(path))}")
    return exit_code.OK


def _campaign_for(sources: Sequence[Path], name: str) -> str:
    """Return a campaign that describes the user's cluster."""
    from harrow.campaigns.language.plan_file import UnwritablePlanError
    from harrow.campaigns.sources.cluster_import import import_cluster
    from harrow.campaigns.sources.imported_campaign import imported_campaign
    from harrow.cli.cluster_sources import sources_of_cluster

    descriptions = sources_of_cluster(sources).descriptions
    try:
        return imported_campaign(name, import_cluster(descriptions), [file for file, _ in descriptions])
    except UnwritablePlanError as error:
        raise Refusal(str(error)) from error

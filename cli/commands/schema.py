"""`harrow schema`."""

import json

import typer

from harrow.campaigns.language.schema import json_schema
from harrow.cli import exit_code
from harrow.cli.requests.schema import SchemaRequest


def session(_request: SchemaRequest) -> int:
    typer.echo(json.dumps(json_schema(), ensure_ascii=False, indent=2))
    return exit_code.OK

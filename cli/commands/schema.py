"""`harrow schema`: prints the JSON Schema of campaign files."""

import json

import typer

from harrow.campaigns.language.schema import json_schema
from harrow.cli import exit_code
from harrow.cli.requests.authoring import SchemaRequest


def session(_request: SchemaRequest) -> int:
    typer.echo(json.dumps(json_schema(), ensure_ascii=False, indent=2))
    return exit_code.OK

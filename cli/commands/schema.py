"""`harrow schema`: prints the JSON Schema of campaign files or of cluster files."""

import json

import typer

from harrow.campaigns.language.schema import cluster_json_schema, json_schema
from harrow.cli import exit_code
from harrow.cli.requests.authoring import SchemaRequest


def session(request: SchemaRequest) -> int:
    typer.echo(
        json.dumps(
            cluster_json_schema() if request.kind == "cluster" else json_schema(),
            ensure_ascii=False,
            indent=2,
        )
    )
    return exit_code.OK

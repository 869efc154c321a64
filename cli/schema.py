"""``harrow schema``: the JSON Schema of campaign files."""

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("schema")(schema)


def schema() -> None:
    """Print the JSON Schema of campaign files, for editors.

    With the YAML language server: `harrow schema > campaign.schema.json`, and as first line
    of a campaign `# yaml-language-server: $schema=campaign.schema.json`.
    """
    import json

    from campaigns.schema import json_schema

    typer.echo(json.dumps(json_schema(), ensure_ascii=False, indent=2))

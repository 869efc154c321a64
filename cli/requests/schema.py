"""What `harrow schema` can be asked."""

from dataclasses import dataclass

from harrow.cli.requests.request import CommandRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRequest(CommandRequest):
    """Print the JSON Schema of campaign files, for editors.

    With the YAML language server: `harrow schema > campaign.schema.json`, and as first line
    of a campaign `# yaml-language-server: $schema=campaign.schema.json`.
    """

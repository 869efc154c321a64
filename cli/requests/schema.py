"""What `harrow schema` can be asked."""

from dataclasses import dataclass

from harrow.cli.requests.request import CommandRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRequest(CommandRequest):
    """Print the JSON Schema of campaign files, for editors.

    `harrow new` names the schema of the last release in the first line of a campaign, and the YAML
    language server of an editor downloads it. Without a network: `harrow schema > campaign.schema.json`,
    and as first line `# yaml-language-server: $schema=campaign.schema.json`.
    """

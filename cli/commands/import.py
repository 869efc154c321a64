"""`harrow import`: makes a cluster file from Kafka's own configuration files."""

import shlex
from dataclasses import replace

import typer

from harrow.campaigns.language.loader import read_bytes
from harrow.campaigns.language.problem import FileError, Problem
from harrow.campaigns.language.spelling import printable
from harrow.campaigns.language.yaml_positions import MAX_BYTES
from harrow.campaigns.record.redaction import HIDDEN, sounds_secret, without_secrets
from harrow.campaigns.sources.cluster_import import described
from harrow.campaigns.sources.description import Fate, ImportedLine
from harrow.campaigns.sources.java_properties import properties_text
from harrow.campaigns.sources.kinds import import_texts
from harrow.cli import exit_code
from harrow.cli.console import message_console, say
from harrow.cli.requests.authoring import ImportRequest
from harrow.cli.session import write_new


def session(request: ImportRequest) -> int:
    contents = [(str(path), read_bytes(path)) for path in request.sources]
    too_large = [
        Problem(file, 0, 0, "larger than 1 MiB") for file, content in contents if len(content) > MAX_BYTES
    ]
    if too_large:
        raise FileError(too_large)
    files = [(file, properties_text(content)) for file, content in contents]
    imported = import_texts(files, release=request.kafka, brokers=request.brokers)
    write_new(request.cluster, imported.text)
    typer.echo(f"Kafka {imported.release}; {len(imported.lines)} lines")
    for fate in Fate:
        lines = [line for line in imported.lines if line.fate == fate]
        typer.echo(f"{fate}: {len(lines)}")
        for line in lines:
            typer.echo(f"  {printable(described(_without_secret(line)))}")
    say(message_console(), f"run on it: harrow run standard --cluster {shlex.quote(str(request.cluster))}")
    return exit_code.OK


def _without_secret(line: ImportedLine) -> ImportedLine:
    """Return a line whose value may be printed, for example into the log of a CI job."""
    entry = line.entry
    value = HIDDEN if sounds_secret(entry.name) else without_secrets(entry.value)
    return replace(line, entry=entry._replace(value=value))

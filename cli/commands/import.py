"""`harrow import`: makes a cluster file from other descriptions of a cluster."""

import shlex
from collections.abc import Iterable
from pathlib import Path

import typer

from harrow.campaigns.language.spelling import counted, printable
from harrow.campaigns.record.redaction import HIDDEN, sounds_secret, without_secrets
from harrow.campaigns.sources.cluster_import import Imported, described, import_cluster
from harrow.campaigns.sources.description import Fate, ImportedLine
from harrow.cli import exit_code
from harrow.cli.cluster_sources import sources_of_cluster
from harrow.cli.console import data_console
from harrow.cli.requests.authoring import ImportRequest
from harrow.cli.session import JSON, note, write_json, write_new
from harrow.cluster_model.lazy_dataclass import replace


def session(request: ImportRequest) -> int:
    sources = sources_of_cluster(request.sources)
    imported = import_cluster(sources.descriptions, release=request.kafka, brokers=request.brokers)
    imported = replace(imported, lines=tuple(map(_without_secret, imported.lines)))
    write_new(request.cluster, imported.text)
    if request.output_format == JSON:
        write_json(data_console(), _document(imported, request.cluster, sources.left_out))
    else:
        _print_lists(imported)
    for line in sources.notes:
        note(request, line)
    if imported.assumed_brokers is not None:
        note(request, f"the file of one broker stands for {imported.assumed_brokers} (--brokers)")
    note(request, f"see what it survives: harrow assess {shlex.quote(str(request.cluster))}")
    return exit_code.OK


def _print_lists(imported: Imported) -> None:
    typer.echo(f"Kafka {imported.release}; {counted(len(imported.lines), 'line')}")
    for fate in Fate:
        lines = [line for line in imported.lines if line.fate == fate]
        typer.echo(f"{fate}: {len(lines)}")
        for text in described(lines):
            typer.echo(f"  {printable(text)}")


def _document(imported: Imported, cluster: Path, left_out: Iterable[str]) -> dict[str, object]:
    return {
        "schema": "harrow.import/1",
        "cluster": str(cluster),
        "kafka": imported.release,
        "lines": [
            {**line.entry._asdict(), "fate": line.fate.name.lower(), "note": line.note}
            for line in imported.lines
        ],
        "left_out": list(left_out),
    }


def _without_secret(line: ImportedLine) -> ImportedLine:
    """Return a line whose value may be printed, for example into the log of a CI job."""
    entry = line.entry
    value = HIDDEN if sounds_secret(entry.name) else without_secrets(entry.value)
    return replace(line, entry=entry._replace(value=value))

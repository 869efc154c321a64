"""Imports texts without files."""

from collections.abc import Sequence

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.sources.cluster_import import Imported, import_cluster
from harrow.campaigns.sources.description import Fate
from harrow.campaigns.sources.kinds import description_of


def import_texts(
    files: Sequence[tuple[str, str]], *, release: str | None = None, brokers: int | None = None
) -> Imported:
    descriptions = []
    for file, text in files:
        description = description_of(file, text)
        assert description is not None, f"{file} is of no known kind"
        descriptions.append((file, description))
    return import_cluster(descriptions, release=release, brokers=brokers)


def plan_on(imported: Imported) -> Plan:
    text = "name: x\ncluster: c.yaml\nworkload: {duration: 1s, producers: [{name: p}]}"
    return load_text(text, "x.yaml", cluster_files={"c.yaml": imported.text}).plans[0]


def fates(imported: Imported) -> dict[tuple[int, str], Fate]:
    return {(line.entry.line, line.entry.name): line.fate for line in imported.lines}


def names_with(imported: Imported, fate: Fate) -> set[str]:
    return {line.entry.name for line in imported.lines if line.fate == fate}

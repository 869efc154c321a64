"""Writes the catalogue of faults as Markdown, from the declarations of the faults."""

from typing import Final

from harrow.cli.render.catalogue import entries, with_targets
from harrow.cluster_model.fields import BrokerMarker, LinkEndMarker, words_of

_SHARED: Final = {"Brokers": BrokerMarker, "Ends of a link": LinkEndMarker}
"""Kinds of values that many faults take and that need a section of their own, by heading."""


def fault_tables() -> str:
    """Return a section for each fault: its effect, its fields, and the shortest way to write it.

    Values that many faults take come first.
    """
    sections = [f"### {heading}\n\n{words_of(kind)}." for heading, kind in _SHARED.items()]
    for entry in entries("faults"):
        fields, example = entry.sections.values()
        text = " ".join(f"{entry.summary} {' '.join(entry.about.split())}".split())
        rows = "\n".join(f"| `{key}` | {_cell(doc)} |" for key, doc in fields.items())
        shortest = "\n".join(f"{key}: {value}" for key, value in example.items())
        sections.append(
            f"### {entry.name}\n\n{text}\n\n| field | meaning |\n|---|---|\n{rows}\n\n```yaml\n{shortest}\n```"
        )
    return "\n\n".join(sections)


def target_table() -> str:
    """Return a table of the faults that each target can perform, with the reasons below it."""
    faults = with_targets(entries("faults"))
    targets = list(faults[0].columns)
    rows = [f"| `{entry.name}` | {' | '.join(entry.columns.values())} |" for entry in faults]
    head = [f"| fault | {' | '.join(targets)} |", "|---" * (1 + len(targets)) + "|"]
    reasons = [
        f"- `{entry.name}`, {target}: {_cell(reason.partition('; ')[2].replace(f'{entry.name}: ', ''))}"
        for entry in faults
        for target, reason in entry.sections["targets"].items()
        if entry.columns[target] != "yes"
    ]
    return "\n".join([*head, *rows, "", *reasons])


def _cell(text: str) -> str:
    for heading, kind in _SHARED.items():
        words, link = words_of(kind), f"[{heading.lower()}](#{heading.lower().replace(' ', '-')})"
        text = text.replace(f"One or a list, each: {words[0].lower()}{words[1:]}.", f"One or a list: {link}.")
        text = text.replace(f"{words}.", f"See {link}.")
    return text.replace("|", "\\|")

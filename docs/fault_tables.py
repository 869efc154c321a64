"""The fault catalogue as Markdown, from the faults themselves."""

from harrow.cli.render.catalogue import entries


def fault_tables() -> str:
    """Return a section for each fault: what it does, its fields, the shortest way to write it."""
    sections = []
    for entry in entries("faults"):
        fields, example = entry.parts.values()
        text = " ".join(f"{entry.summary} {' '.join(entry.about.split())}".split())
        rows = "\n".join(f"| `{key}` | {_cell(doc)} |" for key, doc in fields.items())
        shortest = "\n".join(f"{key}: {value}" for key, value in example.items())
        sections.append(
            f"### {entry.name}\n\n{text}\n\n| field | what it is |\n|---|---|\n{rows}\n\n```yaml\n{shortest}\n```"
        )
    return "\n\n".join(sections)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")

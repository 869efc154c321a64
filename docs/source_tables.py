"""Writes where the model's rules come from as Markdown: from docstrings and switches."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from harrow.cluster_model.release.profiles import RELEASES, SWITCHES

_MODEL: Final = Path(__file__).parents[1] / "cluster_model"
_SOURCE: Final = re.compile(
    r"\b[A-Z]\w+(?:\.(?:scala|java)|\.\w+(?:ToBrokers|Changes))|\bPartitionStateStore\b"
)


def source_table() -> str:
    """Return the classes of Kafka that each module of the model follows, from its docstring."""
    rows = ["| module | follows |", "|---|---|"]
    for path in sorted(_MODEL.rglob("*.py")):
        named = ", ".join(f"`{name}`" for name in dict.fromkeys(_sources_named_in(path)))
        if named:
            rows.append(f"| `{path.relative_to(_MODEL)}` | {named} |")
    return "\n".join(rows)


def _sources_named_in(path: Path) -> Iterator[str]:
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    yield from _SOURCE.findall(doc)


def behaviour_table() -> str:
    """Return each switch with its source and its value in each release."""
    names = list(RELEASES)
    rows = [f"| switch | source | {' | '.join(names)} |", f"|---|---|{'---|' * len(names)}"]
    for name, switch in SWITCHES.items():
        cells = " | ".join(_value(switch.value_in(release)) for release in names)
        rows.append(f"| `{name}` | {switch.source} | {cells} |")
    return "\n".join(rows)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value).replace("_", " ")

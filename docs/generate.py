"""Puts generated tables into the pages of docs/: ``make docs``.

A table stands between ``<!-- table: NAME -->`` and ``<!-- end of table -->``. ``python -m
docs.generate behaviours mutants`` generates only these two tables. The table ``library`` takes a
thousand runs; all others together take two seconds.
"""

import re
import sys
from collections.abc import Collection
from pathlib import Path

import pyarrow as pa

from docs.axis_tables import axis_table, harm_table
from docs.event_tables import event_table
from docs.fault_tables import fault_tables, target_table
from docs.glossary_tables import term_table, ticket_table
from docs.library_tables import fault_model_table, library_table
from docs.promise_tables import anomaly_table, no_remedy_table, promise_table
from docs.schema_tables import key_tables
from docs.served_tables import served_table
from docs.source_tables import behaviour_table, source_table
from harrow.campaigns.sweep.row_table import COLUMNS
from harrow.cluster_model.release.profiles import MUTANTS


def mutant_table() -> str:
    """Return the mutants: the flaw of each, its source, and the rules that notice it."""
    rows = ["| mutant | flaw | source | noticed by |", "|---|---|---|---|"]
    for mutant in MUTANTS.values():
        noticed = ", ".join(mutant.noticed_by) or "expectations"
        rows.append(f"| `{mutant.name}` | {mutant.doc} | {mutant.source} | {noticed} |")
    return "\n".join(rows)


def column_table() -> str:
    """Return the columns of a sweep's files."""
    rows = ["| column | type | meaning |", "|---|---|---|"]
    rows += [f"| `{name}` | {_type_text(kind)} | {doc} |" for name, (kind, doc) in COLUMNS.items()]
    return "\n".join(rows)


def _type_text(kind: pa.DataType) -> str:
    """Return an Arrow type in words."""
    if pa.types.is_map(kind):
        return f"map of {_type_text(kind.item_type)} by {_type_text(kind.key_type)}"
    if pa.types.is_list(kind):
        return f"list of {_type_text(kind.value_type)}"
    if pa.types.is_struct(kind):
        return f"({', '.join(kind.field(index).name for index in range(kind.num_fields))})"
    return str(kind)


TABLES = {
    "anomalies": anomaly_table,
    "axes": axis_table,
    "behaviours": behaviour_table,
    "columns": column_table,
    "events": event_table,
    "faults": fault_tables,
    "fault_targets": target_table,
    "fault_models": fault_model_table,
    "harms": harm_table,
    "keys": key_tables,
    "library": library_table,
    "mutants": mutant_table,
    "no_remedy": no_remedy_table,
    "promises": promise_table,
    "served": served_table,
    "sources": source_table,
    "terms": term_table,
    "tickets": ticket_table,
}
_TABLE_BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def with_tables(text: str, names: Collection[str] = TABLES) -> str:
    """Return a page in which the tables with these names are regenerated."""

    def regenerate(match: re.Match[str]) -> str:
        return f"{match[1]}{TABLES[match[2]]()}\n{match[3]}" if match[2] in names else match[0]

    return _TABLE_BLOCK.sub(regenerate, text)


def main(*names: str) -> None:
    """Rewrite every page whose tables have changed."""
    unknown = sorted(set(names).difference(TABLES))
    if unknown:
        sys.exit(f"no such table: {', '.join(unknown)}; there are {', '.join(TABLES)}")
    for page in sorted(Path(__file__).parent.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        changed = with_tables(text, names or TABLES)
        if changed != text:
            page.write_text(changed, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

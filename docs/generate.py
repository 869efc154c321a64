"""Puts the tables that come from the code into the pages of docs/: ``make docs``.

A table stands between ``<!-- table: NAME -->`` and ``<!-- end of table -->``.
"""

import re
from pathlib import Path

from checks.promise_table import anomaly_table, promise_table
from cluster_model.mutants import MUTANTS


def mutant_table() -> str:
    """Return the zoo as Markdown: what is wrong, who says so, who notices."""
    rows = ["| mutant | what is wrong | source | noticed by |", "|---|---|---|---|"]
    for mutant in MUTANTS.values():
        noticed = ", ".join(mutant.noticed_by) or "expectations"
        rows.append(f"| `{mutant.name}` | {mutant.doc} | {mutant.source} | {noticed} |")
    return "\n".join(rows)


TABLES = {"anomalies": anomaly_table, "mutants": mutant_table, "promises": promise_table}
_PLACE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def with_tables(text: str) -> str:
    """Return a page with its tables as they are now."""
    return _PLACE.sub(lambda place: f"{place[1]}{TABLES[place[2]]()}\n{place[3]}", text)


def main() -> None:
    """Write the pages anew."""
    for page in sorted(Path(__file__).parent.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if with_tables(text) != text:
            page.write_text(with_tables(text), encoding="utf-8")


if __name__ == "__main__":
    main()

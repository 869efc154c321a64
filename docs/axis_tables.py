"""Writes the settings that `harrow advise` may change as Markdown, from their declarations."""

from harrow.campaigns.advise.axes import AXES
from harrow.campaigns.advise.axis import Axis, value_words
from harrow.campaigns.advise.harm import KINDS


def axis_table() -> str:
    """Return the axes: their values, what they cost, and what they guard against."""
    rows = ["| setting | values, cheap to dear | a dear value | costs | guards against | leads to | from |"]
    rows.append("|---" * 7 + "|")
    for axis in AXES.values():
        cells = (
            f"`{axis.name}`",
            _values(axis),
            axis.meaning,
            "" if axis.cost == "none" else axis.cost,
            ", ".join(axis.protects),
            ", ".join(axis.exposes),
            "" if axis.since == "0.10.2" else axis.since,
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def harm_table() -> str:
    """Return the kinds of harm."""
    rows = ["| harm | what it is |", "|---|---|"]
    return "\n".join([*rows, *(f"| `{kind}` | {meaning} |" for kind, meaning in KINDS.items())])


def _values(axis: Axis) -> str:
    values = [value_words(value) for value in axis.values]
    return ", ".join(["yours", *values] if axis.only_dearer or len(values) == 1 else values)

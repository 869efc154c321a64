"""Groups of a sweep's cells: those with equal values of some keys, whatever the others are."""

from collections.abc import Sequence
from typing import Any, Final

from harrow.campaigns.language.spelling import quoted, suggestion
from harrow.campaigns.sweep.cell import Cell
from harrow.campaigns.sweep.definition import VaryError
from harrow.campaigns.sweep.queries import Answer

_VARIANT: Final = "variant"
_CAMPAIGN: Final = "campaign"
_KAFKA: Final = "kafka"
_ALL: Final = "all"


class Grouping:
    """The group of each cell. Cells of different campaigns are never in the same group.

    Every cell has a release, even if the sweep does not vary it.

    Raises:
        VaryError: No cell has one of the keys.

    """

    def __init__(self, cells: Sequence[Cell], keys: Sequence[str]) -> None:
        known = list(
            dict.fromkeys([_CAMPAIGN, _VARIANT, _KAFKA, *(key for cell in cells for key, _ in cell.settings)])
        )
        for key in keys:
            if key not in known:
                hint = suggestion(key, known)
                raise VaryError(f"--by {quoted(key)}: no cell has this key{hint}")
        self._names: dict[tuple[str, str], str] = {}
        self._groups: dict[tuple[str, str], dict[str, Any]] = {}
        for cell in cells:
            every = {_KAFKA: cell.plan.kafka, **dict(cell.settings)}
            settings = {key: value for key, value in every.items() if key in keys}
            variant = cell.variant if _VARIANT in keys else ""
            parts = [variant, *(f"{key}={value}" for key, value in settings.items())]
            name = " ".join(filter(None, parts)) or _ALL
            self._names[cell.campaign, cell.name] = name
            self._groups[cell.campaign, name] = {
                "campaign": cell.campaign,
                "cell": name,
                "variant": variant,
                "settings": settings,
            }

    def merged(self, rows: Answer, keys: int, *, cell: int = 1, maxima: int = 0) -> Answer:
        """Return one row for each group in place of the rows of its cells.

        The first *keys* columns identify a row; the campaign comes first, and the cell has the
        index *cell*. The last *maxima* columns become their maximum, and those between their sum.
        """
        groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
        for row in rows:
            key = (*row[:cell], self._names[row[0], row[cell]], *row[cell + 1 : keys])
            groups.setdefault(key, []).append(row[keys:])
        merged = []
        for key, values in sorted(groups.items()):
            columns = list(zip(*values, strict=True))
            sums = len(columns) - maxima
            highest = (
                max((each for each in column if each is not None), default=None) for column in columns[sums:]
            )
            merged.append((*key, *map(sum, columns[:sums]), *highest))
        return merged

    def as_cells(self) -> list[dict[str, Any]]:
        """Return the groups in the form of the cells in ``sweep.json``."""
        return list(self._groups.values())

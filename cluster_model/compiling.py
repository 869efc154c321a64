"""The mypyc attributes of a class, which do nothing in plain Python and need no library."""

# Plain Python: it tells mypyc what plain Python needs no word for.

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr
else:

    def mypyc_attr(**_):  # noqa: ANN003, ANN201 - mypy_extensions has the types
        """Return a decorator that leaves a class as it is."""
        return lambda kind: kind


__all__ = ["mypyc_attr"]

"""Provides the annotations that mypyc understands. They have no effect in plain Python."""

# Plain Python: it defines stand-ins for `i64` and `mypyc_attr` of `mypy_extensions`, names that
# mypyc treats specially.

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_extensions import i64, mypyc_attr
else:
    i64 = int

    def mypyc_attr(**_):  # noqa: ANN003, ANN201 - mypy_extensions has the types
        """Return a decorator that returns the class unchanged."""
        return lambda kind: kind


__all__ = ["i64", "mypyc_attr"]

"""The optional libraries, and the extra that installs each."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

EXTRAS: Final = {
    "hypothesis": ("hypothesis",),
    "sweep": ("duckdb", "numpy", "pyarrow"),
    "spark": ("pandas", "pyspark"),
    "connect": ("grpc",),
    "live": ("confluent_kafka", "kafka", "kazoo"),
}
"""The modules that each extra of pyproject.toml installs itself."""

INCLUDED: Final = {"spark": "sweep", "connect": "spark"}
"""The extra that another one includes."""

PACKAGES: Final = {"confluent_kafka": "confluent-kafka", "grpc": "grpcio", "kafka": "kafka-python"}
"""The package of each module with another name."""


class MissingExtraError(ModuleNotFoundError):
    """A module of some *extras* is missing."""

    def __init__(self, module: str, extras: Sequence[str]) -> None:
        super().__init__(f"No module named {module!r}", name=module)
        self.extras = extras


def need(*extras: str) -> None:
    """Raise `MissingExtraError` if a module of the extras is missing, before any work is lost."""
    for module in (module for extra in extras for module in _modules_of(extra)):
        if find_spec(module) is None:
            raise MissingExtraError(module, extras)


def _modules_of(extra: str) -> tuple[str, ...]:
    included = INCLUDED.get(extra)
    return (*(_modules_of(included) if included else ()), *EXTRAS[extra])


def advice_on(error: ImportError) -> str | None:
    """Return what to install for a failed import; None if no extra would help."""
    module = (error.name or "").partition(".")[0]
    if isinstance(error, MissingExtraError):
        extras = error.extras
    else:
        extras = [extra for extra, modules in EXTRAS.items() if module in modules][:1]
    if not extras:
        return None
    return f"{PACKAGES.get(module, module)} is not installed: pip install 'kafka-harrow[{','.join(extras)}]'"

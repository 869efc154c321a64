"""The optional libraries, and the extra that installs each."""

from importlib.util import find_spec
from typing import Final

EXTRAS: Final = {
    "hypothesis": ("hypothesis",),
    "sweep": ("duckdb", "numpy", "pyarrow"),
    "spark": ("pandas", "pyspark"),
    "connect": ("grpc",),
    "live": ("confluent_kafka", "kafka", "kazoo"),
}
"""The modules that each extra of pyproject.toml installs."""

PACKAGES: Final = {"confluent_kafka": "confluent-kafka", "grpc": "grpcio", "kafka": "kafka-python"}
"""The package of each module with another name."""


def need(extra: str) -> None:
    """Raise `ModuleNotFoundError` if a module of an extra is missing, before any work is lost."""
    for module in EXTRAS[extra]:
        if find_spec(module) is None:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)


def advice_on(error: ImportError) -> str | None:
    """Return what to install for a failed import; None if no extra would help."""
    module = (error.name or "").partition(".")[0]
    extra = next((extra for extra, modules in EXTRAS.items() if module in modules), None)
    if extra is None:
        return None
    return f"{PACKAGES.get(module, module)} is not installed: pip install 'kafka-harrow[{extra}]'"

"""How the ends of a link are named: a broker's id, a client's name, or ``zookeeper``."""

from collections.abc import Iterable


def process_name(endpoint: int | str) -> str:
    """Return the name of the process at an end of a link."""
    return f"broker-{endpoint}" if isinstance(endpoint, int) else endpoint


def process_names(endpoints: Iterable[int | str]) -> frozenset[str]:
    """Return the names of several."""
    return frozenset(process_name(endpoint) for endpoint in endpoints)

"""Writes the requests that a served cluster answers as Markdown."""

from harrow.cluster_model.release.profiles import RELEASES
from harrow.live_cluster.serve.answers.served_versions import api_name, broker_versions, known_versions


def served_table() -> str:
    """Return the versions of each request that harrow knows, and those of brokers by release."""
    names = list(RELEASES)
    rows = [f"| request | harrow | {' | '.join(names)} |", f"|---|---|{'---|' * len(names)}"]
    known = {api_name(key): versions for key, versions in known_versions().items()}
    supported = dict.fromkeys(name for versions in broker_versions().values() for name in versions)
    for name in sorted(supported, key=lambda name: (name not in known, name)):
        cells = (_range(broker_versions()[release].get(name)) for release in names)
        rows.append(f"| {name} | {_range(known.get(name))} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _range(versions: tuple[int, int] | None) -> str:
    if versions is None:
        return ""
    low, high = versions
    return f"{low}" if low == high else f"{low}-{high}"

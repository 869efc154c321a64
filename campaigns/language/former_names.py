"""Hints for settings that a file cannot name: Kafka renamed them, or a campaign has its own key for them."""

from typing import Final

from harrow.cluster_model.settings import former_names

CAMPAIGN_KEYS: Final[dict[str, str]] = {
    "inter.broker.protocol.version": "kafka",
    "metadata.version": "kafka",
    "default.replication.factor": "replication_factor",
    "num.partitions": "partitions",
    "broker.rack": "rack",
}
"""Settings of Kafka that are keys of a campaign."""


def former_name_hint(name: str) -> str:
    """Return how the message about an unknown name ends; nothing for a name that was never a setting."""
    folded = name.lower()
    if folded in former_names():
        return f"; today it is `{former_names()[folded]}`"
    if folded in CAMPAIGN_KEYS:
        return f"; a campaign says `{CAMPAIGN_KEYS[folded]}`"
    return ""

"""Names of settings that Kafka has given up, or never had although its own messages use them, and what to write today."""

from typing import Final

FORMER_NAMES: Final[dict[str, str]] = {
    # Producers of 0.8
    "request.required.acks": "acks",
    "message.send.max.retries": "retries",
    "queue.buffering.max.ms": "linger.ms",
    "batch.num.messages": "batch.size",
    "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
    # Producers of 0.9 and 0.10
    "timeout.ms": "request.timeout.ms",
    "block.on.buffer.full": "max.block.ms",
    "metadata.fetch.timeout.ms": "max.block.ms",
    # Consumers of 0.8
    "auto.commit.enable": "enable.auto.commit",
    "autocommit.enable": "enable.auto.commit",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    # Brokers of 0.7 and 0.8
    "log.file.size": "log.segment.bytes",
    "log.flush.interval": "log.flush.interval.messages",
    "log.default.flush.interval.ms": "log.flush.interval.ms",
    "log.default.flush.scheduler.interval.ms": "log.flush.scheduler.interval.ms",
    "log.cleanup.interval.mins": "log.retention.check.interval.ms",
    # Kafka's message about INVALID_TRANSACTION_TIMEOUT says so
    "max.transaction.timeout.ms": "transaction.max.timeout.ms",
    # The first drafts of KRaft, up to 2.7
    "quorum.election.timeout.ms": "controller.quorum.election.timeout.ms",
    "quorum.fetch.timeout.ms": "controller.quorum.fetch.timeout.ms",
}
"""Each former name of a setting, and the setting that took its place."""

CAMPAIGN_KEYS: Final[dict[str, str]] = {
    "inter.broker.protocol.version": "kafka",
    "metadata.version": "kafka",
    "default.replication.factor": "replication_factor",
    "num.partitions": "partitions",
    "broker.rack": "rack",
}
"""Settings for which a campaign has a key."""


def former_name_hint(name: str) -> str:
    """Return how a message about an unknown name ends that was once a setting; nothing for any other name."""
    folded = name.lower()
    if folded in FORMER_NAMES:
        return f"; today it is `{FORMER_NAMES[folded]}`"
    if folded in CAMPAIGN_KEYS:
        return f"; a campaign says `{CAMPAIGN_KEYS[folded]}`"
    return ""

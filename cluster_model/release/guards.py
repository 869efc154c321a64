"""Groups the rules and causes that several switches name in their ``guards`` (`Switch.guards`)."""

from typing import Final

# Each name is a rule, an invariant or a kind of cause.
LEADERS: Final = ("two-leaders", "one-controller-per-epoch")
QUORUM: Final = ("one-controller-per-epoch", "committed-metadata-kept")
SNAPSHOTS: Final = ("committed-metadata-kept", "metadata-snapshot-committed")
LOGS: Final = (
    *("lost-write", "unseen", "inconsistent-offsets", "log-divergence", "nonmonotonic-send", "duplicate"),
    *("offset-regression", "unavailable", "isr-holds-committed", "log-matching"),
    *("hw-monotonic", "hw-within-log", "epoch-cache-monotonic", "producer-state-matches-log"),
    *("checkpoint-within-log", "shutdown-flushes-logs"),
    *("committed-record-lost", "acked-by-deposed-leader", "acked-before-commit"),
)
SEQUENCES: Final = ("inconsistent-offsets", "nonmonotonic-send", "duplicate", "producer-state-matches-log")
COMPACTION: Final = (
    *("superseded-by-lost-record", "compacted-without-later-record"),
    "tombstone-removed-too-early",
)
READS: Final = ("read-above-hw", "unseen", "inconsistent-offsets")
GROUPS: Final = ("rebalance-skip", "lost-effect", "doubled-effect", "offset-regression")
COMMITS: Final = ("offset-regression", "old-generation-committed")
TRANSACTIONS: Final = (
    *("read-above-lso", "fenced-write", "lso-stands-still", "hanging-transaction", "unasked-commit"),
    *("torn-transaction", "G1a", "aborted-although-acked"),
)

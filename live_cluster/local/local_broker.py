"""A broker on this machine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from harrow.cluster_model.settings import Value
from harrow.live_cluster.local.java_program import JavaPrograms
from harrow.live_cluster.local.local_node import LocalNode

INTERNAL_PARTITIONS: Final[dict[str, Value]] = {
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
}
"""How many partitions coordinators have, where the campaign does not say."""
SMALL: Final = {
    **INTERNAL_PARTITIONS,
    "log.cleaner.dedupe.buffer.size": 4_194_304,
    "auto.create.topics.enable": False,
}
"""What brokers of a campaign have that its file does not say: next to nothing is stored beside its topics."""


class LocalBroker(LocalNode):
    """A broker: its folder stays, its process comes and goes. *settings* are all that it has, by Kafka's names."""

    def __init__(
        self,
        programs: JavaPrograms,
        broker: int,
        folder: Path,
        settings: Mapping[str, object],
        log_dirs: int = 1,
    ) -> None:
        super().__init__(programs, broker, folder, {**SMALL, **settings}, log_dirs)

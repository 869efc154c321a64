"""The ends of a controller's terms, from its log: the control plane shows only their beginnings."""

import re
from typing import Final

_KAFKA_CONTROLLER: Final = r".*\(kafka\.controller\.KafkaController\)"
# KafkaController.incrementControllerEpoch up to 2.1, elect since.
_BEGINS: Final = re.compile(
    rf"(?:[Ii]ncremented epoch|Epoch incremented) to (?P<epoch>\d+){_KAFKA_CONTROLLER}"
)
# KafkaController.onControllerResignation: "Broker 2 resigned as the controller" up to 0.11,
# "Resigned" since.
_ENDS: Final = re.compile(rf"(?:Broker \d+ resigned as the controller|\] Resigned ){_KAFKA_CONTROLLER}")
# QuorumController.QuorumMetaLogListener.handleLeaderChange; handleEventException if an event
# notices first.
_RENOUNCES: Final = re.compile(
    r"Renouncing the leadership.* We were the leader at epoch (?P<epoch>\d+)"
    r"|at epoch (?P<met_at>\d+) in .*Renouncing leadership"
)
# KafkaServer.startup. A killed process has not resigned, but its term is over.
STARTS: Final = re.compile(r" starting \(kafka\.server\.KafkaServer\)")


class ControllerTerms:
    """Reads the terms of one node line by line.

    Up to 2.1 every broker logs a resignation when its session expires or it stops, later only when
    it stops. It counts only if the broker was controller. A KRaft controller also logs the epoch.
    """

    def __init__(self) -> None:
        self._controller_epoch: int | None = None
        self._resignations: list[int] = []

    def read(self, line: str) -> None:
        if (renounces := _RENOUNCES.search(line)) is not None:
            self._resignations.append(int(renounces["epoch"] or renounces["met_at"]))
        elif (begins := _BEGINS.search(line)) is not None:
            self._controller_epoch = int(begins["epoch"])
        elif STARTS.search(line) is not None:
            self._controller_epoch = None
        elif self._controller_epoch is not None and _ENDS.search(line) is not None:
            self._resignations.append(self._controller_epoch)
            self._controller_epoch = None

    def resignations(self) -> list[int]:
        """Return the controller epochs from which the node has resigned since the last call."""
        resignations, self._resignations = self._resignations, []
        return resignations

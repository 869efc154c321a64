"""Finds a controller's terms in its log."""

import re
from typing import Final

_KAFKA_CONTROLLER: Final = r".*\(kafka\.controller\.KafkaController\)"
# Logged by KafkaController.incrementControllerEpoch up to 2.1, and by elect since 2.2.
_TERM_START: Final = re.compile(
    rf"(?:[Ii]ncremented epoch|Epoch incremented) to (?P<epoch>\d+){_KAFKA_CONTROLLER}"
)
# KafkaController.onControllerResignation logs "Broker 2 resigned as the controller" up to 0.11, and
# "Resigned" since 1.0.
_TERM_END: Final = re.compile(rf"(?:Broker \d+ resigned as the controller|\] Resigned ){_KAFKA_CONTROLLER}")
# Logged by QuorumController.QuorumMetaLogListener.handleLeaderChange. A voter leads the quorum
# before it is the active controller, because it reads all records first.
_KRAFT_TERM_START: Final = re.compile(
    r"(?:Becoming the active controller at epoch|are still the leader in the new epoch) (?P<epoch>\d+)"
)
# Logged by QuorumController.QuorumMetaLogListener.handleLeaderChange, or by handleEventException if
# an event fails first because the controller no longer leads.
_KRAFT_TERM_END: Final = re.compile(
    r"Renouncing the leadership.* We were the leader at epoch (?P<epoch>\d+)"
    r"|at epoch (?P<met_at>\d+) in .*Renouncing leadership"
)
# Logged by KafkaServer.startup. A killed process has not resigned, but its term is over.
BROKER_START: Final = re.compile(r" starting \(kafka\.server\.KafkaServer\)")


class ControllerTerms:
    """Reads the terms of one node line by line.

    Up to 2.1 every broker logs a resignation when its session expires or the broker stops, later
    only when it stops. A resignation counts only if the broker was the controller. A KRaft
    controller also logs the epoch from which it resigns.
    """

    def __init__(self) -> None:
        self._controller_epoch: int | None = None
        self._resignations: list[int] = []

    def read(self, line: str) -> None:
        if (renounces := _KRAFT_TERM_END.search(line)) is not None:
            self._resignations.append(int(renounces["epoch"] or renounces["met_at"]))
            self._controller_epoch = None
        elif (begins := _TERM_START.search(line) or _KRAFT_TERM_START.search(line)) is not None:
            self._controller_epoch = int(begins["epoch"])
        elif BROKER_START.search(line) is not None:
            self._controller_epoch = None
        elif self._controller_epoch is not None and _TERM_END.search(line) is not None:
            self._resignations.append(self._controller_epoch)
            self._controller_epoch = None

    def is_active_in(self, controller_epoch: int) -> bool:
        """Return whether the node has become the active controller in an epoch, and still is."""
        return self._controller_epoch == controller_epoch

    def resignations(self) -> list[int]:
        """Return the controller epochs from which the node has resigned since the last call."""
        resignations, self._resignations = self._resignations, []
        return resignations

"""From when to when a broker was controller, or a voter of KRaft led, as its log has it: the control plane tells who begins, not who has noticed that it is over."""

import re
from typing import Final

_KAFKA_CONTROLLER: Final = r".*\(kafka\.controller\.KafkaController\)"
# KafkaController.incrementControllerEpoch up to 2.1, elect since.
_BEGINS: Final = re.compile(
    rf"(?:[Ii]ncremented epoch|Epoch incremented) to (?P<epoch>\d+){_KAFKA_CONTROLLER}"
)
# KafkaController.onControllerResignation: "Broker 2 resigned as the controller" up to 0.11, "Resigned" since.
_ENDS: Final = re.compile(rf"(?:Broker \d+ resigned as the controller|\] Resigned ){_KAFKA_CONTROLLER}")
# QuorumController.QuorumMetaLogListener.handleLeaderChange, of KRaft; or handleEventException, where an event has met it first.
_RENOUNCES: Final = re.compile(
    r"Renouncing the leadership.* We were the leader at epoch (?P<epoch>\d+)"
    r"|at epoch (?P<met_at>\d+) in .*Renouncing leadership"
)
# KafkaServer.startup. A process that was killed has not resigned, and what it was is over.
STARTS: Final = re.compile(r" starting \(kafka\.server\.KafkaServer\)")


class ControllerTerms:
    """The terms of one node, read line by line.

    Up to 2.1 a broker says that it has resigned whenever its session expires or it stops, later still where it stops: it
    counts where it was controller. One of KRaft says from which epoch.
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
        """Return the controller epochs that it has resigned from since this was asked last."""
        resignations, self._resignations = self._resignations, []
        return resignations

"""What brokers ask of a controller, as it passes the proxies: ISRs that they wait for, and heartbeats."""

from typing import Final

from harrow.live_cluster.links.frame import RequestHeader
from harrow.live_cluster.links.proxy import ProxiedLink

_ALTER_PARTITION: Final = 56
_BROKER_HEARTBEAT: Final = 63


class ControlRequests:
    """The AlterPartition requests that are not answered yet, and the heartbeats that are (`harrow.live_cluster.links.proxy.Passing`)."""

    def __init__(self) -> None:
        self._asked: set[tuple[int, int]] = set()
        self._heartbeats: dict[tuple[int, int], int] = {}
        self.heartbeats_sent = 0
        """How many heartbeats there were."""
        self.heartbeat_answered = 0
        """The number of the last that has been answered."""

    def are_under_way(self) -> bool:
        """Return whether somebody waits for an ISR to be written (KIP-497)."""
        return bool(self._asked)

    def request_passed(self, link: ProxiedLink, header: RequestHeader, frame: bytes) -> None:
        asked = (link.number, header.correlation_id)
        if header.api_key == _ALTER_PARTITION:
            self._asked.add(asked)
        elif header.api_key == _BROKER_HEARTBEAT:
            self.heartbeats_sent += 1
            self._heartbeats[asked] = self.heartbeats_sent

    def answer_passed(self, link: ProxiedLink, header: RequestHeader, frame: bytes) -> None:
        asked = (link.number, header.correlation_id)
        self._asked.discard(asked)
        if asked in self._heartbeats:
            self.heartbeat_answered = max(self.heartbeat_answered, self._heartbeats.pop(asked))

    def unreadable(self, link: ProxiedLink, header: RequestHeader, error: Exception) -> None:
        """Do nothing: of a message nothing but its header is read."""

    def link_ended(self, link: ProxiedLink) -> None:
        self._asked = {asked for asked in self._asked if asked[0] != link.number}
        self._heartbeats = {asked: at for asked, at in self._heartbeats.items() if asked[0] != link.number}

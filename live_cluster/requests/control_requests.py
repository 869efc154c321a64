"""Observes AlterPartition requests and heartbeats of brokers, as they pass the proxies."""

from typing import Final

from harrow.live_cluster.links.frame import RequestHeader
from harrow.live_cluster.links.proxy import MessageObserver, ProxiedLink

_ALTER_PARTITION: Final = 56
_BROKER_HEARTBEAT: Final = 63


class ControlRequests(MessageObserver):
    """Follows which AlterPartition requests are pending, and which heartbeats are answered."""

    def __init__(self) -> None:
        self._pending: set[tuple[int, int]] = set()
        self._heartbeats: dict[tuple[int, int], int] = {}
        self.heartbeats_sent = 0
        self.heartbeat_answered = 0
        """The number of the last heartbeat that was answered."""

    def are_pending(self) -> bool:
        """Return whether a leader waits for a change of an ISR (KIP-497)."""
        return bool(self._pending)

    def request_passed(self, link: ProxiedLink, header: RequestHeader, frame: bytes) -> None:
        request = (link.number, header.correlation_id)
        if header.api_key == _ALTER_PARTITION:
            self._pending.add(request)
        elif header.api_key == _BROKER_HEARTBEAT:
            self.heartbeats_sent += 1
            self._heartbeats[request] = self.heartbeats_sent

    def answer_passed(self, link: ProxiedLink, header: RequestHeader, frame: bytes) -> None:
        request = (link.number, header.correlation_id)
        self._pending.discard(request)
        if request in self._heartbeats:
            self.heartbeat_answered = max(self.heartbeat_answered, self._heartbeats.pop(request))

    def link_ended(self, link: ProxiedLink) -> None:
        self._pending = {request for request in self._pending if request[0] != link.number}
        for request in [request for request in self._heartbeats if request[0] == link.number]:
            del self._heartbeats[request]

"""Tracks brokers' last heartbeats, as active controller (``BrokerHeartbeatManager.java``)."""

from typing import Final

NO_OFFSET: Final = -1
"""Before a broker has reported its metadata offset."""


class BrokerHeartbeats:
    """The sessions of brokers during one controller's term. A new controller starts without any."""

    __slots__ = ("_contact_us", "_heartbeat_us", "_offsets", "_shutdowns", "session_timeout_us")

    def __init__(self, session_timeout_us: int) -> None:
        self.session_timeout_us = session_timeout_us
        # Unfenced brokers, the oldest heartbeat first.
        self._heartbeat_us: dict[int, int] = {}
        # All brokers, fenced or not (BrokerHeartbeatTracker.java).
        self._contact_us: dict[int, int] = {}
        self._offsets: dict[int, int] = {}
        self._shutdowns: dict[int, int] = {}

    def next_expiry_us(self, now_us: int) -> int:
        """Return the earliest time at which a session can expire."""
        oldest_us = next(iter(self._heartbeat_us.values()), now_us)
        return max(oldest_us, now_us - self.session_timeout_us + 1) + self.session_timeout_us

    def touch(self, broker: int, now_us: int, metadata_offset: int | None = NO_OFFSET) -> None:
        """Record a heartbeat and the broker's metadata offset, or None for a fenced broker."""
        self.forget_session(broker)
        self._contact_us[broker] = now_us
        if metadata_offset is not None:
            self._heartbeat_us[broker] = now_us
            self._offsets[broker] = metadata_offset

    def forget_session(self, broker: int) -> None:
        self._heartbeat_us.pop(broker, None)

    def forget(self, broker: int) -> None:
        """Drop the state of a broker that is now fenced."""
        self.forget_session(broker)
        self._offsets.pop(broker, None)
        self._shutdowns.pop(broker, None)

    def has_session(self, broker: int, now_us: int) -> bool:
        heartbeat_us = self._heartbeat_us.get(broker)
        return heartbeat_us is not None and now_us - heartbeat_us < self.session_timeout_us

    def had_contact(self, broker: int, now_us: int) -> bool:
        """Return whether a broker has a session, under the rule that fencing ends no session."""
        contact_us = self._contact_us.get(broker)
        return contact_us is not None and now_us - contact_us < self.session_timeout_us

    def reset(self, broker: int) -> None:
        """Drop all state of a broker, because another process registers with its id."""
        self.forget(broker)
        self._contact_us.pop(broker, None)

    def expired_brokers(self, now_us: int) -> tuple[int, ...]:
        """Return the brokers whose sessions have expired, the oldest heartbeat first."""
        expired = []
        for broker, heartbeat_us in self._heartbeat_us.items():
            if now_us - heartbeat_us < self.session_timeout_us:
                break
            expired.append(broker)
        return tuple(expired)

    # Controlled shutdown

    def begin_shutdown(self, broker: int, offset: int) -> None:
        """Record the metadata offset that all other brokers must reach before a broker stops."""
        self._shutdowns.setdefault(broker, offset)

    def shutdown_offset(self, broker: int) -> int | None:
        return self._shutdowns.get(broker)

    def lowest_offset(self, broker: int, metadata_offset: int) -> int:
        """Return the lowest metadata offset of the other live brokers that do not shut down."""
        others = (
            offset
            for other, offset in self._offsets.items()
            if other != broker and other in self._heartbeat_us and other not in self._shutdowns
        )
        return min(others, default=metadata_offset)

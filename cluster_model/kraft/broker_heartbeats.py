"""Tracks the last heartbeats of brokers on a controller (``BrokerHeartbeatManager.java``)."""

from typing import Final

NO_OFFSET: Final = -1
"""The metadata offset of a broker that has not reported one."""


class BrokerHeartbeats:
    """The sessions of brokers with one active controller.

    The next controller starts new sessions.
    """

    __slots__ = ("_contact_us", "_heartbeat_us", "_offsets", "_shutdowns", "session_timeout_us")

    def __init__(self, session_timeout_us: int) -> None:
        self.session_timeout_us = session_timeout_us
        # The last heartbeat of each unfenced broker, the oldest first.
        self._heartbeat_us: dict[int, int] = {}
        # The last heartbeat of each broker, fenced or not (BrokerHeartbeatTracker.java).
        self._contact_us: dict[int, int] = {}
        self._offsets: dict[int, int] = {}
        self._shutdowns: dict[int, int] = {}

    def next_expiry_us(self, now_us: int) -> int:
        """Return the earliest time, after *now_us*, at which a session can expire."""
        oldest_us = next(iter(self._heartbeat_us.values()), now_us)
        return max(oldest_us, now_us - self.session_timeout_us + 1) + self.session_timeout_us

    def touch(self, broker: int, now_us: int, metadata_offset: int | None = NO_OFFSET) -> None:
        """Note a heartbeat with the broker's metadata offset. For a fenced broker that is None."""
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
        """Return whether a broker has a session, in releases where fencing ends no session."""
        contact_us = self._contact_us.get(broker)
        return contact_us is not None and now_us - contact_us < self.session_timeout_us

    def reset(self, broker: int) -> None:
        """Drop all state of a broker, because a new process registers with its id."""
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
        """Note the metadata offset that all other brokers must reach before *broker* may stop."""
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

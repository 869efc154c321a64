"""When brokers were last heard of, as the active controller knows (``BrokerHeartbeatManager.java``)."""

from typing import Final

NO_OFFSET: Final = -1
"""Where nothing is known of what metadata a broker has."""


class BrokerHeartbeats:
    """The sessions of one controller's term. One that takes over has heard of no broker yet."""

    __slots__ = ("_contact_us", "_heard_us", "_offsets", "_shutdowns", "session_timeout_us")

    def __init__(self, session_timeout_us: int) -> None:
        self.session_timeout_us = session_timeout_us
        # Of brokers that are not fenced, the one heard of longest ago first.
        self._heard_us: dict[int, int] = {}
        # Of all brokers, fenced or not (BrokerHeartbeatTracker.java).
        self._contact_us: dict[int, int] = {}
        self._offsets: dict[int, int] = {}
        self._shutdowns: dict[int, int] = {}

    def next_expiry_us(self, now_us: int) -> int:
        """Return when the next session may be over."""
        heard_us = next(iter(self._heard_us.values()), now_us)
        return max(heard_us, now_us - self.session_timeout_us + 1) + self.session_timeout_us

    def touch(self, broker: int, now_us: int, metadata_offset: int | None = NO_OFFSET) -> None:
        """Note a heartbeat, with the offset up to which the broker knows the metadata; None of one that is fenced."""
        self.forget_session(broker)
        self._contact_us[broker] = now_us
        if metadata_offset is not None:
            self._heard_us[broker] = now_us
            self._offsets[broker] = metadata_offset

    def forget_session(self, broker: int) -> None:
        self._heard_us.pop(broker, None)

    def forget(self, broker: int) -> None:
        """Note that a broker is fenced."""
        self.forget_session(broker)
        self._offsets.pop(broker, None)
        self._shutdowns.pop(broker, None)

    def has_session(self, broker: int, now_us: int) -> bool:
        heard_us = self._heard_us.get(broker)
        return heard_us is not None and now_us - heard_us < self.session_timeout_us

    def had_contact(self, broker: int, now_us: int) -> bool:
        """Return whether a session that fencing does not end would go on."""
        contact_us = self._contact_us.get(broker)
        return contact_us is not None and now_us - contact_us < self.session_timeout_us

    def is_new(self, broker: int) -> None:
        """Note that another process registers as a broker."""
        self.forget(broker)
        self._contact_us.pop(broker, None)

    def stale(self, now_us: int) -> tuple[int, ...]:
        """Return the brokers whose sessions are over, the one heard of longest ago first."""
        found = []
        for broker, heard_us in self._heard_us.items():
            if now_us - heard_us < self.session_timeout_us:
                break
            found.append(broker)
        return tuple(found)

    # Controlled shutdown

    def begin_shutdown(self, broker: int, offset: int) -> None:
        """Note the offset that all must have heard of before a broker may stop."""
        self._shutdowns.setdefault(broker, offset)

    def shutdown_offset(self, broker: int) -> int | None:
        return self._shutdowns.get(broker)

    def lowest_offset(self, broker: int, metadata_offset: int) -> int:
        """Return up to where every other broker with a session, but those that stop, knows the metadata."""
        others = (
            offset
            for other, offset in self._offsets.items()
            if other != broker and other in self._heard_us and other not in self._shutdowns
        )
        return min(others, default=metadata_offset)

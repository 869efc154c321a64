"""What a promise is, and what a permission is: what a rule is registered with."""

from collections.abc import Callable
from dataclasses import dataclass

from harrow.checks.evidence import Evidence, ProducerSettings
from harrow.checks.prevention import Prevention
from harrow.checks.stated_settings import StatedSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """A setting under which Kafka never promised that an anomaly does not happen.

    ``when`` says in which case, if not in every one. ``stated`` tells from settings alone
    whether it may have been the case; never, where that takes a trace or the anomaly itself.
    ``prevented_by`` is what keeps it from happening, for findings of which nothing but the
    history is known. ``is_order``: no setting allowed it, an administrator asked for it. `demand` overrides settings, and
    not what the script of a campaign orders itself.
    """

    setting: str
    when: str = ""
    stated: Callable[[StatedSettings], bool] = lambda _: False
    prevented_by: tuple[Prevention, ...] = ()
    is_order: bool = False

    def __str__(self) -> str:
        """Return the setting with its condition."""
        return f"{self.setting}, {self.when}" if self.when else self.setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What promises that an anomaly does not happen, and what permits it all the same.

    ``releases`` says since when the promise is made, or kept, if not always. Where it depends on the
    producer of a record, ``to_producer`` says what that one was promised. ``in_run`` says what a run is
    held to, where that is not what each of its producers was promised.
    """

    promised_by: tuple[str, ...]
    permissions: tuple[Permission, ...] = ()
    releases: str = ""
    to_producer: Callable[[ProducerSettings], str] | None = None
    in_run: Callable[[Evidence], str] | None = None

    @property
    def permitted_by(self) -> tuple[str, ...]:
        """The permissions in words."""
        return tuple(str(permission) for permission in self.permissions)

    @property
    def orders(self) -> frozenset[str]:
        """The permissions that hold even where none of its anomalies is permitted."""
        return frozenset(permission.setting for permission in self.permissions if permission.is_order)

    @property
    def in_short(self) -> str:
        """What promises it first of all."""
        return " and ".join(self.promised_by[:1]) or "nothing"

    def held_to(self, evidence: Evidence) -> str:
        """Return what a run is held to, in its settings.

        Producers with different settings were promised different things; all are named.
        """
        if self.in_run is not None:
            return self.in_run(evidence)
        if self.to_producer is None:
            return self.in_short
        texts = dict.fromkeys(self.to_producer(settings) for settings in evidence.producers.values())
        return "; ".join(texts) or "nothing (no producer)"

    def permission(self, settings: StatedSettings) -> str | None:
        """Return the setting that may have permitted an anomaly by what is stated, None if nothing does."""
        for permitted in self.permissions:
            if permitted.stated(settings):
                return permitted.setting
        return None

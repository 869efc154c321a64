"""Promises and permissions, with which a rule is registered."""

from collections.abc import Callable

from harrow.checks.evidence import Evidence, ProducerSettings
from harrow.checks.prevention import Prevention
from harrow.checks.stated_settings import StatedSettings
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """A setting under which Kafka never promised that an anomaly does not happen.

    ``when`` restricts it to some cases. ``stated`` says whether the settings alone show that it may
    apply, which is never so if that takes a trace or the anomaly itself. ``prevented_by`` prevents
    the anomaly, for findings from a history alone. ``is_order``: an administrator requested it, so
    no setting is involved. `demand` overrides settings, but not what the script of a campaign
    orders itself.
    """

    setting: str
    when: str = ""
    stated: Callable[[StatedSettings], bool] = lambda _: False
    prevented_by: tuple[Prevention, ...] = ()
    is_order: bool = False

    def __str__(self) -> str:
        return f"{self.setting}, {self.when}" if self.when else self.setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What promises that an anomaly does not happen, and what permits it nevertheless.

    ``releases`` says since when the promise is made, or kept, if not always. If it depends on the
    producer of a record, ``to_producer`` returns what that producer was promised. ``in_run``
    returns the promise of a run, if it is not that of each producer.
    """

    promised_by: tuple[str, ...]
    permissions: tuple[Permission, ...] = ()
    releases: str = ""
    to_producer: Callable[[ProducerSettings], str] | None = None
    in_run: Callable[[Evidence], str] | None = None

    @property
    def permitted_by(self) -> tuple[str, ...]:
        """The permissions in words. Settings with the same restriction share an entry."""
        settings: dict[str, list[str]] = {}
        for permission in self.permissions:
            names = settings.setdefault(permission.when or permission.setting, [])
            if permission.setting not in names:
                names.append(permission.setting)
        return tuple(
            str(Permission(setting=_one_of(names), when="" if names == [when] else when))
            for when, names in settings.items()
        )

    @property
    def orders(self) -> frozenset[str]:
        """The permissions that hold even if the rule is demanded."""
        return frozenset(permission.setting for permission in self.permissions if permission.is_order)

    @property
    def in_short(self) -> str:
        return " and ".join(self.promised_by[:1]) or "nothing"

    def held_to(self, evidence: Evidence) -> str:
        """Return the promise of a run, in its settings.

        Producers with different settings were promised different things, and all of them are named.
        """
        if self.in_run is not None:
            return self.in_run(evidence)
        if self.to_producer is None:
            return self.in_short
        texts = dict.fromkeys(self.to_producer(settings) for settings in evidence.producers.values())
        return "; ".join(texts) or "nothing (no producer)"

    def permission(self, settings: StatedSettings) -> str | None:
        for permitted in self.permissions:
            if permitted.stated(settings):
                return permitted.setting
        return None


def _one_of(names: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))

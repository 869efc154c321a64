"""Defines promises and permissions: what Kafka promises, and which settings permit an anomaly."""

from collections.abc import Callable

from harrow.checks.evidence import Evidence, ProducerSettings
from harrow.checks.prevention import Prevention
from harrow.checks.stated_settings import StatedSettings
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """A setting under which Kafka does not promise that an anomaly never happens.

    ``when`` restricts the permission to some cases. ``stated`` returns whether the settings that a
    user states for a history show that the permission may apply; by default they do not, because
    only a trace shows the case. ``prevented_by`` lists what prevents the anomaly, for findings from
    a history alone. ``is_order`` is true if the permission is no setting but an administrator's
    request to delete records. A campaign that demands a rule overrides the permissions of settings,
    but not the requests in its own script.
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
    """The settings that promise that an anomaly does not happen, and the permissions for it.

    ``releases`` says since which release Kafka makes the promise, or keeps it, empty for all. If
    the promise depends on the producer of a record, ``to_producer`` returns the promise to a
    producer. If it depends on other settings of the run, ``in_run`` returns the promise of a run.
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
            str(Permission(setting=_joined_with_or(names), when="" if names == [when] else when))
            for when, names in settings.items()
        )

    @property
    def orders(self) -> frozenset[str]:
        """The settings that are an administrator's requests; these hold for demanded rules too."""
        return frozenset(permission.setting for permission in self.permissions if permission.is_order)

    @property
    def in_short(self) -> str:
        """The first setting that makes the promise, or "nothing"."""
        return " and ".join(self.promised_by[:1]) or "nothing"

    def words_for(self, evidence: Evidence) -> str:
        """Return the promise that the settings of a run make, in words.

        Producers with different settings have different promises; the words name all of them.
        """
        if self.in_run is not None:
            return self.in_run(evidence)
        if self.to_producer is None:
            return self.in_short
        texts = dict.fromkeys(self.to_producer(settings) for settings in evidence.producers.values())
        return "; ".join(texts) or "nothing (no producer)"

    def permission(self, settings: StatedSettings) -> str | None:
        """Return the setting that permits the anomaly, as far as stated settings show, or None."""
        for permitted in self.permissions:
            if permitted.stated(settings):
                return permitted.setting
        return None


def _joined_with_or(names: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))

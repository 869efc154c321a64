"""What a promise is, and what a permission is: the words in which `promise.PROMISES` is written."""

from collections.abc import Callable
from dataclasses import dataclass

from checks.stated_settings import StatedSettings


def _by_cause(_: StatedSettings) -> bool:
    return False


def always(_: StatedSettings) -> bool:
    """Return true whatever is stated."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """A setting under which Kafka never promised that an anomaly does not happen.

    ``when`` says in which case, if not in every one. ``stated`` tells from settings alone
    whether it may have been the case; never, where that takes a trace or the anomaly itself.
    ``prevented_by`` is what keeps it from happening, for findings of which nothing but the
    history is known.
    """

    setting: str
    when: str = ""
    stated: Callable[[StatedSettings], bool] = _by_cause
    prevented_by: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the setting with its condition."""
        return f"{self.setting}, {self.when}" if self.when else self.setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What promises that an anomaly does not happen, and what permits it all the same.

    ``releases`` says since when the promise is made, or kept, if not always.
    """

    promised_by: tuple[str, ...]
    permissions: tuple[Permission, ...] = ()
    releases: str = ""

    @property
    def permitted_by(self) -> tuple[str, ...]:
        """The permissions in words."""
        return tuple(str(permission) for permission in self.permissions)

"""Compares the advice for the same cluster on several releases of Kafka."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from harrow.campaigns.advise.advice import Advice, Settings
from harrow.campaigns.version import version
from harrow.cluster_model.lazy_dataclass import dataclass

SCHEMA: Final = "harrow.advice-by-release/1"
YOURS: Final = "your settings"
ADVISED: Final = "advice"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceByRelease:
    """The advice on each release, oldest first as the user names them."""

    advices: Sequence[Advice]

    def differences(self) -> Mapping[str, Mapping[str, str]]:
        """Return the answers that differ, each by release.

        They are whether the user's settings survive, whether any do, and the values of those that
        are advised. A release without a setting has no value of it.
        """
        answers: dict[str, dict[str, str]] = {YOURS: {}, ADVISED: {}}
        for advice in self.advices:
            answers[YOURS][advice.kafka] = _standing(advice.yours)
            advised = advice.advised
            answers[ADVISED][advice.kafka] = _change(advised)
            for name, level in advised.values if advised is not None else ():
                answers.setdefault(name, {})[advice.kafka] = level.words()
        return {
            what: by_release
            for what, by_release in answers.items()
            if len(set(by_release.values())) > 1 or len(by_release) < len(answers[YOURS])
        }

    def as_mapping(self) -> dict[str, Any]:
        """Return the advice on each release as JSON."""
        return {
            "schema": SCHEMA,
            "version": version(),
            "differences": [
                {"what": what, "by_release": dict(by_release)}
                for what, by_release in self.differences().items()
            ],
            "releases": [advice.as_mapping() for advice in self.advices],
        }


def _standing(settings: Settings) -> str:
    if settings.unfit:
        return "are refused"
    if settings.refuted_by is not None:
        return "do not survive"
    if settings.permitted_by is not None or not settings.is_decided:
        return "undecided"
    return "survive"


def _change(advised: Settings | None) -> str:
    if advised is None:
        return "nothing survives"
    return "change" if advised.options else "keep yours"

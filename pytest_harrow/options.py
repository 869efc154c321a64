"""Options of the command line, the configuration file and the marker."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import pytest

CAMPAIGNS: Final = "harrow_campaigns"
SEEDS_OPTION: Final = "--harrow-seeds"
SET_OPTION: Final = "--harrow-set"
MARKER: Final = (
    "harrow(seeds=..., set=..., inconclusive=...): runs campaigns; `seeds` (a range, numbers or 'A..B') and `set` "
    "(a mapping of settings and campaign fields) are defaults for the fixture `harrow`, and "
    "inconclusive='skip' skips the test if a run is inconclusive, where 'fail' fails it"
)
CLUSTER: Final = "kafka_cluster"
CLUSTER_SCOPE: Final = "kafka_cluster_scope"
SCOPES: Final = ("function", "class", "module", "package", "session")
CLUSTER_MARKER: Final = (
    "kafka_cluster(campaign, variant=..., seed=..., time_scale=..., settings=...): the fixture `kafka_cluster` "
    "serves this campaign or cluster file with these options of `harrow serve`"
)
_SEEDS_INI: Final = "harrow_seeds"
_INCONCLUSIVE_INI: Final = "harrow_inconclusive"
_INCONCLUSIVE: Final = ("fail", "skip")
_DEFAULT_SEEDS: Final = range(1)
_MARKER_KEYS: Final = frozenset({"seeds", "set", "inconclusive"})

Seeds = str | int | Iterable[int]
Settings = Mapping[str, object] | Sequence[str]


class OptionsError(Exception):
    """An option is invalid."""


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("harrow", "campaigns of harrow")
    group.addoption(
        SEEDS_OPTION, metavar="A..B|N", help="Seeds to run campaigns with, from A up to B - 1, or 0..N."
    )
    group.addoption(
        SET_OPTION,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="A Kafka setting, or a field of all campaigns; may be repeated.",
    )
    parser.addini(
        CAMPAIGNS, "Globs of campaign files to collect, from the root directory.", type="args", default=[]
    )
    parser.addini(_SEEDS_INI, "Seeds to run campaigns with, A..B or N for 0..N; 0..1 by default.", default="")
    parser.addini(
        _INCONCLUSIVE_INI,
        "The result of a test whose run is inconclusive: fail (the default) or skip.",
        default="",
    )
    parser.addini(
        CLUSTER, "The campaign or cluster file that the fixture `kafka_cluster` serves.", default=""
    )
    parser.addini(
        CLUSTER_SCOPE,
        "The scope of the fixture `kafka_cluster`: function (the default) or a wider one.",
        default="",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a test."""

    seeds: Sequence[int] = _DEFAULT_SEEDS
    overrides: tuple[str, ...] = ()
    skips_inconclusive: bool = False

    @classmethod
    def of(cls, config: pytest.Config) -> Self:
        """Return the project's options, overridden by the command line.

        Raises:
            OptionsError: An option is invalid.

        """
        scope = config.getini(CLUSTER_SCOPE)
        if scope and scope not in SCOPES:
            raise OptionsError(f"{CLUSTER_SCOPE}: {scope!r} is none of {', '.join(SCOPES)}")
        option = config.getoption(SEEDS_OPTION)
        name, text = (SEEDS_OPTION, option) if option else (_SEEDS_INI, config.getini(_SEEDS_INI))
        return cls(
            seeds=as_seeds(text, name) if text else _DEFAULT_SEEDS,
            overrides=tuple(config.getoption(SET_OPTION)),
            skips_inconclusive=_skips(config.getini(_INCONCLUSIVE_INI) or "fail", _INCONCLUSIVE_INI),
        )

    def with_markers(self, markers: Iterable[pytest.Mark]) -> Self:
        """Return the options with those of the test's markers. The closest marker wins.

        Raises:
            OptionsError: A marker is invalid.

        """
        seeds, overrides, skips = self.seeds, self.overrides, self.skips_inconclusive
        for marker in reversed(list(markers)):
            arguments: Mapping[str, Any] = marker.kwargs
            if marker.args or not arguments.keys() <= _MARKER_KEYS:
                raise OptionsError("the marker harrow takes only `seeds=`, `set=` and `inconclusive=`")
            if "seeds" in arguments:
                seeds = as_seeds(arguments["seeds"], "the marker's seeds")
            if "inconclusive" in arguments:
                skips = _skips(arguments["inconclusive"], "the marker's inconclusive")
            overrides += as_overrides(arguments.get("set"))
        return type(self)(seeds=seeds, overrides=overrides, skips_inconclusive=skips)


def as_seeds(seeds: Seeds, name: str = "seeds") -> Sequence[int]:
    """Return seeds from a range, from numbers, or from the text ``A..B`` or ``N``.

    Raises:
        OptionsError: The seeds are invalid or empty.

    """
    from harrow.campaigns.language.seeds import SeedError, check_seed, parse_seeds

    try:
        if isinstance(seeds, str):
            return parse_seeds(seeds)
        numbers = [check_seed(seed) for seed in ([seeds] if isinstance(seeds, int) else seeds)]
    except SeedError as error:
        raise OptionsError(f"{name}: {error}") from None
    except TypeError:
        raise OptionsError(f"{name}: {seeds!r} is neither A..B nor whole numbers") from None
    if not numbers:
        raise OptionsError(f"{name}: no seeds")
    return numbers


def as_overrides(settings: Settings | None) -> tuple[str, ...]:
    """Return settings in the form that ``--set`` takes."""
    if settings is None:
        return ()
    if isinstance(settings, str):
        return (settings,)
    if isinstance(settings, Mapping):
        return tuple(f"{key}={_value(value)}" for key, value in settings.items())
    return tuple(settings)


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


def _skips(word: object, name: str) -> bool:
    if word not in _INCONCLUSIVE:
        raise OptionsError(f"{name}: expected `fail` or `skip`, not {word!r}")
    return word == "skip"

"""Strategies for clusters and settings."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from hypothesis import strategies as st

from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.release.switch import DEFAULT_RELEASE
from harrow.cluster_model.settings import (
    ALL_REPLICAS,
    AUTO_COMMIT,
    BROKER,
    GROUP_ID,
    SETTINGS,
    TOPIC,
    TRANSACTIONAL_ID,
    Setting,
    Value,
    reconciled,
    shared_with,
)
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec, TopicSpec

Options = Mapping[str, Sequence[Value] | st.SearchStrategy[Value]]
"""The values of settings by name, the simplest first, or strategies for these values."""

SETTINGS_MAX: Final = 4
_OF_COORDINATORS: Final = frozenset({GROUP_ID, "group.instance.id", AUTO_COMMIT, TRANSACTIONAL_ID})
"""Settings that involve a coordinator. They have to suit the whole campaign, so they are drawn only
if they are named."""
_REPLICAS: Final = ("", ALL_REPLICAS, "0:0,0:1")
_RATIOS: Final = ("0", "0.1", "0.5", "1")
_TEXTS: Final = ("rack-0", "rack-1")
"""Names of racks, as in drawn clusters."""
_USUAL: Final = (1, 500, 1_000, 1_500, 60_000, 86_400, 3_600_000)


@st.composite
def settings(
    draw: st.DrawFn,
    /,
    scope: str,
    *,
    kafka: str = DEFAULT_RELEASE,
    options: Options | None = None,
    replicas: int = 1,
) -> dict[str, Value]:
    """Draw settings of one *scope* that Kafka accepts together.

    With *options*, exactly these settings are drawn, with these values. Without them, a few
    settings of the whole catalogue are drawn, with any valid value, and ``min.insync.replicas`` is
    at most *replicas*.
    """
    catalogue = {
        s.name: s for s in SETTINGS.values() if s.scope == scope and s.exists_in(kafka) and not s.needs
    }
    behaviours = RELEASES[kafka].behaviours
    if options is None:
        catalogue = {name: setting for name, setting in catalogue.items() if name not in _OF_COORDINATORS}
    else:
        values = {name: draw(_of_option(values)) for name, values in options.items() if name in catalogue}
        return reconciled(kafka, values, behaviours)
    chosen = st.lists(
        st.sampled_from(list(catalogue.values())), unique_by=attrgetter("name"), max_size=SETTINGS_MAX
    )
    values = {setting.name: draw(values_of(setting)) for setting in draw(chosen)}
    return reconciled(kafka, values, behaviours, replicas=replicas)


def _of_option(values: Sequence[Value] | st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    return values if isinstance(values, st.SearchStrategy) else st.sampled_from(values)


def values_of(setting: Setting) -> st.SearchStrategy[Value]:
    """Return a strategy for the values that a setting accepts, the usual ones first."""
    if setting.kind == "bool":
        return st.booleans()
    if setting.kind == "choice":
        return st.sampled_from(setting.choices)
    if setting.kind == "ratio":
        return st.sampled_from(_RATIOS)
    if setting.kind == "text":
        return st.sampled_from(_TEXTS)
    if setting.kind == "replicas":
        return st.sampled_from(_REPLICAS)
    usual = [n for n in (setting.minimum, *_USUAL) if setting.minimum <= n <= setting.maximum]
    return st.sampled_from(usual) | st.integers(setting.minimum, setting.maximum)


@st.composite
def clusters(
    draw: st.DrawFn,
    /,
    *,
    kafka: str = DEFAULT_RELEASE,
    brokers: tuple[int, int] = (1, 4),
    racks: tuple[int, int] = (0, 0),
    topics: Sequence[str] = ("t",),
    partitions: tuple[int, int] = (1, 2),
    replication_factor: tuple[int, int] | None = None,
    broker_settings: Options | None = None,
    topic_settings: Options | None = None,
    **parts: Any,
) -> ClusterSpec:
    """Draw a cluster. Bounds are inclusive, and Hypothesis shrinks towards the lower one.

    A partition has at most as many replicas as there are brokers. Further *parts* are fields of
    `ClusterSpec`, as values or strategies, such as ``zookeeper_tick_us=1_000_000``.
    """
    behaviours = RELEASES[kafka].behaviours
    count = draw(st.integers(*brokers))
    rack_count = draw(st.integers(*racks))
    low, high = replication_factor or (1, count)
    specs = []
    for name in topics:
        factor = draw(st.integers(min(low, count), min(high, count)))
        own = st.just({}) if topic_settings is None else settings(TOPIC, kafka=kafka, options=topic_settings)
        specs.append(
            TopicSpec(
                name=name,
                partitions=draw(st.integers(*partitions)),
                replication_factor=factor,
                settings=reconciled(kafka, draw(own), behaviours, replicas=factor),
            )
        )
    common_strategy = (
        st.just({}) if broker_settings is None else settings(BROKER, kafka=kafka, options=broker_settings)
    )
    fewest = min(topic.replication_factor for topic in specs)
    broker_settings_drawn = reconciled(kafka, draw(common_strategy), behaviours, replicas=fewest)
    # In a campaign's `settings`, a name such as `request.timeout.ms` configures clients, so each
    # broker sets it separately.
    shared = shared_with(BROKER, kafka, broker_settings_drawn)
    separate = {name: value for name, value in broker_settings_drawn.items() if name not in shared}
    return ClusterSpec(
        brokers=tuple(
            BrokerSpec(
                id=number, rack=f"rack-{number % rack_count}" if rack_count else None, settings=separate
            )
            for number in range(count)
        ),
        topics=tuple(specs),
        settings=shared,
        **{name: drawn_part(draw, part) for name, part in parts.items()},
    )


def drawn_part(draw: st.DrawFn, part: Any) -> Any:
    """Draw a part if it is a strategy, or return it as it is."""
    return draw(part) if isinstance(part, st.SearchStrategy) else part

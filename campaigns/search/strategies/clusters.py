"""Clusters, and the settings of whatever is configured in them."""

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
"""Values by the name of a setting, the plainest first, or a strategy for them."""

SETTINGS_MAX: Final = 4
_OF_COORDINATORS: Final = frozenset({GROUP_ID, "group.instance.id", AUTO_COMMIT, TRANSACTIONAL_ID})
"""What brings a coordinator with it, or needs one: it has to suit the whole campaign, and is not drawn by itself."""
_REPLICAS: Final = ("", ALL_REPLICAS, "0:0,0:1")
_RATIOS: Final = ("0", "0.1", "0.5", "1")
_TEXTS: Final = ("rack-0", "rack-1")
"""Names, of racks as clusters are drawn with them."""
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
    """Draw settings of one *scope* that Kafka takes together.

    With *options* it is these settings, with these values; without them it is a few of the whole
    catalogue, with any value that it allows. ``min.insync.replicas`` stays within *replicas*.
    """
    known = {s.name: s for s in SETTINGS.values() if s.scope == scope and s.exists_in(kafka) and not s.needs}
    behaviours = RELEASES[kafka].behaviours
    if options is None:
        known = {name: setting for name, setting in known.items() if name not in _OF_COORDINATORS}
    else:
        found = {name: draw(_of_option(values)) for name, values in options.items() if name in known}
        return reconciled(kafka, found, behaviours)
    picked = st.lists(
        st.sampled_from(list(known.values())), unique_by=attrgetter("name"), max_size=SETTINGS_MAX
    )
    found = {setting.name: draw(values_of(setting)) for setting in draw(picked)}
    return reconciled(kafka, found, behaviours, replicas=replicas)


def _of_option(values: Sequence[Value] | st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    return values if isinstance(values, st.SearchStrategy) else st.sampled_from(values)


def values_of(setting: Setting) -> st.SearchStrategy[Value]:
    """Return values that a setting takes, the usual ones first."""
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
    """Draw a cluster; bounds are inclusive, and what shrinks goes to the lower one.

    A partition has as many replicas as there are brokers, at the most. Further *parts* are fields
    of `ClusterSpec`, as they are or as strategies: ``zookeeper_tick_us=1_000_000``.
    """
    behaviours = RELEASES[kafka].behaviours
    count = draw(st.integers(*brokers))
    rack_count = draw(st.integers(*racks))
    low, high = replication_factor or (1, count)
    made = []
    for name in topics:
        factor = draw(st.integers(min(low, count), min(high, count)))
        own = st.just({}) if topic_settings is None else settings(TOPIC, kafka=kafka, options=topic_settings)
        made.append(
            TopicSpec(
                name=name,
                partitions=draw(st.integers(*partitions)),
                replication_factor=factor,
                settings=reconciled(kafka, draw(own), behaviours, replicas=factor),
            )
        )
    shared = (
        st.just({}) if broker_settings is None else settings(BROKER, kafka=kafka, options=broker_settings)
    )
    fewest = min(topic.replication_factor for topic in made)
    of_brokers = reconciled(kafka, draw(shared), behaviours, replicas=fewest)
    # In a campaign's `settings` a name such as `request.timeout.ms` is meant for clients, so each broker has it by itself.
    common = shared_with(BROKER, kafka, of_brokers)
    apart = {name: value for name, value in of_brokers.items() if name not in common}
    return ClusterSpec(
        brokers=tuple(
            BrokerSpec(id=number, rack=f"rack-{number % rack_count}" if rack_count else None, settings=apart)
            for number in range(count)
        ),
        topics=tuple(made),
        settings=common,
        **{name: drawn_part(draw, part) for name, part in parts.items()},
    )


def drawn_part(draw: st.DrawFn, part: Any) -> Any:
    """Return a part that is given, or drawn if it is a strategy."""
    return draw(part) if isinstance(part, st.SearchStrategy) else part

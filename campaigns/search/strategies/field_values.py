"""Strategies for the declared fields of a dataclass (`harrow.cluster_model.fields`)."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, Final

from hypothesis import strategies as st

from harrow.campaigns.search.strategies.clusters import drawn_part, settings
from harrow.cluster_model import fields as kinds
from harrow.cluster_model.apis import APIS
from harrow.cluster_model.fields import EXTENSIONS, DeclaredField, by_kind, fields_of
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import LONG_MAX
from harrow.cluster_model.sim.virtual_time import US_PER_MS

Values = Mapping[Any, st.SearchStrategy[Any]]
"""Strategies by the kind of a field: a marker (`harrow.cluster_model.fields`) or a plain type."""

DURATIONS_US: Final = st.integers(0, 120).map(lambda tenths: tenths * 100 * US_PER_MS)
"""Up to twelve seconds, which exceeds most default timeouts of brokers."""
_POSITIVE_US: Final = DURATIONS_US.filter(bool)

USUAL: Final[Values] = {
    kinds.DurationMarker: DURATIONS_US,
    kinds.DurationRangeMarker: DURATIONS_US.map(lambda us: (us, us)),
    kinds.DurationOrNeverMarker: _POSITIVE_US | st.none(),
    kinds.RateMarker: _POSITIVE_US,
    kinds.BandwidthMarker: st.sampled_from([1_000_000, 10_000, 1_000]),
    kinds.RateRangeMarker: _POSITIVE_US.map(lambda us: (us, us)),
    kinds.BrokerMarker: st.just(0),
    kinds.BrokerIdMarker: st.just(0),
    kinds.EndpointMarker: st.just(0),
    kinds.ClientMarker: st.just("producer-0"),
    kinds.ClientTargetMarker: st.just("any"),
    kinds.PartitionMarker: st.just("t-0"),
    kinds.ProbabilityMarker: st.sampled_from([1.0, 0.5, 0.1]),
    kinds.CountMarker: st.integers(1, 4),
    kinds.SkipMarker: st.integers(0, 20),
    kinds.ApiMarker: st.sampled_from(list(APIS)),
    kinds.ZnodePathMarker: st.sampled_from(["/controller", "/brokers/ids/0", "/brokers/topics"]),
    kinds.ReleaseMarker: st.sampled_from(list(RELEASES)),
    bool: st.booleans(),
    str: st.just("message"),
    int: st.integers(),
}
"""The usual strategy for each kind of field. Hypothesis shrinks to the first value, the simplest.

Names are those that every campaign has. Strategies for a specific cluster replace these strategies.
"""


@st.composite
def specs(draw: st.DrawFn, kind: type[Any], /, values: Values | None = None, **parts: Any) -> Any:
    """Draw a section of a campaign, such as a `DiskSpec`, with every field that it declares.

    Attributes in *parts* are used as they are, or drawn if they are strategies. *values* are
    strategies by marker or plain type.
    """
    usual = {**USUAL, **(values or {})}
    kind = EXTENSIONS.get(kind, kind)
    attributes: dict[str, Any] = {}
    for item in fields_of(kind):
        if item.attribute not in parts:
            attributes |= item.named(draw(of_field(item, usual)))
    attributes |= {name: drawn_part(draw, value) for name, value in parts.items()}
    return kind(**attributes)


def of_field(item: DeclaredField, usual_values: Values) -> st.SearchStrategy[Any]:
    """Return a strategy for a field. For an optional field, the first value is None."""
    if item.optional:
        return st.none() | of_field(replace(item, optional=False), usual_values)
    if item.many:
        one = of_field(replace(item, depth=item.depth - 1), usual_values)
        return st.lists(one, min_size=1, max_size=3, unique=item.options.unique).map(tuple)
    if item.choices:
        return st.sampled_from(item.choices)
    if is_dataclass(item.kind):
        return specs(item.kind, usual_values)
    if item.kind is kinds.SettingsMarker:
        return settings(item.options.scope)
    if item.kind is kinds.NumberRangeMarker:
        minimum = item.minimum or 0
        return st.integers(minimum, item.options.maximum or minimum + 3).map(lambda number: (number, number))
    usual = by_kind(usual_values, item.kind)
    if usual is None:
        raise KeyError(f"{item.attribute}: nothing to draw {item.kind.__name__} from")
    low, high = item.options.minimum, item.options.maximum
    if low is None and high is None:
        return usual
    if item.kind in (int, kinds.CountMarker, kinds.SkipMarker):
        return st.integers(low or item.minimum, LONG_MAX if high is None else high)
    return usual.filter(lambda value: (low is None or value >= low) and (high is None or value <= high))

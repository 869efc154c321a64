"""Strategies for all clusters and clients of campaign files, also with values that YAML quotes."""

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from harrow.campaigns.search.strategies import settings, specs
from harrow.cluster_model import fields as kinds
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import BROKER, PRODUCER, TOPIC, Value, reconciled, shared_with
from harrow.cluster_model.topology import (
    BrokerSpec,
    ClusterSpec,
    DiskSpec,
    NetworkSpec,
    ProducerSpec,
    TopicSpec,
)

DAY_US = 24 * 3_600 * 1_000_000

HOSTILE = (
    *(
        "",
        " ",
        "yes",
        "no",
        "null",
        "~",
        "true",
        "1",
        "-1",
        "0.10",
        "1e3",
        ".5",
        "1:30",
        "0x1f",
        "2026-11-21",
    ),
    *(
        "a: b",
        "a:",
        ": a",
        "a #b",
        "#",
        "- a",
        "-",
        "--- ",
        "...",
        "? a",
        "& a",
        "*a",
        "!a",
        "%a",
        "@a",
        "`a`",
    ),
    *(
        "'",
        '"',
        "it's",
        'say "so"',
        "\\",
        "\\n",
        "a\nb",
        "a\n",
        "\na",
        "a\r\nb",
        "\t",
        "a\tb",
        " a",
        "a ",
        "  ",
    ),
    *(
        "{a}",
        "[a",
        "a,b",
        "a]",
        "|",
        ">",
        "<<",
        "=",
        "y",
        "any",
        "never",
        "é",
        "日本",
        "😀",
        "\u2028",
        "\x85",
        "\xa0",
    ),
    *(
        "\x00",
        "\x7f",
        "\ufeff",
        "\U000e0001",
        "x" * 300,
        "word " * 60,
        "a" * 200 + " " + "b" * 200,
        "m0",
        "v-0",
    ),
)

texts = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
times = st.one_of(
    st.integers(0, 5_000), st.integers(0, 120).map(lambda s: s * 1_000_000), st.integers(0, DAY_US)
)
ranges = st.tuples(times, times).map(lambda pair: (min(pair), max(pair)))
intervals = st.one_of(st.integers(100, 10_000_000), st.integers(100, 10 * DAY_US))

VALUES: dict[Any, st.SearchStrategy[Any]] = {
    kinds.DurationMarker: times,
    kinds.DurationRangeMarker: ranges,
    kinds.DurationOrNeverMarker: st.none() | times.filter(bool),
    kinds.RateMarker: intervals,
    kinds.CountMarker: st.integers(1, 2**63 - 1),
    kinds.SkipMarker: st.integers(0, 2**63 - 1),
    str: texts,
}
"""Values for each kind of field for which a campaign file accepts more than runs need."""


def _first(count: int) -> Callable[[Sequence[int]], tuple[int, ...]]:
    return lambda numbers: tuple(numbers[:count])


@st.composite
def clusters(draw: st.DrawFn, release: str) -> ClusterSpec:
    """Draw brokers, with racks or without, and their topics."""
    ids = draw(st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True) | st.just([0, 1, 2]))
    racks = draw(st.booleans())
    brokers = tuple(
        BrokerSpec(
            id=number,
            rack=draw(texts) if racks else None,
            settings=reconciled(release, draw(settings(BROKER, kafka=release)), RELEASES[release].behaviours)
            if draw(st.booleans())
            else {},
        )
        for number in ids
    )
    names = draw(
        st.lists(
            st.sampled_from(["t", "u.v", "1", "-", "_", "y", "null"]), min_size=1, max_size=2, unique=True
        )
    )
    topics = []
    for name in names:
        partitions, factor = draw(st.integers(1, 3)), draw(st.integers(1, len(ids)))
        order = st.permutations(ids).map(_first(factor))
        assignment = [draw(order) for _ in range(partitions)] if draw(st.booleans()) else []
        own = draw(settings(TOPIC, kafka=release, replicas=factor))
        topics.append(
            TopicSpec(
                name=name,
                partitions=partitions,
                replication_factor=factor,
                assignment=tuple(assignment),
                settings=own,
            )
        )
    # A broker has settings that clients share only in its own settings.
    common = shared_with(BROKER, release, draw(settings(BROKER, kafka=release)))
    return ClusterSpec(
        brokers=brokers,
        topics=tuple(topics),
        controller=draw(st.none() | st.sampled_from(ids)),
        settings=reconciled(release, common, RELEASES[release].behaviours),
        network=draw(st.just(NetworkSpec()) | specs(NetworkSpec, VALUES)),
        disk=draw(st.just(DiskSpec()) | specs(DiskSpec, VALUES)),
        zookeeper_tick_us=draw(st.just(2_000_000) | times.filter(bool)),
    )


@st.composite
def producers(
    draw: st.DrawFn, name: str, release: str, cluster: ClusterSpec, duration_us: int
) -> ProducerSpec:
    """Draw a producer with time to send."""
    partitions = tuple(draw(st.lists(st.sampled_from(cluster.partition_names()), unique=True)))
    options: dict[str, Any] = {}
    if duration_us > 1 and draw(st.booleans()):
        start_us = draw(st.integers(0, duration_us - 1))
        stop_us = draw(st.just(duration_us) | st.integers(start_us + 1, duration_us))
        options = {"interval_us": draw(intervals), "start_us": start_us, "stop_us": stop_us}
    elif draw(st.booleans()):
        options = {"start_us": 5, "stop_us": draw(st.none() | st.integers(6, DAY_US))}
    usual: dict[str, Value] = {"acks": "all", "linger.ms": 5}
    own = draw(st.just(usual) | settings(PRODUCER, kafka=release))
    size = draw(st.sampled_from([30, 1, 1_000_000]))
    return ProducerSpec(name=name, settings=own, partitions=partitions, record_bytes=size, **options)

"""The supported releases of Kafka and their properties."""

import re

import pytest

from harrow.live_cluster.releases.kafka_release import (
    KafkaRelease,
    ReleaseError,
    jar_name,
    pinned_releases,
    release_of,
)


@pytest.mark.parametrize(
    ("name", "modes", "model_release"),
    [
        ("0.10.2.2", ("zookeeper",), "0.10.2"),
        ("0.11.0.3", ("zookeeper",), "0.11"),
        ("1.1.1", ("zookeeper",), "1.1"),
        ("2.0.1", ("zookeeper",), "2.0"),
        ("2.4.1", ("zookeeper",), "2.4"),
        ("2.8.2", ("zookeeper",), "2.8"),
        ("3.6.2", ("kraft", "zookeeper"), "3.6"),
        ("3.9.2", ("kraft", "zookeeper"), "3.9"),
        ("4.0.2", ("kraft",), "4.0"),
        ("4.3.1", ("kraft",), "4.3"),
        ("4.4.0", ("kraft",), "4.4"),
    ],
)
def test_a_release_has_its_control_planes_and_its_model(
    name: str, modes: tuple[str, ...], model_release: str
) -> None:
    release = release_of(name)
    assert release in pinned_releases()
    assert (release.modes, release.model_release) == (modes, model_release)


@pytest.mark.parametrize("release", pinned_releases(), ids=lambda release: release.name)
def test_the_jars_of_a_pinned_release_include_all_its_artifacts(release: KafkaRelease) -> None:
    jars = release.jars()
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in jars.values())
    assert len({jar_name(artifact) for artifact in jars}) == len(jars)
    # The logging binding may have another version.
    names = {artifact.rpartition(":")[0] for artifact in jars}
    assert {artifact.rpartition(":")[0] for artifact in release.artifacts} <= names
    assert release.artifacts[0] in jars
    # Each library has one version.
    for library in ("scala-library", "zookeeper", "kafka-clients"):
        assert sum(artifact.split(":")[1] == library for artifact in jars) <= 1


def test_newer_release_is_known_by_its_number() -> None:
    release = release_of("4.9.0")
    assert not release.is_pinned
    assert release.modes == ("kraft",)
    assert release.artifacts[0] == "org.apache.kafka:kafka_2.13:4.9.0"


@pytest.mark.parametrize(
    "text", ["", "2", "2.4", "latest", "2.4.1-zookeeper", "2.4.x", "../2.4.1", "2.4.1\n"]
)
def test_invalid_release_number_is_refused(text: str) -> None:
    with pytest.raises(ReleaseError, match="is not a release of Kafka"):
        release_of(text)

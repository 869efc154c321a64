"""The releases of Kafka that harrow can start, and their jars."""

import re
from functools import cache
from importlib import resources
from typing import Final

from harrow.campaigns.language.spelling import printable, suggestion
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.release.switch import version_of

ZOOKEEPER: Final = "zookeeper"
KRAFT: Final = "kraft"

_PINNED: Final = (
    *("0.10.2.2", "0.11.0.3", "1.1.1", "2.0.1", "2.4.1", "2.8.2"),
    *("3.6.2", "3.9.2", "4.0.2", "4.3.1", "4.4.0"),
)
"""The releases that were tested on Java 17. The folder ``jars`` lists the jars of each."""
_FIRST_WITH_KRAFT: Final = (3, 3)
_FIRST_WITHOUT_ZOOKEEPER: Final = (4, 0)
_NUMBER: Final = re.compile(r"\d{1,3}(\.\d{1,3}){2,3}")


class ReleaseError(ValueError):
    """A text is not the number of a release."""


@dataclass(frozen=True, slots=True)
class KafkaRelease:
    """A release of Kafka by its number, such as ``3.9.2``."""

    name: str

    @property
    def is_pinned(self) -> bool:
        """Whether harrow knows the digests of its jars."""
        return self.name in _PINNED

    @property
    def modes(self) -> tuple[str, ...]:
        """The possible stores of its metadata, the default first (KIP-833)."""
        if self.version >= _FIRST_WITHOUT_ZOOKEEPER:
            return (KRAFT,)
        return (KRAFT, ZOOKEEPER) if self.version >= _FIRST_WITH_KRAFT else (ZOOKEEPER,)

    @property
    def model_release(self) -> str:
        """The model's newest release that is not newer than this one, or else its oldest."""
        older = [name for name in RELEASES if version_of(name) <= self.version]
        return max(older, key=version_of, default=min(RELEASES, key=version_of))

    @property
    def artifacts(self) -> tuple[str, ...]:
        """The artifacts whose dependencies include all jars, as ``group:artifact:version``.

        Kafka itself depends neither on a binding of its logging to Log4j, nor on JAXB, which later
        versions of Java lack.
        """
        version = self.version
        scala = "2.12" if version < (2, 4) else "2.13"
        extra_artifacts: tuple[str, ...]
        if version >= (4,):
            extra_artifacts = tuple(
                f"org.apache.logging.log4j:log4j-{part}:2.24.3"
                for part in ("api", "core", "1.2-api", "slf4j-impl")
            )
        elif version >= (3, 2):
            extra_artifacts = ("org.slf4j:slf4j-reload4j:1.7.36",)
        else:
            extra_artifacts = ("org.slf4j:slf4j-log4j12:1.7.30",)
        if version < (1,):
            extra_artifacts += ("javax.xml.bind:jaxb-api:2.3.1",)
        return (f"org.apache.kafka:kafka_{scala}:{self.name}", *extra_artifacts)

    def jars(self) -> dict[str, str]:
        """Return the SHA-256 (hex) of each jar of a release, by ``group:artifact:version``."""
        folder = resources.files("harrow.live_cluster.releases")
        text = folder.joinpath("jars", f"{self.name}.txt").read_text("utf-8")
        return {artifact: digest for digest, artifact in (line.split() for line in text.splitlines())}

    @property
    def version(self) -> tuple[int, ...]:
        return version_of(self.name)


def jar_name(artifact: str) -> str:
    _, name, version = artifact.split(":")
    return f"{name}-{version}.jar"


@cache
def pinned_releases() -> tuple[KafkaRelease, ...]:
    """Return the pinned releases, oldest first."""
    return tuple(map(KafkaRelease, _PINNED))


def release_of(text: str) -> KafkaRelease:
    """Return the release with a number. The release may be newer than this harrow."""
    if not _NUMBER.fullmatch(text):
        hint = suggestion(text, [release.name for release in pinned_releases()])
        raise ReleaseError(f"`{printable(text)}` is not a release of Kafka{hint}")
    return KafkaRelease(text)

"""What ``--set kafka=...`` and ``--set cluster.metadata=...`` mean for a campaign and its variants.

A variant that names a release of its own is about that release: with another one it would keep its label and do
something else. So it is left out, unless it is named (``--variant``), or the campaign itself cannot be had as of that
release and the variant is written for the same control plane; variants that tell other stories run beside it. What a campaign expects was written for the
release that it names (`harrow.campaigns.language.plan.Plan.written_for`).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from harrow.campaigns.language import literals
from harrow.campaigns.language import yaml_positions as nodes
from harrow.campaigns.language.overlay import Override
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.release.switch import DEFAULT_RELEASE
from harrow.cluster_model.topology import CONTROL_PLANES

_KAFKA: Final[nodes.Path] = ("kafka",)
_METADATA: Final[nodes.Path] = ("cluster", "metadata")


def names_release(option: Override) -> bool:
    """Return whether an option says as of which release, or with which control plane, a campaign is run."""
    return option.parts in (_KAFKA, _METADATA)


class BrokerRelease(NamedTuple):
    """The release of the model that real brokers count as, and where they keep their metadata."""

    kafka: str
    metadata: str

    def options(self) -> tuple[str, ...]:
        """Return the options that run a campaign as of it."""
        plane = (
            () if RELEASES[self.kafka].metadata == self.metadata else (f"cluster.metadata={self.metadata}",)
        )
        return (f"kafka={self.kafka}", *plane)


class WrittenRelease(NamedTuple):
    """The release and the control plane of a campaign, or of a variant; ``is_named`` is whether its text says any of it."""

    kafka: str
    metadata: str
    is_named: bool

    def differs_from(self, other: "WrittenRelease") -> bool:
        return (self.kafka, self.metadata) != (other.kafka, other.metadata)

    def in_words(self, other: "WrittenRelease") -> str:
        """Return what it is called where the *other* one is used instead."""
        plane = (
            f" with {CONTROL_PLANES.get(self.metadata, self.metadata)}" if self.kafka == other.kafka else ""
        )
        return f"Kafka {self.kafka}{plane}"


def written_release(tree: nodes.Node) -> WrittenRelease:
    """Return as of which release a campaign is written; what is no release has no control plane."""
    kafka, metadata = _text(tree, _KAFKA), _text(tree, _METADATA)
    try:
        release = DEFAULT_RELEASE if kafka is None else literals.release(kafka)
    except literals.LiteralError:
        release = str(kafka)
    by_default = RELEASES[release].metadata if release in RELEASES else ""
    return WrittenRelease(release, metadata or by_default, kafka is not None or metadata is not None)


def release_mark(tree: nodes.Node) -> nodes.Mark | None:
    """Return where a variant names a release or a control plane of its own; None where it does not."""
    for path in (_KAFKA, _METADATA):
        found, mark, _ = nodes.lookup(tree, path)
        if found == path:
            return mark
    return None


def _text(tree: nodes.Node, path: nodes.Path) -> str | None:
    found, _, node = nodes.lookup(tree, path)
    is_there = found == path and isinstance(node, nodes.Scalar) and not node.is_null()
    return node.text if is_there and isinstance(node, nodes.Scalar) else None


def in_words(options: Sequence[Override]) -> str:
    """Return options as they are typed."""
    return " ".join(f"--set {option.mark.option}" for option in options)

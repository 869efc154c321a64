"""Decides which variants ``--set kafka=...`` and ``--set cluster.metadata=...`` leave out.

If a variant names its own release, its name would be misleading on another release. So an option
that names a release leaves out such a variant, with two exceptions: the user names the variant
(``--variant``), or the campaign without a variant does not suit the new release and the variant is
written for the control plane of that release. The expectations of a campaign are about the release
that it names (`harrow.campaigns.language.plan.Plan.written_for`).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from harrow.campaigns.language import literals
from harrow.campaigns.language import yaml_positions as nodes
from harrow.campaigns.language.overlay import Override
from harrow.campaigns.language.spelling import option_words
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.release.switch import DEFAULT_RELEASE
from harrow.cluster_model.topology import CONTROL_PLANES

_KAFKA: Final[nodes.Path] = ("kafka",)
_METADATA: Final[nodes.Path] = ("cluster", "metadata")


def names_release(option: Override) -> bool:
    """Return whether an option sets the release or the control plane."""
    return option.parts in (_KAFKA, _METADATA)


class BrokerRelease(NamedTuple):
    """The release of the model that is closest to real brokers, and their control plane."""

    kafka: str
    metadata: str

    def options(self) -> tuple[str, ...]:
        """Return the options that select this release and control plane."""
        plane = (
            () if RELEASES[self.kafka].metadata == self.metadata else (f"cluster.metadata={self.metadata}",)
        )
        return (f"kafka={self.kafka}", *plane)


class WrittenRelease(NamedTuple):
    """The release and control plane of a campaign. ``is_named``: the campaign names either."""

    kafka: str
    metadata: str
    is_named: bool

    def differs_from(self, other: "WrittenRelease") -> bool:
        return (self.kafka, self.metadata) != (other.kafka, other.metadata)

    def in_words(self, other: "WrittenRelease") -> str:
        """Return the name of the release. If *other* is the same release, add the control plane."""
        plane = (
            f" with {CONTROL_PLANES.get(self.metadata, self.metadata)}" if self.kafka == other.kafka else ""
        )
        return f"Kafka {self.kafka}{plane}"


def written_release(tree: nodes.Node) -> WrittenRelease:
    """Return the release of a campaign. An unknown release has an empty control plane."""
    kafka, metadata = _text(tree, _KAFKA), _text(tree, _METADATA)
    try:
        release = DEFAULT_RELEASE if kafka is None else literals.release(kafka)
    except literals.LiteralError:
        release = str(kafka)
    default_plane = RELEASES[release].metadata if release in RELEASES else ""
    return WrittenRelease(release, metadata or default_plane, kafka is not None or metadata is not None)


def release_mark(tree: nodes.Node) -> nodes.Mark | None:
    """Return the position where a variant names its own release or control plane, or None."""
    for path in (_KAFKA, _METADATA):
        existing, mark, _ = nodes.lookup(tree, path)
        if existing == path:
            return mark
    return None


def _text(tree: nodes.Node, path: nodes.Path) -> str | None:
    existing, _, node = nodes.lookup(tree, path)
    if existing == path and isinstance(node, nodes.Scalar) and not node.is_null():
        return node.text
    return None


def in_words(options: Sequence[Override]) -> str:
    """Return options as typed on the command line."""
    return " ".join(dict.fromkeys(" ".join(option_words(option.mark.option or "")) for option in options))

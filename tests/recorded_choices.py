"""Plays back the recorded choices of a run."""

from collections.abc import Iterable, Mapping, Sequence

from harrow.cluster_model.sim.choices import STREAM_NAMES, Choices, Stream


class RecordingStream(Stream):
    """Forwards another stream, and records its draws for `RecordedStream`."""

    __slots__ = ("_source", "drawn")

    def __init__(self, source: Stream) -> None:
        self._source = source
        self.drawn: list[int] = []

    def below(self, bound: int) -> int:
        draw = self._source.below(bound)
        self.drawn.append(draw)
        return draw


class RecordedStream(Stream):
    """Plays back recorded choices.

    A draw after the end of the recording, or one out of range because the plan has changed, becomes
    the smallest choice. So a replay of a changed plan still runs, as shrinking requires.
    """

    __slots__ = ("_drawn", "_position")

    def __init__(self, drawn: Iterable[int]) -> None:
        self._drawn = tuple(drawn)
        self._position = 0

    def below(self, bound: int) -> int:
        if self._position >= len(self._drawn):
            return 0
        draw = self._drawn[self._position]
        self._position += 1
        return draw if draw < bound else 0


def recorded_choices(recording: Mapping[str, Sequence[int]]) -> Choices:
    """Return the choices of a recording, which has a list of draws for each stream."""
    return Choices(*(RecordedStream(recording.get(name, ())) for name in STREAM_NAMES))

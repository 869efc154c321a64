"""A part of a file as it was read: its value, where it stands, and what stands below it."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from harrow.campaigns.language.spelling import printable
from harrow.campaigns.language.yaml_positions import Mark

_LOST_MAX: Final = 200
_LONGEST_KEY: Final = 60


class Part:
    """A single value, a list or a mapping.

    ``parts`` are what stands below it, by key or by place. ``lost`` are keys and places below it that were wrong and
    have been reported; they are not among the parts. ``is_whole`` is whether nothing was wrong here or anywhere below.
    """

    __slots__ = ("is_whole", "key_mark", "lost", "mark", "parts", "value")

    def __init__(
        self,
        mark: Mark,
        key_mark: Mark,
        value: Any = None,
        parts: Mapping[Any, "Part"] | None = None,
        lost: tuple[str, ...] = (),
    ) -> None:
        self.mark = mark
        self.key_mark = key_mark
        self.value = value
        self.parts: Mapping[Any, Part] = {} if parts is None else parts
        self.lost = lost
        self.is_whole: bool = not lost and all(part.is_whole for part in self.parts.values())

    def __contains__(self, key: str | int) -> bool:
        """Return whether something stands under *key*."""
        return key in self.parts

    def __truediv__(self, key: str | int) -> "Part":
        """Return what stands under *key*; where nothing does, an empty part in the place of this one."""
        found = self.parts.get(key)
        return Part(self.mark, self.key_mark) if found is None else found

    def __iter__(self) -> Iterator["Part"]:
        """Yield what stands below it, in the order of the file."""
        return iter(self.parts.values())

    def at(self, *path: str | int) -> "Part":
        """Return what stands at the end of a path."""
        part = self
        for key in path:
            part /= key
        return part

    def get(self, key: str | int) -> Any:
        """Return the value under *key*, None where there is none."""
        part = self.parts.get(key)
        return None if part is None else part.value

    def given(self) -> dict[str, Any]:
        """Return the values of a mapping by key."""
        return {key: part.value for key, part in self.parts.items()}

    def is_from_option(self) -> bool:
        """Return whether an option of the command line says this, not the file."""
        return self.key_mark.option is not None

    def place(self) -> str:
        """Return where this stands, for a message about something else."""
        option = self.key_mark.option
        return f"line {self.key_mark.line}" if option is None else f"--set {printable(option)}"

    def knows(self, *path: str | int) -> bool:
        """Return whether nothing was wrong at a path, below it, or on the way to it.

        A check of what is not there asks first, for a key that is missing may be the one that was wrong or misspelled.
        """
        part = self
        for key in path:
            if part._may_have_lost(key):
                return False
            if key not in part.parts:
                return True
            part = part.parts[key]
        return part.is_whole

    def _may_have_lost(self, key: str | int) -> bool:
        """Return whether a key was wrong, or one that may be the same, spelled wrongly; of a list, any item."""
        if isinstance(key, int) or not self.lost:
            return bool(self.lost)
        if len(self.lost) > _LOST_MAX or key in self.lost:
            return True
        return bool(get_close_matches(key, [word[:_LONGEST_KEY] for word in self.lost], n=1))


class Section(Part):
    """A mapping with keys that are declared; its value is itself."""

    __slots__ = ()

    def __init__(
        self, mark: Mark, key_mark: Mark, parts: Mapping[Any, Part] | None = None, lost: tuple[str, ...] = ()
    ) -> None:
        super().__init__(mark, key_mark, self, parts, lost)

"""Defines a part of a file that has been read: its value, its position and its inner parts."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from harrow.campaigns.language.spelling import option_words, printable
from harrow.campaigns.language.yaml_positions import Mark

_REJECTED_MAX: Final = 200
_LONGEST_KEY: Final = 60


class Part:
    """A single value, a list or a mapping.

    ``parts`` has the inner parts by key or index. An inner part with a mistake is not among them:
    ``rejected`` lists its key or index, and the mistake has been reported. ``is_whole`` is true if
    nothing was rejected at any depth. ``mark`` is the position of the value, and ``key_mark`` that
    of its key.
    """

    __slots__ = ("is_whole", "key_mark", "mark", "parts", "rejected", "value")

    def __init__(
        self,
        mark: Mark,
        key_mark: Mark,
        value: Any = None,
        parts: Mapping[Any, "Part"] | None = None,
        rejected: tuple[str, ...] = (),
    ) -> None:
        self.mark = mark
        self.key_mark = key_mark
        self.value = value
        self.rejected = rejected
        self.parts: Mapping[Any, Part] = parts or {}
        self.is_whole: bool = not rejected and (not parts or all(part.is_whole for part in parts.values()))

    def __contains__(self, key: str | int) -> bool:
        return key in self.parts

    def __truediv__(self, key: str | int) -> "Part":
        """Return the part under *key*, or an empty part with the position of this one."""
        part = self.parts.get(key)
        return Part(self.mark, self.key_mark) if part is None else part

    def __iter__(self) -> Iterator["Part"]:
        """Yield the inner parts, in the order of the file."""
        return iter(self.parts.values())

    def at(self, *path: str | int) -> "Part":
        """Return the part at the end of a path."""
        part = self
        for key in path:
            part /= key
        return part

    def get(self, key: str | int) -> Any:
        """Return the value under *key*, or None."""
        part = self.parts.get(key)
        return None if part is None else part.value

    def as_dict(self) -> dict[str, Any]:
        """Return the values of a mapping by key."""
        return {key: part.value for key, part in self.parts.items()}

    def is_from_option(self) -> bool:
        """Return whether this part comes from an option of the command line, not from the file."""
        return self.key_mark.option is not None

    def place(self) -> str:
        """Return the position of this part, for a message about another part."""
        mark = self.key_mark
        if mark.file is not None:
            return f"{printable(mark.file)}:{mark.line}"
        return f"line {mark.line}" if mark.option is None else printable(" ".join(option_words(mark.option)))

    def place_beside(self, other: "Part") -> str:
        """Return the position in parentheses, for a message at *other*.

        It is empty if it would be a line of the campaign, and the message is not about a line of
        the campaign: readers would look for the line in the wrong file.
        """
        here, there = self.key_mark, other.key_mark
        is_elsewhere = there.file is not None or there.option is not None
        return "" if is_elsewhere and (here.file, here.option) == (None, None) else f" ({self.place()})"

    def is_sound(self, *path: str | int) -> bool:
        """Return whether no mistake was reported at a path, below it, or on the way to it.

        Before harrow reports that a key is missing, it checks this: perhaps the key is there, but
        was rejected or misspelled.
        """
        part = self
        for key in path:
            if part._may_have_rejected(key):
                return False
            if key not in part.parts:
                return True
            part = part.parts[key]
        return part.is_whole

    def _may_have_rejected(self, key: str | int) -> bool:
        """Return whether a key or a misspelling of it was rejected, or, in a list, any item."""
        if isinstance(key, int) or not self.rejected:
            return bool(self.rejected)
        if len(self.rejected) > _REJECTED_MAX or key in self.rejected:
            return True
        return bool(get_close_matches(key, [word[:_LONGEST_KEY] for word in self.rejected], n=1))


class Section(Part):
    """A mapping with declared keys. Its ``value`` is the section itself."""

    __slots__ = ()

    def __init__(
        self,
        mark: Mark,
        key_mark: Mark,
        parts: Mapping[Any, Part] | None = None,
        rejected: tuple[str, ...] = (),
    ) -> None:
        super().__init__(mark, key_mark, self, parts, rejected)

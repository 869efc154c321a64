"""Text for a console, in which nothing that comes from data moves the cursor or begins a line."""

from collections.abc import Iterable
from typing import Any, Self, cast

from rich.text import Text as RichText  # noqa: TID251 - this is what stands in for it

from harrow.campaigns.language.spelling import printable


class Text(RichText):
    """Text whose characters are all printable, newlines too: it escapes the others before anything is measured, cut or wrapped.

    So no caller has to know what comes from a file. Line breaks that a layout wants are made by `lines`. Nothing in
    `harrow.cli` uses Rich's own class; ruff forbids it.
    """

    def __init__(self, text: str = "", *arguments: Any, **options: Any) -> None:
        super().__init__(printable(text), *arguments, **options)

    @classmethod
    def assemble(cls, *parts: Any, **options: Any) -> "Text":
        return cast("Text", super().assemble(*parts, **options))

    def append(self, text: RichText | str, style: Any = None) -> Self:
        super().append(printable(text) if isinstance(text, str) else text, style)
        return self


def lines(parts: Iterable[RichText | str]) -> Text:
    """Return one text with each part on a line of its own."""
    joined = Text()
    for number, part in enumerate(parts):
        if number:
            joined.append_text(RichText("\n"))
        joined.append(part)
    return joined

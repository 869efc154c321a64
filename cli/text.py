"""Text for a console. Data in it can neither move the cursor nor begin a line."""

from collections.abc import Iterable
from typing import Any, Self, cast

from rich.text import Text as RichText  # noqa: TID251 - this module replaces it

from harrow.campaigns.language.spelling import printable


class Text(RichText):
    """Text that escapes unprintable characters, even newlines, before Rich measures or wraps it.

    So no caller needs to know which strings come from a file. For intended line breaks, use
    `lines`. Everywhere else in `harrow.cli`, ruff forbids Rich's own class.
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
    """Join parts with line breaks."""
    joined = Text()
    for number, part in enumerate(parts):
        if number:
            joined.append_text(RichText("\n"))
        joined.append(part)
    return joined

"""Mistakes on the command line, told with a way out."""

import re
from typing import Final

_NOT_A_CHOICE: Final = re.compile(
    r"(?:Value error, )?'(?P<word>.*)' is not one of (?P<known>'.*')\.?", re.DOTALL
)
"""What Typer says of a word that is none of an enumeration's."""


def with_a_way_out(message: str) -> str:
    """Return a message of Typer's about a wrong value, with the nearest right one where it is about words."""
    match = _NOT_A_CHOICE.fullmatch(message)
    if match is None:
        return message
    from harrow.campaigns.language.spelling import nearest, printable

    known = re.findall(r"'([^']*)'", match["known"])
    word = match["word"]
    close = nearest(word, known)
    hint = f"did you mean `{close}`? " if close is not None else ""
    return f"there is no `{printable(word)}`; {hint}known: {', '.join(known)}"

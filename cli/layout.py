"""How lines stand on the page: what is dim, and what is moved to the right."""

from typing import Final

from rich.console import RenderableType
from rich.padding import Padding

DIM: Final = "dim"
INDENT: Final = 6


def indented(renderable: RenderableType, left: int = INDENT) -> Padding:
    """Return something moved to the right; its own lines break there too."""
    return Padding(renderable, (0, 0, 0, left), expand=False)

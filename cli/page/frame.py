"""The frame of every page: one file that loads nothing."""

from collections.abc import Mapping
from html import escape
from importlib.resources import files

from harrow.campaigns.language.spelling import printable
from harrow.campaigns.version import version
from harrow.cli.page.markup import Markup

_SCRIPTS = "; script-src 'unsafe-inline'"


def page(title: str, style: str, body: Markup, *, has_scripts: bool = False) -> str:
    """Return a page. *style* names a style sheet of this folder. Without scripts, none can run."""
    return filled(
        "frame.html",
        {
            "scripts": _SCRIPTS if has_scripts else "",
            "version": escape(version()),
            "title": escape(printable(title)),
            "css": resource(style),
            "body": body.html,
        },
    )


def filled(template: str, parts: Mapping[str, str]) -> str:
    """Return a template of this folder. Each ``{{name}}`` becomes the part of that name."""
    # The template is read once, so that a value that looks like a placeholder is not replaced.
    first, *rest = resource(template).split("{{")
    pieces = [first]
    for piece in rest:
        name, _, text = piece.partition("}}")
        pieces += [parts[name], text]
    return "".join(pieces)


def resource(name: str) -> str:
    """Return a file of this folder."""
    return files("harrow.cli.page").joinpath(name).read_text(encoding="utf-8")

"""What is wrong with the shape of a file, in words, and where it stands."""

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from harrow.campaigns.language import yaml_positions as nodes
from harrow.campaigns.language.section import Section, to_data
from harrow.campaigns.language.spelling import printable


def validated(section: type[Section], tree: nodes.Node) -> tuple[Any, list[dict[str, Any]]]:
    """Return a file as its model has it, and no errors; or None, and the errors of pydantic."""
    try:
        return section.model_validate(to_data(tree)), []
    except ValidationError as error:
        return None, [dict(item) for item in error.errors(include_url=False, include_input=False)]


def mistake_of(
    error: dict[str, Any], tree: nodes.Node, unknown_key: Callable[[nodes.Path], str]
) -> nodes.Mistake:
    """Return an error of pydantic for the reader of a file; *unknown_key* has the words for a key that no section knows."""
    location: nodes.Path = error["loc"]
    found, key_mark, node = nodes.lookup(tree, location)
    kind = error["type"]
    owner = location[:-1] if kind == "missing" else location
    key = next((part for part in reversed(owner) if isinstance(part, str)), "")
    prefix = f"{printable(key)}: " if key else ""
    if kind == "extra_forbidden":
        # A name that stands alone, without a mapping, has no key.
        mark = key_mark if found[-1:] == location[-1:] else node.mark
        return nodes.Mistake(mark, unknown_key(location))
    if kind == "missing":
        return nodes.Mistake(node.mark, f"{prefix}`{location[-1]}` is missing")
    if kind == "list_type":
        return nodes.Mistake(node.mark, f"{prefix}expected a list")
    if kind == "dict_type":
        return nodes.Mistake(node.mark, f"{prefix}expected a mapping (`key: value`)")
    text = f"this is not valid here ({error['msg']})"
    if kind == "value_error":
        text = str(error["ctx"]["error"])
    is_about_key = location[-1:] == ("[key]",)
    return nodes.Mistake(key_mark, text) if is_about_key else nodes.Mistake(node.mark, prefix + text)

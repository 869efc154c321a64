"""Reads the settings of topics that administrators change, which are texts on the wire."""

from collections.abc import Iterable
from typing import Final

from harrow.cluster_model import errors
from harrow.cluster_model.controller.administration import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    NewTopic,
    RefusedError,
)
from harrow.cluster_model.settings import SETTINGS, TOPIC, Setting, Value
from harrow.cluster_model.topic_settings import WITHOUT_EFFECT, Settings

_DIGITS_MAX: Final = 20


def changed_settings(
    before: Settings, changes: Iterable[tuple[str, int, str | None]], release: str
) -> dict[str, Value]:
    """Return the settings after the changes of an IncrementalAlterConfigs.

    Raises:
        RefusedError: A setting is unknown, or a value or an operation is invalid.

    """
    settings = dict(before)
    for name, operation, text in changes:
        setting = SETTINGS.get((TOPIC, name)) or WITHOUT_EFFECT.get(name)
        if setting is None or not setting.exists_in(release):
            raise RefusedError(errors.INVALID_CONFIG, f"topics have no setting {name}")
        if operation == DELETE:
            settings.pop(name, None)
            continue
        if text is None:
            raise RefusedError(errors.INVALID_CONFIG, f"{name} has no value")
        if operation in {APPEND, SUBTRACT}:
            if not setting.is_list:
                raise RefusedError(errors.INVALID_CONFIG, f"{name} is not a list")
        elif operation != SET:
            raise RefusedError(errors.INVALID_REQUEST, f"there is no operation {operation}")
        # A list that is not set begins with Kafka's default (``getParts``).
        before_change = str(settings.get(name, setting.default(release)))
        whole = _changed_list(before_change, text, operation)
        settings[name] = _value(setting, whole)
    return settings


def check_changes(changes: Iterable[tuple[str, int, str | None]]) -> None:
    """Check the form of an administrator's changes (``ConfigAdminManager.preprocess``).

    Raises:
        RefusedError: A setting occurs twice, or has no value.

    """
    names: set[str] = set()
    for name, operation, text in changes:
        if name in names:
            raise RefusedError(errors.INVALID_REQUEST, f"{name} occurs more than once")
        if text is None and operation != DELETE:
            raise RefusedError(errors.INVALID_REQUEST, f"{name} has no value")
        names.add(name)


def new_settings(topic: NewTopic, release: str) -> dict[str, Value]:
    """Return the settings of a new topic.

    Raises:
        RefusedError: A setting is unknown, or a value is invalid.

    """
    return changed_settings({}, [(name, SET, value) for name, value in topic.settings], release)


def _changed_list(text: str, items: str, operation: int) -> str:
    """Return the text of a setting after an operation with a value or items of a list."""
    if operation == SET:
        return items
    before, given = [item for item in text.split(",") if item], items.split(",")
    if operation == APPEND:
        return ",".join(dict.fromkeys((*before, *given)))
    return ",".join(item for item in before if item not in given)


def _value(setting: Setting, text: str) -> Value:
    """Return the value of a setting from its text."""
    text = text.strip()
    if setting.is_list and not text:
        return text
    if setting.kind == "bool" and text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if setting.kind in {"int", "ms"}:
        is_number = text.isascii() and text.removeprefix("-").isdecimal() and len(text) <= _DIGITS_MAX
        if is_number and setting.minimum <= int(text) <= setting.maximum:
            return int(text)
    elif setting.kind == "choice":
        if dict(setting.aliases).get(text, text) in setting.choices:
            return text
    elif setting.kind == "ratio":
        if text.replace(".", "", 1).isdecimal() and float(text) <= 1:
            return text
    elif setting.kind == "replicas" and (text == "*" or all(map(_is_replica, text.split(",")))):
        return text
    raise RefusedError(errors.INVALID_CONFIG, f"{text!r} is no value of {setting.name}")


def _is_replica(text: str) -> bool:
    number, colon, broker = text.partition(":")
    return bool(colon) and number.isdecimal() and broker.isdecimal()

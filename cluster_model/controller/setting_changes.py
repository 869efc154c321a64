"""Reads the settings of topics that administrators change, which are texts on the wire."""

from collections.abc import Callable, Iterable
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
from harrow.cluster_model.release.switch import version_of
from harrow.cluster_model.settings import (
    ALL_REPLICAS,
    BROKER,
    INT_MAX,
    LONG_MAX,
    SETTINGS,
    TOPIC,
    Setting,
    Value,
)
from harrow.cluster_model.topic_settings import WITHOUT_EFFECT, Settings, dynamic_settings

_DIGITS_MAX: Final = 20
_PORTED_TO_JAVA: Final = version_of("4.3")
"""The first profile whose brokers write a set of names in brackets, as Java does."""


def changed_settings(
    before: Settings, changes: Iterable[tuple[str, int, str | None]], release: str
) -> dict[str, Value]:
    """Return the settings after the changes of an IncrementalAlterConfigs.

    Raises:
        RefusedError: A setting is unknown, or a value or an operation is invalid.

    """

    def find(name: str) -> Setting:
        setting = SETTINGS.get((TOPIC, name)) or WITHOUT_EFFECT.get(name)
        if setting is None or not setting.exists_in(release):
            raise RefusedError(errors.INVALID_CONFIG, f"topics have no setting {name}")
        return setting

    return _changed(before, changes, release, find, errors.INVALID_CONFIG)


def changed_broker_settings(
    before: Settings, changes: Iterable[tuple[str, int, str | None]], release: str
) -> dict[str, Value]:
    """Return the settings of brokers after such changes (``DynamicBrokerConfig.validate``).

    Kafka answers INVALID_REQUEST to a value that it cannot use (KAFKA-13609). The removal of a
    fixed setting changes nothing.

    Raises:
        RefusedError: A setting cannot change, or a value or an operation is invalid.

    """
    dynamic, changes = dynamic_settings(release), tuple(changes)
    fixed: list[str] = []
    for name, operation, _ in changes:
        setting = dynamic.get(name) or SETTINGS.get((BROKER, name))
        if setting is not None:
            _check_operation(setting, name, operation)
        if name in dynamic or operation == DELETE:
            continue
        if setting is None or setting.is_dynamic:
            raise RefusedError(errors.INVALID_REQUEST, f"harrow does not change {name} of running brokers")
        fixed.append(name)
    if fixed:
        names = ", ".join(fixed)
        listed = f"[{names}]" if version_of(release) >= _PORTED_TO_JAVA else f"Set({names})"
        text = f"Cannot update these configs dynamically: {listed}"
        raise RefusedError(errors.INVALID_REQUEST, text)
    changes = tuple([change for change in changes if change[0] in dynamic])
    return _changed(before, changes, release, lambda name: dynamic[name], errors.INVALID_REQUEST)


def _check_operation(setting: Setting, name: str, operation: int) -> None:
    """Check whether a setting can change by an operation (``prepareIncrementalConfigs``)."""
    if operation in {APPEND, SUBTRACT}:
        if not setting.is_list:
            word = "append" if operation == APPEND else "subtract"
            reason = f"Config value {word} is not allowed for config key: {name}"
            raise RefusedError(errors.INVALID_CONFIG, reason)
    elif operation not in {SET, DELETE}:
        raise RefusedError(errors.INVALID_REQUEST, f"Unknown operations type {operation}")


def _changed(
    before: Settings,
    changes: Iterable[tuple[str, int, str | None]],
    release: str,
    find: Callable[[str], Setting],
    invalid_value: str,
) -> dict[str, Value]:
    settings = dict(before)
    for name, operation, text in changes:
        setting = find(name)
        _check_operation(setting, name, operation)
        if operation == DELETE:
            settings.pop(name, None)
            continue
        if text is None:
            raise RefusedError(errors.INVALID_CONFIG, f"{name} has no value")
        # A list that is not set begins with Kafka's default (``getParts``).
        before_change = str(settings.get(name, setting.default(release)))
        whole = _changed_list(before_change, text, operation)
        try:
            settings[name] = _value(setting, whole.strip())
        except ValueError as error:
            reason = f"Invalid value {whole} for configuration {name}: {error}"
            raise RefusedError(invalid_value, reason) from error
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
    """Return the value of a setting from its text.

    Raises:
        ValueError: The text is no value of the setting.

    """
    if setting.is_list and not text:
        return text
    if setting.kind == "bool":
        if text.lower() not in {"true", "false"}:
            raise ValueError("Expected value to be either true or false")
        return text.lower() == "true"
    if setting.kind in {"int", "ms"}:
        return _number(setting, text)
    if setting.kind == "choice":
        if dict(setting.aliases).get(text, text) not in setting.choices:
            raise ValueError(f"String must be one of: {'; '.join(setting.choices)}")
    elif setting.kind == "ratio":
        if not text.replace(".", "", 1).isdecimal() or float(text) > 1:
            raise ValueError("Value must be between 0 and 1")
    elif text != ALL_REPLICAS and not all(map(_is_replica, text.split(","))):
        raise ValueError("Replicas must be * or a list such as 0:1,1:2")
    return text


def _number(setting: Setting, text: str) -> int:
    is_number = text.isascii() and text.removeprefix("-").isdecimal() and len(text) <= _DIGITS_MAX
    limit = INT_MAX if setting.maximum <= INT_MAX else LONG_MAX
    if not is_number or abs(int(text)) > limit:
        raise ValueError(f"Not a number of type {'INT' if limit == INT_MAX else 'LONG'}")
    if int(text) < setting.minimum:
        raise ValueError(f"Value must be at least {setting.minimum}")
    if int(text) > setting.maximum:
        raise ValueError(f"Value must be no more than {setting.maximum}")
    return int(text)


def _is_replica(text: str) -> bool:
    number, colon, broker = text.partition(":")
    return bool(colon) and number.isdecimal() and broker.isdecimal()

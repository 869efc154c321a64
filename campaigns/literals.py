"""How single values are written in a campaign: durations, rates, numbers, brokers.

Every function takes text as it stands in the file and returns what it means; they
raise `LiteralError`, whose message says what would be right.
"""

import re
from collections.abc import Callable, Collection
from fractions import Fraction
from typing import Final

from campaigns.spelling import nearest, quoted
from cluster_model.settings import LONG_MAX, Setting, Value
from cluster_model.virtual_time import US_PER_MS, US_PER_SECOND

LONGEST_US: Final = 24 * 60 * 60 * US_PER_SECOND
FASTEST_PER_SECOND: Final = 10_000
SLOWEST_HOURS: Final = 1_000_000
BROKER_ID_MAX: Final = 1_000

DURATION_PATTERN: Final = r"[0-9]{1,12}(\.[0-9]{1,6})?(us|ms|s|m|h)"
RATE_PATTERN: Final = rf"[0-9]{{1,9}}(\.[0-9]{{1,6}})?/(s|m|h|{DURATION_PATTERN})"
BROKER_WORDS: Final = ("any", "controller")
BROKER_PATTERN: Final = "(any|controller|(leader|follower) of .+)"

_US_PER_UNIT: Final = {
    "us": 1,
    "ms": US_PER_MS,
    "s": US_PER_SECOND,
    "m": 60 * US_PER_SECOND,
    "h": 3_600 * US_PER_SECOND,
}
_DURATION: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)(us|ms|s|m|h)")
_RATE: Final = re.compile(rf"([0-9]{{1,9}}(?:\.[0-9]{{1,6}})?)/(s|m|h|{_DURATION.pattern})")
_NUMBER: Final = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,6})?")
# As many digits as it takes to tell any two floats apart.
_PROBABILITY: Final = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,20})?(?:e-[0-9]{1,3})?")
_WHOLE_NUMBER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")
_ALMOST_WHOLE: Final = re.compile(r"[+-]?[0-9][0-9_]{0,30}(?:\.0+)?")
_SEXAGESIMAL: Final = re.compile(r"([0-9]{1,6}):([0-5]?[0-9])(?::([0-5]?[0-9]))?")
_BROKER_OF: Final = re.compile(r"(leader|follower) of ([^ ]+)")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_RESERVED_CLIENT: Final = re.compile(r"zookeeper|reader|core-reader|any|controller|broker-[0-9]+|[0-9]+")


class LiteralError(ValueError):
    """A value that is not what is wanted; the message says what would be."""


def boolean(text: str) -> bool:
    """Return what ``true`` or ``false`` says."""
    word = text.lower()
    if word in ("true", "false"):
        return word == "true"
    if word in ("on", "yes", "y", "1", "off", "no", "n", "0"):
        meant = "true" if word in ("on", "yes", "y", "1") else "false"
        raise LiteralError(f"write true or false, not {quoted(text)} (did you mean {meant}?)")
    raise LiteralError(f"write true or false, not {quoted(text)}")


def whole_number(minimum: int, maximum: int = LONG_MAX) -> Callable[[str], int]:
    """Return the reader of whole numbers from *minimum* to *maximum*."""

    def read(text: str) -> int:
        if not _WHOLE_NUMBER.fullmatch(text):
            raise LiteralError(f"a whole number is wanted, not {quoted(text)}{_whole_number_hint(text)}")
        number = int(text)
        if number < minimum:
            raise LiteralError(f"{number} is too small: at least {minimum}")
        if number > maximum:
            raise LiteralError(f"{number} is too large: at most {maximum}")
        return number

    return read


def _whole_number_hint(text: str) -> str:
    if not _ALMOST_WHOLE.fullmatch(text):
        return ""
    number = int(text.partition(".")[0].replace("_", ""))
    return f"; write {number}"


def duration(text: str) -> int:
    """Return a duration such as ``500ms``, ``2s``, ``1.5s`` or ``1m`` in microseconds; at most 24 h."""
    us = _unbounded_duration(text)
    if us > LONGEST_US:
        raise LiteralError(f"{text} is too long: at most 24h")
    return us


def time_of_run(text: str) -> int:
    """Return a time of a run in microseconds: a duration, negative (``-1s``) where the cluster is only starting."""
    return -duration(text[1:]) if text.startswith("-") else duration(text)


def positive_duration(text: str) -> int:
    """Return a duration of more than nothing, in microseconds."""
    us = duration(text)
    if us == 0:
        raise LiteralError(f"{text} is too short: it has to be more than 0")
    return us


def _unbounded_duration(text: str) -> int:
    match = _DURATION.fullmatch(text)
    if not match:
        raise LiteralError(_not_a_duration(text))
    us = Fraction(match[1]) * _US_PER_UNIT[match[2]]
    if us.denominator != 1:
        raise LiteralError(f"{text} is finer than a microsecond")
    return int(us)


def _not_a_duration(text: str) -> str:
    sexagesimal = _SEXAGESIMAL.fullmatch(text)
    if _NUMBER.fullmatch(text):
        return f"{text} has no unit: write `{text}s` or `{text}ms`"
    if sexagesimal:
        parts = [int(part) for part in sexagesimal.groups() if part is not None]
        seconds = sum(part * 60**power for power, part in enumerate(reversed(parts)))
        return f"{quoted(text)} is not a duration: write it with a unit, such as `{seconds}s`"
    if text.startswith("-"):
        return f"a duration cannot be negative, as {quoted(text)} is"
    if ".." in text:
        return f"one duration is wanted here, not a range such as {quoted(text)}"
    return f"{quoted(text)} is not a duration: write one such as `500ms`, `2s`, `1m` or `1h`"


def duration_range(text: str) -> tuple[int, int]:
    """Return a duration, or a range of them such as ``1s..10s``, as a pair of microseconds."""
    low_text, dots, high_text = text.partition("..")
    if not dots:
        us = duration(text)
        return us, us
    low, high = duration(low_text.strip()), duration(high_text.strip())
    if low > high:
        raise LiteralError(
            f"the range {quoted(text)} is empty: {low_text.strip()} is more than {high_text.strip()}"
        )
    return low, high


def duration_or_never(text: str) -> int | None:
    """Return a duration in microseconds, None for ``never``."""
    return None if text == "never" else positive_duration(text)


def rate(text: str) -> int:
    """Return the mean interval, in microseconds, of a rate such as ``10/s``, ``12/m`` or ``1/90s``."""
    match = _RATE.fullmatch(text)
    if not match:
        number = f"; write `{text}/s`, `{text}/m` or `{text}/h`" if _NUMBER.fullmatch(text) else ""
        example = number or ": write one such as `10/s`, `12/m` or `1/h`"
        raise LiteralError(f"{quoted(text)} is not a rate{example}")
    count = Fraction(match[1])
    unit_us = _US_PER_UNIT.get(match[2]) or _unbounded_duration(match[2])
    if count == 0:
        raise LiteralError("a rate has to be more than 0; leave the key out for nothing at all")
    if unit_us == 0:
        raise LiteralError(f"the time in {quoted(text)} has to be more than 0")
    if count / unit_us * US_PER_SECOND > FASTEST_PER_SECOND:
        raise LiteralError(f"{text} is too fast: at most {FASTEST_PER_SECOND}/s")
    if unit_us / count > SLOWEST_HOURS * _US_PER_UNIT["h"]:
        raise LiteralError(f"{text} is too slow: at least 1/{SLOWEST_HOURS}h")
    return round(unit_us / count)


def whole_range(minimum: int, maximum: int = LONG_MAX) -> Callable[[str], tuple[int, int]]:
    """Return the reader of whole numbers, or ranges of them such as ``3..5``, as pairs; bounds are inclusive."""
    read_one = whole_number(minimum, maximum)

    def read(text: str) -> tuple[int, int]:
        low_text, dots, high_text = text.partition("..")
        low = read_one(low_text.strip())
        high = read_one(high_text.strip()) if dots else low
        if low > high:
            raise LiteralError(f"the range {quoted(text)} is empty: {low} is more than {high}")
        return low, high

    return read


def rate_range(text: str) -> tuple[int, int]:
    """Return a rate, or a range of them such as ``1/m..30/m``, as a pair of mean intervals in microseconds."""
    low_text, dots, high_text = text.partition("..")
    slow = rate(low_text.strip())
    fast = rate(high_text.strip()) if dots else slow
    if fast > slow:
        raise LiteralError(
            f"the range {quoted(text)} is empty: {low_text.strip()} is more than {high_text.strip()}"
        )
    return fast, slow


def probability(text: str) -> float:
    """Return a probability from 0 to 1."""
    if not _PROBABILITY.fullmatch(text) or Fraction(text) > 1:
        raise LiteralError(f"a probability is a number from 0 to 1 such as 0.25, not {quoted(text)}")
    return float(text)


def choice(options: Collection[str]) -> Callable[[str], str]:
    """Return the reader of one of a few words."""
    words = tuple(options)

    def read(text: str) -> str:
        if text not in words:
            close = nearest(text, words)
            hint = f"; did you mean `{close}`?" if close else ""
            raise LiteralError(f"{quoted(text)} is not one of {', '.join(words)}{hint}")
        return text

    return read


def broker_reference(text: str) -> int | str:
    """Return a broker's id, or which broker is meant: ``any``, ``leader of t-0`` and so on."""
    words = " ".join(text.split())
    if words in BROKER_WORDS or _BROKER_OF.fullmatch(words):
        return words
    if _WHOLE_NUMBER.fullmatch(words):
        return broker_id(words)
    raise LiteralError(
        f"{quoted(text)} is no broker: write an id, `any`, `controller`, `leader of t-0` or `follower of t-0`"
    )


def partition_of(reference: int | str) -> str | None:
    """Return the partition that a reference such as ``leader of t-0`` is about."""
    match = _BROKER_OF.fullmatch(reference) if isinstance(reference, str) else None
    return match[2] if match else None


broker_id: Final = whole_number(0, BROKER_ID_MAX)


def endpoint(text: str) -> int | str:
    """Return one end of a link: a broker's id, or the name of a client or of ``zookeeper``."""
    return broker_id(text) if _WHOLE_NUMBER.fullmatch(text) else text


def campaign_name(text: str) -> str:
    """Return a campaign's name; it names a folder of results, so it is kept simple."""
    if not _NAME.fullmatch(text):
        raise LiteralError(
            f"{quoted(text)} cannot name a campaign: letters, digits, `.`, `_` and `-`, at most 100, no space"
        )
    if text == "latest":
        raise LiteralError("`latest` cannot name a campaign: results/latest is the newest run")
    return text


def variant_name(text: str) -> str:
    """Return a variant's name."""
    if not text.strip() or not text.isprintable() or len(text) > 100 or set(text) & set("/\\"):
        raise LiteralError(
            f"{quoted(text)} cannot name a variant: at most 100 characters, no slash, no line break"
        )
    if text == "base":
        raise LiteralError("`base` is the campaign without a variant; choose another name")
    return text


def topic_name(text: str) -> str:
    """Return a topic's name, as Kafka allows them."""
    if not _TOPIC.fullmatch(text) or text in (".", ".."):
        raise LiteralError(
            f"{quoted(text)} cannot name a topic: letters, digits, `.`, `_` and `-`, at most 249"
        )
    return text


def client_name(text: str) -> str:
    """Return a producer's or consumer's name."""
    if not _NAME.fullmatch(text):
        raise LiteralError(
            f"{quoted(text)} cannot name a client: letters, digits, `.`, `_` and `-`, no space"
        )
    if _RESERVED_CLIENT.fullmatch(text):
        raise LiteralError(f"{quoted(text)} cannot name a client: something else has this name")
    return text


def setting_value(setting: Setting, text: str) -> Value:
    """Return a setting's value as the model takes it: times in the unit that the name ends in."""
    if setting.kind == "bool":
        return boolean(text)
    if setting.kind == "choice":
        # Kafka's clients take -1 for all.
        word = "all" if setting.name == "acks" and text == "-1" else text
        return choice(setting.choices)(word)
    if setting.kind in ("ms", "seconds") and not _WHOLE_NUMBER.fullmatch(text):
        text = _in_unit(text, setting.kind)
    return whole_number(setting.minimum, setting.maximum)(text)


def _in_unit(text: str, unit: str) -> str:
    """Return a duration as a number of milliseconds or seconds."""
    if _SEXAGESIMAL.fullmatch(text):
        raise LiteralError(_not_a_duration(text))
    if not _DURATION.fullmatch(text):
        number = "milliseconds" if unit == "ms" else "seconds"
        raise LiteralError(
            f"{quoted(text)} is no time: write a number of {number}, or a duration such as `10s`"
        )
    us = _unbounded_duration(text)
    unit_us = US_PER_MS if unit == "ms" else US_PER_SECOND
    if us % unit_us:
        raise LiteralError(
            f"{text} is finer than the setting, which is in {'ms' if unit == 'ms' else 'seconds'}"
        )
    return str(us // unit_us)

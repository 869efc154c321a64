"""Parses and formats single values of a campaign: durations, rates, numbers, brokers.

A function that is named after a kind of value, such as `duration`, parses text from the file. It
raises `LiteralError`, whose message says what would be right. A function whose name ends in
``_text`` formats a value.
"""

import re
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final

from harrow.campaigns.language.spelling import nearest, quoted
from harrow.campaigns.language.units import duration_text as spaced_duration_text
from harrow.campaigns.language.units import value_text
from harrow.cluster_model import fields as kinds
from harrow.cluster_model.registry import derived
from harrow.cluster_model.release.profiles import NEWEST_RELEASE, RELEASES
from harrow.cluster_model.settings import LONG_MAX, SETTINGS, Setting, Value, scopes_of
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND
from harrow.cluster_model.topology import BROKER_ID_MAX, FIRST_ZOOKEEPER_ID, node_id, process_name
from harrow.faults.link_ends import GROUPS, ZOOKEEPER

if TYPE_CHECKING:
    from fractions import Fraction

LONGEST_US: Final = 24 * 60 * 60 * US_PER_SECOND
FASTEST_PER_SECOND: Final = 10_000
SLOWEST_HOURS: Final = 1_000_000

DURATION_PATTERN: Final = r"[0-9]{1,12}(\.[0-9]{1,6})?(us|ms|s|m|h)"
RATE_PATTERN: Final = rf"[0-9]{{1,9}}(\.[0-9]{{1,6}})?/(s|m|h|{DURATION_PATTERN})"
BROKER_PATTERN: Final = (
    "(any|all|controller|(leader|leaders|follower|followers) of [^ ]+|rack .+|random [1-9][0-9]{0,4}"
    "|(100|[1-9][0-9]?)%)"
)

SERVER_PATTERN: Final = "(zookeeper|controller)-[0-9]+"

_US_PER_UNIT: Final = {
    "us": 1,
    "ms": US_PER_MS,
    "s": US_PER_SECOND,
    "m": 60 * US_PER_SECOND,
    "h": 3_600 * US_PER_SECOND,
}
_US_PER_SETTING_UNIT: Final = {"ms": US_PER_MS, "seconds": US_PER_SECOND}
_DURATION: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)(us|ms|s|m|h)")
_RATE: Final = rf"([0-9]{{1,30}}(?:\.[0-9]{{1,6}})?)/(s|m|h|{_DURATION.pattern})"
BOUND_PATTERN: Final = "(<=|>=|<|>) *"
_BOUND: Final = BOUND_PATTERN
_MILLIONTHS_PER_PERCENT: Final = 10_000
_NUMBER: Final = r"[0-9]{1,12}(?:\.[0-9]{1,6})?"
# Enough digits to distinguish any two floats.
_PROBABILITY: Final = r"[0-9]{1,12}(?:\.[0-9]{1,20})?(?:e-[0-9]{1,3})?"
_WHOLE_NUMBER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")
_ALMOST_WHOLE: Final = r"[+-]?[0-9][0-9_]{0,30}(?:\.0+)?"
_SEXAGESIMAL: Final = r"([0-9]{1,6}):([0-5]?[0-9])(?::([0-5]?[0-9]))?"
BANDWIDTH_PATTERN: Final = "[0-9]{1,9}(B|KB|MB|GB|Mbit|Gbit)/s"
_BANDWIDTH: Final = "([0-9]{1,9})(B|KB|MB|GB|Mbit|Gbit)/s"
_BYTES_PER_UNIT: Final = {"B": 1, "KB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}
_BYTES_PER_BIT_UNIT: Final = {"Mbit": 125_000, "Gbit": 125_000_000}
_BROKER: Final = re.compile(BROKER_PATTERN)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_VARIANT: Final = re.compile(r"(?=.*\S)[^/\\]{1,100}")
_TOPIC: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
RATIO_PATTERN: Final = r"0|1|1\.0{1,6}|0?\.[0-9]{1,6}"
REPLICAS_PATTERN: Final = r"(\*|[0-9]{1,9}:[0-9]{1,9}(,[0-9]{1,9}:[0-9]{1,9})*)?"
SETTING_TEXT_PATTERN: Final = "[A-Za-z0-9._-]{1,249}"
ZNODE_PATH_PATTERN: Final = "(/[^/]+)+"
VERSION_PATTERN: Final = r"[0-9]+(\.[0-9]+){1,3}([.+-]?[A-Za-z0-9]+)*"
_VERSION_CHARACTERS_MAX: Final = 60
LATEST_RELEASE: Final = "latest"
"""The word with which a campaign names the newest release of the model."""
QUORUM: Final = "quorum"
"""Another word for ``zookeeper``, for clusters without ZooKeeper."""
_QUORUM_ROLES: Final = ("leader of", "follower of", "followers of")
_RESERVED_CLIENT: Final = rf"zookeeper|quorum|reader|core-reader|any|all|controller|{'|'.join(GROUPS)}|broker-[0-9]+|{SERVER_PATTERN}|[0-9]+"


class LiteralError(ValueError):
    """A campaign cannot have this value in this place. The message says what would be right."""


def boolean(text: str) -> bool:
    word = text.lower()
    if word in ("true", "false"):
        return word == "true"
    if word in ("on", "yes", "y", "1", "off", "no", "n", "0"):
        intended = "true" if word in ("on", "yes", "y", "1") else "false"
        raise LiteralError(f"write true or false, not {quoted(text)} (did you mean {intended}?)")
    raise LiteralError(f"write true or false, not {quoted(text)}")


def whole_number(minimum: int, maximum: int = LONG_MAX) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not _WHOLE_NUMBER.fullmatch(text):
            raise LiteralError(f"expected a whole number, not {quoted(text)}{_whole_number_hint(text)}")
        number = int(text)
        if number < minimum:
            raise LiteralError(f"{number} is too small: at least {minimum}")
        if number > maximum:
            raise LiteralError(f"{number} is too large: at most {maximum}")
        return number

    return read


def _whole_number_hint(text: str) -> str:
    if not re.fullmatch(_ALMOST_WHOLE, text):
        return ""
    number = int(text.partition(".")[0].replace("_", ""))
    return f"; write {number}"


def duration(text: str) -> int:
    """Parse a duration such as ``500ms``, ``1.5s`` or ``1m`` into microseconds; at most 24 h."""
    us = _unbounded_duration(text)
    if us > LONGEST_US:
        raise LiteralError(f"{text} is too long: at most 24h")
    return us


def time_of_run(text: str) -> int:
    """Parse a time of a run into microseconds. Times at which the cluster starts are negative."""
    return -duration(text[1:]) if text.startswith("-") else duration(text)


def positive_duration(text: str) -> int:
    us = duration(text)
    if us == 0:
        raise LiteralError(f"{text} is too short: it must be more than 0")
    return us


def _unbounded_duration(text: str) -> int:
    match = _DURATION.fullmatch(text)
    if not match:
        raise LiteralError(_not_a_duration(text))
    number, divisor = _ratio(match[1])
    us, rest = divmod(number * _US_PER_UNIT[match[2]], divisor)
    if rest:
        raise LiteralError(f"{text} is finer than a microsecond")
    return us


def _ratio(text: str) -> tuple[int, int]:
    """Return a decimal number such as ``1.25`` as a numerator and a denominator.

    `Fraction` would do the same, but importing it takes a fiftieth of the start-up time.
    """
    whole, _, decimals = text.partition(".")
    return int(whole + decimals), 10 ** len(decimals)


def _exact(text: str) -> "Fraction":
    """Return a number that may have an exponent."""
    from fractions import Fraction  # noqa: PLC0415 - few campaigns have shares or probabilities

    return Fraction(text)


def _not_a_duration(text: str) -> str:
    sexagesimal = re.fullmatch(_SEXAGESIMAL, text)
    if re.fullmatch(_NUMBER, text):
        return f"{text} has no unit: write `{text}s` or `{text}ms`"
    if sexagesimal:
        parts = [int(part) for part in sexagesimal.groups() if part is not None]
        seconds = sum(part * 60**power for power, part in enumerate(reversed(parts)))
        return f"{quoted(text)} is not a duration: write it with a unit, such as `{seconds}s`"
    if text.startswith("-"):
        return f"a duration cannot be negative: {quoted(text)}"
    if ".." in text:
        return f"expected one duration, not a range such as {quoted(text)}"
    return f"{quoted(text)} is not a duration: write one such as `500ms`, `2s`, `1m` or `1h`"


def range_of(read: Callable[[str], int], *, is_falling: bool = False) -> Callable[[str], tuple[int, int]]:
    """Return a parser for a value, or a range such as ``1s..10s``. It returns both ends.

    With *is_falling*, *read* returns a smaller number for a larger value: a higher rate has a
    shorter mean interval.
    """

    def read_range(text: str) -> tuple[int, int]:
        low_text, dots, high_text = (part.strip() for part in text.partition(".."))
        ends = (read(low_text), read(high_text)) if dots else (read(text),) * 2
        low, high = reversed(ends) if is_falling else ends
        if low > high:
            raise LiteralError(f"the range {quoted(text)} is empty: {low_text} is more than {high_text}")
        return low, high

    return read_range


def range_pattern(pattern: str) -> str:
    """Return the pattern of a single value that matches *pattern*, or of a range of such values."""
    return rf"{pattern}( *\.\. *{pattern})?"


duration_range: Final = range_of(duration)


def bound_of(read: Callable[[str], int]) -> Callable[[str], tuple[str, int]]:
    """Return a parser for a bound such as ``< 500ms``. It returns the comparison and the value."""

    def read_bound(text: str) -> tuple[str, int]:
        match = re.match(_BOUND, text)
        if match is None:
            raise LiteralError(f"{quoted(text)} is not a bound: a bound begins with `<`, `<=`, `>` or `>=`")
        if not text[match.end() :]:
            raise LiteralError(f"{quoted(text)} has no value to compare with")
        return match[1], read(text[match.end() :])

    return read_bound


def share(text: str) -> int:
    """Parse a percentage such as ``99.9%`` into millionths."""
    number = text.removesuffix("%").strip()
    if not text.endswith("%") or not re.fullmatch(_PROBABILITY, number) or _exact(number) > 100:
        raise LiteralError(f"expected a percentage from 0% to 100%, such as 99.9%, not {quoted(text)}")
    return int(_exact(number) * _MILLIONTHS_PER_PERCENT)


def share_text(millionths: int) -> str:
    """Format millionths as a percentage, as in ``99.9%``."""
    whole, rest = divmod(millionths, _MILLIONTHS_PER_PERCENT)
    digits = str(rest).rjust(4, "0").rstrip("0")
    return f"{whole}.{digits}%" if digits else f"{whole}%"


def _bound_text(text: Callable[[int], str]) -> Callable[[tuple[str, int]], str]:
    return lambda bound: f"{bound[0]} {text(bound[1])}"


def duration_or_never(text: str) -> int | None:
    return None if text == "never" else positive_duration(text)


def rate(text: str) -> int:
    """Parse a rate such as ``10/s`` or ``1/90s`` into its mean interval in microseconds."""
    match = re.fullmatch(_RATE, text)
    if not match:
        number = f"; write `{text}/s`, `{text}/m` or `{text}/h`" if re.fullmatch(_NUMBER, text) else ""
        example = number or ": write one such as `10/s`, `12/m` or `1/h`"
        raise LiteralError(f"{quoted(text)} is not a rate{example}")
    count, divisor = _ratio(match[1])
    unit_us = _US_PER_UNIT.get(match[2]) or _unbounded_duration(match[2])
    if count == 0:
        raise LiteralError("a rate must be more than 0; leave the key out instead")
    if unit_us == 0:
        raise LiteralError(f"the time in {quoted(text)} must be more than 0")
    unit_us *= divisor
    if count * US_PER_SECOND > FASTEST_PER_SECOND * unit_us:
        raise LiteralError(f"{text} is too fast: at most {FASTEST_PER_SECOND}/s")
    if unit_us > SLOWEST_HOURS * _US_PER_UNIT["h"] * count:
        raise LiteralError(f"{text} is too slow: at least 1/{SLOWEST_HOURS}h")
    interval_us, rest = divmod(unit_us, count)
    # A half is rounded to the even number, as `round` does.
    return interval_us + (2 * rest + interval_us % 2 > count)


def bandwidth(text: str) -> int:
    """Parse ``64KB/s`` or ``1Gbit/s`` into bytes per second; a kilobyte has 1000 bytes."""
    match = re.fullmatch(_BANDWIDTH, text)
    if not match or not int(match[1]):
        raise LiteralError(
            f"{quoted(text)} is not a bandwidth: write one such as `500B/s`, `64KB/s`, `1MB/s` or `1Gbit/s`"
        )
    return int(match[1]) * {**_BYTES_PER_UNIT, **_BYTES_PER_BIT_UNIT}[match[2]]


def bandwidth_text(bytes_per_second: int) -> str:
    """Format a bandwidth in the largest unit that needs no fraction."""
    unit = next(unit for unit, size in reversed(_BYTES_PER_UNIT.items()) if bytes_per_second % size == 0)
    return f"{bytes_per_second // _BYTES_PER_UNIT[unit]}{unit}/s"


rate_range: Final = range_of(rate, is_falling=True)


def whole_range(minimum: int, maximum: int = LONG_MAX) -> Callable[[str], tuple[int, int]]:
    """Return a parser for whole numbers, or ranges of them such as ``3..5``."""
    return range_of(whole_number(minimum, maximum))


def probability(text: str) -> float:
    if not re.fullmatch(_PROBABILITY, text) or _exact(text) > 1:
        raise LiteralError(f"a probability is a number from 0 to 1 such as 0.25, not {quoted(text)}")
    return float(text)


def choice(options: Collection[str]) -> Callable[[str], str]:
    words = tuple(options)

    def read(text: str) -> str:
        if text not in words:
            close = nearest(text, words)
            hint = f"; did you mean `{close}`?" if close else ""
            raise LiteralError(f"{quoted(text)} is not one of {', '.join(words)}{hint}")
        return text

    return read


def _normalised(text: str) -> str:
    """Return a reference with single spaces, and ``zookeeper`` in place of ``quorum``."""
    *role, last = text.split() or [""]
    is_quorum = last == QUORUM and role in ([], *(words.split() for words in _QUORUM_ROLES))
    return " ".join((*role, ZOOKEEPER if is_quorum else last))


def broker_reference(text: str) -> int | str:
    """Parse a broker's id, or a reference such as ``any`` or ``leader of t-0``.

    ``zookeeper-1`` and ``controller-3000`` are servers that are not brokers, but some faults can
    strike them too. ``leader of quorum`` is a synonym of ``leader of zookeeper``.
    """
    words = _normalised(text)
    server = node_id(words)
    if server is not None:
        return server
    if _BROKER.fullmatch(words):
        return words
    if _WHOLE_NUMBER.fullmatch(words):
        return broker_id(words)
    raise LiteralError(
        f"{quoted(text)} is not a broker: write an id, `any`, `controller`, `leader of t-0`, `follower of t-0`, "
        "`all`, `leaders of t`, `followers of t-0`, `leader of any`, `rack a`, `rack any`, `random 2`, `50%`, `zookeeper-1`, `leader of zookeeper`, "
        "`controller-3000`, `leader of quorum` or a list of these"
    )


def name_in(reference: str) -> tuple[str, str]:
    """Return the kind and the name of what a reference names, such as a topic; empty if nothing."""
    word, _, rest = reference.partition(" ")
    if rest.removeprefix("of ") == ZOOKEEPER and word in ("leader", "follower", "followers"):
        return ZOOKEEPER, ""
    if word in ("leader", "follower", "followers"):
        return "partition", rest.removeprefix("of ")
    if word == "leaders":
        return "topic", rest.removeprefix("of ")
    return ("rack", rest) if word == "rack" else ("", "")


broker_id: Final = whole_number(0, BROKER_ID_MAX)


def controller_id(text: str) -> int:
    """Parse a controller: the id of a broker or, in KRaft, a voter such as ``controller-3000``."""
    server = node_id(text) or node_id(f"controller-{text}")
    if server is None and not _WHOLE_NUMBER.fullmatch(text):
        raise LiteralError(
            f"{quoted(text)} is not a controller: write a broker's id, or in KRaft one such as `controller-3000`"
        )
    return broker_id(text) if server is None else server


def endpoint(text: str) -> int | str:
    """Parse an end of a link: a broker, a server such as ``zookeeper-1``, or a client."""
    server = node_id(text)
    if server is not None:
        return server
    return broker_id(text) if _WHOLE_NUMBER.fullmatch(text) else _normalised(text)


def is_broker_reference(text: str) -> bool:
    """Return whether a text refers to brokers by their role, as in ``leader of t-0``."""
    return bool(_BROKER.fullmatch(text))


def link_end(text: str) -> int | str:
    """Parse an end of a link, or a reference such as ``leader of t-0``.

    The reference is resolved each time the fault strikes.
    """
    words = _normalised(text)
    return words if is_broker_reference(words) else endpoint(words)


def campaign_name(text: str) -> str:
    """Check a campaign's name. It names a folder of results, so few characters are allowed."""
    if _name(text, _NAME, "campaign", "letters, digits, `.`, `_` and `-`, at most 100, no space") == "latest":
        raise LiteralError("`latest` is not a valid campaign name: results/latest is the newest run")
    return text


def variant_name(text: str) -> str:
    if _name(text, _VARIANT, "variant", "at most 100 characters, no slash, no line break") == "base":
        raise LiteralError("`base` is the campaign without a variant; choose another name")
    return text


def topic_name(text: str) -> str:
    """Check a topic's name by Kafka's rules."""
    return _name(text, _TOPIC, "topic", "letters, digits, `.`, `_` and `-`, at most 249")


def client_name(text: str) -> str:
    if re.fullmatch(
        _RESERVED_CLIENT, _name(text, _NAME, "client", "letters, digits, `.`, `_` and `-`, no space")
    ):
        raise LiteralError(f"{quoted(text)} is not a valid client name: it is reserved")
    return text


def _name(text: str, pattern: re.Pattern[str], owner: str, rule: str) -> str:
    if not (pattern.fullmatch(text) and text.isprintable()):
        raise LiteralError(f"{quoted(text)} is not a valid {owner} name: {rule}")
    return text


def znode_path(text: str) -> str:
    if not (re.fullmatch(ZNODE_PATH_PATTERN, text) and text.isprintable()):
        raise LiteralError(f"{quoted(text)} is not the path of a znode; write one such as `/controller`")
    return text


def release(text: str) -> str:
    """Parse a release. ``latest`` becomes a number, so that a recorded run names its release."""
    if text == LATEST_RELEASE:
        return NEWEST_RELEASE
    if text in RELEASES:
        return text
    hint = ""
    if re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,4}){1,3}", text):
        earlier = [name for name in RELEASES if _numbers(name) <= _numbers(text)]
        if earlier and text.startswith(f"{earlier[-1]}."):
            hint = f"; write {earlier[-1]}"
        elif earlier:
            hint = f"; {earlier[-1]} is the newest before it"
    raise LiteralError(
        f"release {quoted(text)} is not modelled; there are {', '.join(RELEASES)} and {LATEST_RELEASE}{hint}"
    )


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def version(text: str) -> str:
    if len(text) > _VERSION_CHARACTERS_MAX or not re.fullmatch(VERSION_PATTERN, text):
        raise LiteralError(f"expected a version of harrow such as 0.1.0, not {quoted(text)}")
    return text


def setting_value(setting: Setting, text: str) -> Value:
    """Parse the value of a setting. Times are numbers in the unit at the end of the name."""
    if setting.kind == "bool":
        return boolean(text)
    if setting.kind == "choice":
        aliases = dict(setting.aliases)
        words = ",".join(aliases.get(word, word) for word in map(str.strip, text.split(",")))
        return choice(setting.choices)(aliases.get(words, words))
    if setting.kind == "ratio":
        return ratio(text)
    if setting.kind == "text":
        return free_text(text)
    if setting.kind == "replicas":
        return replicas(text)
    if setting.kind in _US_PER_SETTING_UNIT and not _WHOLE_NUMBER.fullmatch(text):
        text = _in_unit(text, setting.kind)
    return whole_number(setting.minimum, setting.maximum)(text)


def free_text(text: str) -> str:
    """Check a setting whose value is a name that users choose."""
    if not (re.fullmatch(SETTING_TEXT_PATTERN, text) and text.isprintable()):
        raise LiteralError(
            f"expected letters, digits, `.`, `_` and `-`, at most 249 and no space, not {quoted(text)}"
        )
    return text


def ratio(text: str) -> str:
    """Check a number from 0 to 1, and return it as written, because a float could be rounded."""
    if not re.fullmatch(RATIO_PATTERN, text):
        raise LiteralError(f"expected a number from 0 to 1 such as 0.5, not {quoted(text)}")
    return text


def replicas(text: str) -> str:
    """Check a list of partitions and brokers as ``ThrottledReplicaListValidator`` does."""
    if not re.fullmatch(REPLICAS_PATTERN, text):
        raise LiteralError(f'expected a list such as 0:1,0:2 (partition:broker), or "*", not {quoted(text)}')
    return text


def _in_unit(text: str, unit: str) -> str:
    """Convert a duration to a number of milliseconds or seconds."""
    if re.fullmatch(_SEXAGESIMAL, text):
        raise LiteralError(_not_a_duration(text))
    if not _DURATION.fullmatch(text):
        number = "milliseconds" if unit == "ms" else unit
        raise LiteralError(
            f"{quoted(text)} is not a time: write a number of {number}, or a duration such as `10s`"
        )
    whole, rest = divmod(_unbounded_duration(text), _US_PER_SETTING_UNIT[unit])
    if rest:
        raise LiteralError(f"{text} is finer than the setting, which is in {unit}")
    return str(whole)


# Formatting

_MINUTE_US: Final = _US_PER_UNIT["m"]
_HOUR_US: Final = _US_PER_UNIT["h"]

# Above these counts another notation is easier to read: 1/3.7s rather than 973/h.
_PLAIN_COUNT_MAX: Final = {"s": 10_000, "m": 120, "h": 120}


def duration_text(us: int) -> str:
    """Format a duration exactly, as in ``1.5s``, ``250ms`` or ``10m``."""
    if us >= _HOUR_US and us % _HOUR_US == 0:
        return f"{us // _HOUR_US}h"
    # One minute is written as 60s, as is usual for timeouts.
    if us > _MINUTE_US and us % _MINUTE_US == 0:
        return f"{us // _MINUTE_US}m"
    return spaced_duration_text(us).replace(" ", "")


def _range_text(text: Callable[[int], str], *, is_falling: bool = False) -> Callable[[tuple[int, int]], str]:
    """Return a function that formats ranges. A range of one value is written as that value."""

    def write(bounds: tuple[int, int]) -> str:
        low, high = reversed(bounds) if is_falling else bounds
        return text(low) if low == high else f"{text(low)}..{text(high)}"

    return write


def rate_text(interval_us: int) -> str:
    """Format a rate from its mean interval, as in ``10/s``, ``12/m`` or ``1/7s``."""
    for unit, count_max in _PLAIN_COUNT_MAX.items():
        period_us = _US_PER_UNIT[unit]
        count = round(period_us / interval_us)
        if 0 < count <= count_max and round(period_us / count) == interval_us:
            return f"{count}/{unit}"
    return f"1/{duration_text(interval_us)}"


def probability_text(probability: float) -> str:
    """Format a probability with all its digits. YAML needs a point in `1.0e-07`."""
    digits, e, exponent = repr(probability).partition("e")
    return f"{digits if '.' in digits or not e else digits + '.0'}{e}{exponent}"


def _node_text(node: object) -> str | None:
    """Return the name of a server that is not a broker; None for anything else."""
    return process_name(node) if isinstance(node, int) and node >= FIRST_ZOOKEEPER_ID else None


def field_text(kind: type[Any], value: Any) -> str | None:
    """Format a value of this kind; None if the YAML writer has to format it."""
    text = _text_of(kind)
    return None if text is None else text(value)


@derived
def _text_of(kind: type[Any]) -> Callable[[Any], str | None] | None:
    return kinds.by_kind(_FIELD_TEXTS, kind)


_FIELD_TEXTS: Final[dict[type[Any], Callable[[Any], str | None]]] = {
    kinds.BrokerMarker: _node_text,
    kinds.ControllerIdMarker: _node_text,
    kinds.EndpointMarker: _node_text,
    kinds.DurationMarker: duration_text,
    kinds.DurationRangeMarker: _range_text(duration_text),
    kinds.DurationOrNeverMarker: lambda us: "never" if us is None else duration_text(us),
    kinds.RateMarker: rate_text,
    kinds.BandwidthMarker: bandwidth_text,
    kinds.RateRangeMarker: _range_text(rate_text, is_falling=True),
    kinds.NumberRangeMarker: _range_text(str),
    kinds.ProbabilityMarker: probability_text,
    kinds.DurationBoundMarker: _bound_text(duration_text),
    kinds.CountBoundMarker: _bound_text(str),
    kinds.ShareBoundMarker: _bound_text(share_text),
}


def setting_text(name: str, value: Value) -> str:
    """Format the value of a setting. A time becomes a duration if that is easier to read."""
    scopes = scopes_of(name)
    kind = SETTINGS[scopes[0], name].kind if scopes else ""
    if isinstance(value, int) and not isinstance(value, bool) and kind in _US_PER_SETTING_UNIT:
        us = value * _US_PER_SETTING_UNIT[kind]
        duration_min_us = US_PER_SECOND if kind == "ms" else 2 * _MINUTE_US
        # A time of more than a day means never, so it stays a number, as in Kafka.
        if duration_min_us <= us <= LONGEST_US:
            text = duration_text(us)
            return text if kind == "ms" or not text.endswith("s") else str(value)
    return value_text(value)

"""Shapes read the values of a file, their positions and all mistakes in one pass."""

from dataclasses import dataclass

from harrow.campaigns.language.declared_shapes import section_of
from harrow.campaigns.language.part import Section
from harrow.campaigns.language.readers.section import SectionReader
from harrow.campaigns.language.shapes import (
    NAME,
    Key,
    ListShape,
    MapShape,
    Reading,
    SectionShape,
    schema_of,
    whole,
)
from harrow.campaigns.language.yaml_positions import Mistake, compose
from harrow.cluster_model.fields import Count, Duration, described
from tests.campaigns.language.campaign_texts import problems


@dataclass(frozen=True, slots=True, kw_only=True)
class PumpSpec:
    """A pump, unknown to campaigns."""

    name: str = described("Its name.")
    strokes: Count = described("How many.", default=1)
    pause_us: Duration = described("Between two of them.", key="pause", default=0)
    valves: tuple[int, ...] = described("Which open.", default=(), minimum=0, unique=True)


def read(section: SectionShape, text: str) -> tuple[Section | None, list[Mistake]]:
    root = compose(text).root
    reading = Reading(lambda _section, key: f"unknown {key}")
    return section.read(root, "", root.mark, reading), reading.mistakes


def test_a_section_can_be_read_into_any_declared_dataclass() -> None:
    section, mistakes = read(section_of(PumpSpec), "name: p\npause: 2s\nvalves: 3\n")
    assert mistakes == []
    assert section is not None
    assert section.as_dict() == {"name": "p", "pause": 2_000_000, "valves": [3]}
    assert (section / "pause").mark[:2] == (2, 8)
    assert (section / "pause").key_mark[:2] == (2, 1)
    assert schema_of(section_of(PumpSpec))["required"] == ["name"]


def test_a_section_can_be_read_into_a_dataclass_without_a_campaign() -> None:
    reading = Reading(lambda _section, key: f"unknown {key}")
    root = compose("{name: p, pause: 2s, valves: [3, 3]}").root
    section = section_of(PumpSpec).read(root, "", root.mark, reading)
    assert section is not None
    pump = SectionReader(reading).read(PumpSpec, section)
    assert pump == PumpSpec(name="p", pause_us=2_000_000, valves=(3, 3))
    assert [(mistake.mark.column, mistake.message) for mistake in reading.mistakes] == [
        (34, "3 is listed twice")
    ]


def test_every_mistake_in_a_section_is_reported_in_one_pass_and_the_rest_is_read() -> None:
    section, mistakes = read(section_of(PumpSpec), "name: p\nstrokes: 0\npase: 1s\nvalves: [1, x, 3]\n")
    assert [(*mistake.mark[:2], mistake.message) for mistake in mistakes] == [
        (2, 10, "strokes: 0 is too small: at least 1"),
        (4, 13, "valves: expected a whole number, not `x`"),
        (3, 1, "unknown pase"),
    ]
    assert section is not None
    assert section.as_dict() == {"name": "p", "valves": [1, 3]}


def test_a_section_with_a_reported_mistake_is_not_sound() -> None:
    section, _ = read(section_of(PumpSpec), "name: p\npase: 1s\nvalves: [x]\n")
    assert section is not None
    assert section.is_sound("name")
    assert section.is_sound("strokes")
    assert not section.is_sound("pause")
    assert not section.is_sound("valves")
    assert not section.is_sound("valves", 0)
    assert not section.is_whole


def test_a_section_without_a_required_key_is_left_out() -> None:
    pumps = SectionShape(title="Pumps", doc="", keys={"all": Key(ListShape(section_of(PumpSpec)), "")})
    section, mistakes = read(pumps, "all: [{strokes: 2}, {name: b}]")
    assert [mistake.message for mistake in mistakes] == ["all: `name` is missing"]
    assert section is not None
    assert [part.get("name") for part in section / "all"] == ["b"]
    assert (section / "all").rejected


def test_a_missing_part_has_the_position_of_its_section() -> None:
    section, _ = read(section_of(PumpSpec), "\n\nname: p")
    assert section is not None
    assert (section / "pause" / "whatever").mark == section.mark
    assert (section / "pause").get("whatever") is None


def test_a_wrong_key_of_a_mapping_is_reported_at_the_key() -> None:
    counts = SectionShape(title="Counts", doc="", keys={"of": Key(MapShape(whole(0), whole(1)), "")})
    section, mistakes = read(counts, "of: {1: 1, a: 1, 2: 0}")
    assert [(mistake.mark.column, mistake.message) for mistake in mistakes] == [
        (12, "expected a whole number, not `a`"),
        (21, "2: 0 is too small: at least 1"),
    ]
    assert section is not None
    assert section.as_dict() == {"of": {1: 1}}


def test_two_sections_with_one_name_have_separate_definitions() -> None:
    def key(doc: str) -> Key:
        return Key(SectionShape(title="Same", doc=doc, keys={"k": Key(NAME, "")}), "")

    schema = schema_of(SectionShape(title="Root", doc="", keys={"a": key("One."), "b": key("Other.")}))
    assert schema["properties"] == {"a": {"$ref": "#/$defs/Same"}, "b": {"$ref": "#/$defs/Same2"}}
    assert schema["$defs"]["Same2"]["description"] == "Other."


def test_a_wrong_broker_in_a_list_is_reported_at_its_position() -> None:
    (problem,) = problems(
        "faults: [{at: 1s, do: {broker_crash: {broker: [0, x]}}}]\nworkload: {duration: 2s}"
    )
    assert problem.startswith("1:51: broker: `x` is not a broker")

"""Validates the files of a sweep before they are used: a folder may come from anywhere."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from harrow.campaigns.language.literals import campaign_name
from harrow.campaigns.sweep.part_file import PROBES, SEED_RANGES
from harrow.cluster_model.settings import LONG_MAX

_Count = Annotated[int, Field(ge=0, le=LONG_MAX + 1)]
_CampaignName = Annotated[str, AfterValidator(campaign_name)]
"""The name of a campaign. It is also a file name, so it must not lead out of the folder."""


class _StatePart(BaseModel):
    model_config = ConfigDict(strict=True)


class _Campaign(_StatePart):
    campaign: _CampaignName
    argument: str
    set: list[str]
    cluster_files: dict[str, str] = {}


class _Cell(_StatePart):
    campaign: _CampaignName
    cell: str
    variant: str
    settings: dict[str, str]


class _Skipped(_StatePart):
    campaign: _CampaignName
    settings: dict[str, str]
    reason: str


class _State(_StatePart):
    version: str
    model: str | None = None
    seeds: Annotated[list[_Count], Field(min_length=2, max_length=2)]
    runs: _Count
    campaigns: list[_Campaign]
    cells: list[_Cell]
    skipped: list[_Skipped] = []
    files: list[str] = []
    complete: bool = False
    engine: str = ""
    workers: _Count = 0
    elapsed_s: Annotated[float, Field(ge=0, le=1e12)] = 0
    # The sweep runs some runs twice. These are the numbers of second runs, in all and by another
    # worker, and the (cell, seed) of each run whose second result differed from its first.
    repeated: _Count = 0
    repeated_elsewhere: _Count = 0
    unequal: list[tuple[_Count, _Count]] = Field(default=[], strict=False)


_SEED_RANGES: Final = TypeAdapter(list[tuple[str, _Count, _Count]], config=ConfigDict(strict=True))
_PROBES: Final = TypeAdapter(list[str], config=ConfigDict(strict=True))

_PATH_DEPTH_MAX: Final = 4


def seed_ranges_of(metadata: Mapping[bytes, bytes]) -> list[tuple[str, int, int]]:
    """Return the cells in a file of rows, each with its first seed and the end of its seeds.

    The end is exclusive.

    Raises:
        ValueError: The file's metadata does not list the cells, or is damaged.

    """
    return _SEED_RANGES.validate_json(metadata.get(SEED_RANGES, b""))


def probes_of(metadata: Mapping[bytes, bytes]) -> list[str]:
    """Return the rare states that the rows of a file reached.

    Raises:
        ValueError: The file's metadata is damaged.

    """
    return _PROBES.validate_json(metadata.get(PROBES, b"[]"))


def problem_of(state: dict[str, Any]) -> str | None:
    """Return what is wrong with a ``sweep.json``; None if it is valid."""
    try:
        _State.model_validate(state)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc'][:_PATH_DEPTH_MAX]))}: {first['msg']}"
    return None

"""The model of the section `core`: which brokers are healed first."""

from typing import Annotated

from pydantic import Field

from campaigns.section import BrokerId, OneOrMany, PositiveDuration, Section


class CoreSection(Section):
    """Which brokers are healed first after the faults: as many as suffice, while the others stay as they are."""

    emptiable = True

    order: Annotated[list[BrokerId], OneOrMany()] | None = Field(
        default=None, description="In which order brokers are healed; those that are not named come last."
    )
    within: PositiveDuration | None = Field(
        default=None,
        description="How long until all has to be well; by default what Kafka's timeouts add up to.",
    )

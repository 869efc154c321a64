"""Describes a live cluster as a source for `harrow import`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from harrow.campaigns.sources.description import (
    Description,
    Server,
    SourceLine,
    StatedRelease,
    TopicDescription,
)
from harrow.live_cluster.releases.kafka_release import KRAFT
from harrow.live_cluster.users.target_file import load_target_file
from harrow.live_cluster.users.user_cluster import PREFIX
from harrow.live_cluster.users.users_brokers import reported_by_brokers, settings_of_topics, survey_of
from harrow.live_cluster.wire.survey import ReportedSetting, Survey

_LINE: Final = 0
"""Answers of brokers have no lines."""
_ROLES: Final = "process.roles"


def describe_target(file: str) -> Description:
    """Return what the brokers of a target file say about themselves and their topics.

    Raises:
        TargetFileError: The file has mistakes.
        LiveError: The cluster does not answer, or does not describe itself.

    """
    target = load_target_file(Path(file))
    survey = survey_of(target)
    return surveyed_cluster(
        file, survey, reported_by_brokers(target, survey), settings_of_topics(target, survey)
    )


def surveyed_cluster(
    file: str,
    survey: Survey,
    settings: Mapping[int, Mapping[str, ReportedSetting]],
    topics: Mapping[str, Mapping[str, str]],
) -> Description:
    """Return the brokers with their *settings*, and the *topics* that are not Kafka's own."""
    servers = []
    for node in survey.brokers:
        facts = {"node.id": str(node.id), **({"broker.rack": node.rack} if node.rack else {})}
        reported = settings[node.id]
        if survey.metadata == KRAFT and _ROLES not in reported:
            facts[_ROLES] = "broker"
        own, defaults = (
            tuple(
                SourceLine(file, _LINE, name, setting.value)
                for name, setting in reported.items()
                if setting.is_default == is_default
            )
            for is_default in (False, True)
        )
        servers.append(Server(entries=own, defaults=defaults, facts=facts))
    return Description(
        servers=tuple(servers),
        topics=tuple(
            TopicDescription(
                name=topic,
                assignment=assignment,
                entries=tuple(
                    SourceLine(file, _LINE, name, value) for name, value in topics.get(topic, {}).items()
                ),
            )
            for topic, assignment in sorted(survey.assignments.items())
            if not topic.startswith((PREFIX, "__"))
        ),
        releases=(
            StatedRelease(
                entry=SourceLine(file, _LINE, "release", survey.release.name), version=survey.release.name
            ),
        ),
        zookeeper_servers=None if survey.metadata == KRAFT else 1,
    )

"""What ``--target`` names."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from harrow.cli.console import say
from harrow.cli.session import Refusal

if TYPE_CHECKING:
    from rich.console import Console

    from harrow.live_cluster.live_run import StartedBrokers

MODEL: Final = "model"
_KAFKA: Final = "kafka:"


def started_brokers(
    target: str, kafka_home: Path | None, messages: "Console", *, quiet: bool
) -> "StartedBrokers":
    """Return the brokers that a target names, with Kafka in place to start them.

    Raises:
        Refusal: there is no Java or no Kafka, or harrow's extra `live` is not installed.
        typer.BadParameter: it names nothing that can be run on.

    """
    if not target.startswith(_KAFKA):
        raise typer.BadParameter(
            f"{target!r} is no target: give model, or a release such as kafka:2.4.1", param_hint="--target"
        )
    try:
        from harrow.live_cluster.live_run import StartedBrokers
    except ModuleNotFoundError as error:
        raise Refusal(f"{error.name} is not installed: pip install 'kafka-harrow[live]'") from error
    from harrow.live_cluster.getting.java import JavaError, find_java
    from harrow.live_cluster.getting.kafka_cache import CacheError, default_cache
    from harrow.live_cluster.getting.kafka_release import ReleaseError, release_of
    from harrow.live_cluster.getting.maven import MavenError

    number, _, mode = target.removeprefix(_KAFKA).partition("-")
    try:
        release = release_of(number)
        metadata = mode or release.modes[0]
        if metadata not in release.modes:
            known = " or ".join(f"kafka:{number}-{known}" for known in release.modes)
            raise typer.BadParameter(f"{target!r} is no target: give {known}", param_hint="--target")
        java = find_java()
        if kafka_home is not None:
            jars = kafka_home / "libs"
            if not jars.is_dir():
                raise Refusal(f"{kafka_home} is no distribution of Kafka: it has no libs")
            return StartedBrokers(release=release, metadata=metadata, java=java, jars=jars.absolute())
        cache = default_cache()
        if not cache.has(release) and not quiet:
            say(messages, f"getting Kafka {release.name} ...")
        return StartedBrokers(release=release, metadata=metadata, java=java, jars=cache.get(release))
    except (CacheError, JavaError, MavenError, ReleaseError) as error:
        raise Refusal(str(error)) from error

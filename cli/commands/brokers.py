"""What ``--target`` names: the model, brokers that are started, or a cluster of the user's."""

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from harrow.campaigns.language.release_options import BrokerRelease
from harrow.campaigns.run.runner import RunStopped
from harrow.cli.console import say
from harrow.cli.extras import need
from harrow.cli.interrupts import Interrupts
from harrow.cli.session import Refusal

if TYPE_CHECKING:
    from rich.console import Console

    from harrow.campaigns.language.plan import Plan
    from harrow.live_cluster.local.started_brokers import StartedBrokers
    from harrow.live_cluster.releases.kafka_release import KafkaRelease
    from harrow.live_cluster.target.live_run import Brokers
    from harrow.live_cluster.users.users_brokers import UserBrokers

MODEL: Final = "model"
_KAFKA: Final = "kafka:"
_FILES: Final = (".yaml", ".yml")
ENDING: Final = tuple(each for each in signal.Signals if each.name in {"SIGTERM", "SIGHUP"})


@contextmanager
def real_brokers(
    target: str,
    plans: Iterable["Plan"],
    interrupts: Interrupts,
    messages: "Console",
    *,
    kafka_home: Path | None,
    consent: bool,
    quiet: bool,
) -> Iterator["Brokers"]:
    """Have the brokers that a target names; on a cluster of the user's nothing is done without *consent*, or leave in its file.

    What ends harrow is an interrupt meanwhile: a run keeps what it has seen, and on a cluster of the user's all is healed.

    Raises:
        FileError: the file of a cluster has mistakes.
        Refusal: the brokers cannot be had, or may not be touched.
        ModuleNotFoundError: harrow's extra `live` is not installed.
        typer.BadParameter: it names nothing that can be run on.

    """
    interrupts.heed(*ENDING)
    if not is_cluster_file(target):
        yield started_brokers(target, kafka_home, messages, quiet=quiet)
        return
    need("live")
    from harrow.live_cluster.errors import LiveError
    from harrow.live_cluster.users.cluster_file import load_cluster_file
    from harrow.live_cluster.users.journal import JournalError
    from harrow.live_cluster.users.users_brokers import user_brokers

    file = load_cluster_file(Path(target))
    try:
        with user_brokers(
            file, everything=consent, say=lambda line: None if quiet else say(messages, line)
        ) as brokers:
            _need_consent(brokers, plans, target)
            try:
                yield brokers
            finally:
                for left in brokers.in_force():
                    say(messages, f"left in force: {left}; heal it: harrow heal {target}", style="red")
    except JournalError as error:
        raise Refusal(f"nothing was done: {error}; see `harrow heal {target}`") from error
    except LiveError as error:
        raise Refusal(f"nothing was done: {error}") from error


def look_for(interrupts: Interrupts) -> None:
    """End a run on brokers, which has a result nevertheless, if there was an interrupt.

    Raises:
        RunStopped: there was.

    """
    if interrupts.is_waiting():
        raise RunStopped("an interrupt")


def broker_release(target: str) -> BrokerRelease | None:
    """Return the release of the brokers that a target names; None for the model, and for what names nothing that can be run on.

    Raises:
        FileError: the file of a cluster has mistakes.
        Refusal: there is no such release, or the cluster does not answer.
        ModuleNotFoundError: harrow's extra `live` is not installed.
        typer.BadParameter: the release does not keep its metadata there.

    """
    if target.startswith(_KAFKA):
        need("live")
        release, metadata = _release_of(target)
        return BrokerRelease(release.model_release, metadata)
    if target == MODEL or not is_cluster_file(target):
        return None
    need("live")
    from harrow.live_cluster.errors import LiveError
    from harrow.live_cluster.users.cluster_file import load_cluster_file
    from harrow.live_cluster.users.users_brokers import survey_of

    file = load_cluster_file(Path(target))
    try:
        seen = survey_of(file)
    except LiveError as error:
        raise Refusal(f"nothing was done: {error}") from error
    return BrokerRelease(seen.release.model_release, seen.metadata)


def is_cluster_file(target: str) -> bool:
    """Return whether a target is the file of a cluster."""
    return target.endswith(_FILES) or (not target.startswith(_KAFKA) and Path(target).is_file())


def _need_consent(brokers: "UserBrokers", plans: Iterable["Plan"], target: str) -> None:
    from harrow.live_cluster.users.cluster_file import described_permissions
    from harrow.live_cluster.users.users_brokers import missing_permissions

    missing = missing_permissions(brokers, plans)
    if missing:
        raise Refusal(
            f"nothing was done: {target} does not allow what this would do there:",
            *(f"  {words}" for words in described_permissions(brokers.file, missing)),
            f"give --yes, or `allow: [{', '.join(missing)}]` in {target}",
        )


def started_brokers(
    target: str, kafka_home: Path | None, messages: "Console", *, quiet: bool
) -> "StartedBrokers":
    """Return the brokers that a target names; Java and Kafka are looked for when the first ones start.

    Raises:
        Refusal: the folder of a distribution is none. Later, when brokers start: there is no Java or no Kafka.
        ModuleNotFoundError: harrow's extra `live` is not installed.
        typer.BadParameter: it names nothing that can be started.

    """
    if not target.startswith(_KAFKA):
        raise typer.BadParameter(
            f"{target!r} is no target: give model, or a release such as kafka:2.4.1, or the file of a cluster",
            param_hint="--target",
        )
    need("live")
    from harrow.live_cluster.local.started_brokers import StartedBrokers
    from harrow.live_cluster.releases.java import JavaError, find_java
    from harrow.live_cluster.releases.kafka_cache import CacheError, default_cache
    from harrow.live_cluster.releases.maven import MavenError

    release, metadata = _release_of(target)
    kafka_cache = default_cache()
    jars = kafka_cache.folder_of(release) if kafka_home is None else kafka_home / "libs"
    if kafka_home is not None and not jars.is_dir():
        raise Refusal(f"{kafka_home} is no distribution of Kafka: it has no libs")
    java, no_java = Path(), None
    try:
        java = find_java()
    except JavaError as error:
        no_java = error

    @cache
    def get() -> None:
        if no_java is not None:
            raise Refusal(str(no_java))
        if kafka_home is not None:
            return
        if not kafka_cache.has(release) and not quiet:
            say(messages, f"getting Kafka {release.name} ...")
        try:
            kafka_cache.get(release)
        except (CacheError, MavenError) as error:
            raise Refusal(str(error)) from error

    return StartedBrokers(
        release=release,
        metadata=metadata,
        java=java,
        jars=jars.absolute(),
        is_cached=kafka_home is None,
        get=get,
    )


def _release_of(target: str) -> tuple["KafkaRelease", str]:
    """Return the release that a target names, and where its brokers keep their metadata.

    Raises:
        Refusal: there is no such release.
        typer.BadParameter: the release does not keep it there.

    """
    from harrow.live_cluster.releases.kafka_release import ReleaseError, release_of

    number, _, mode = target.removeprefix(_KAFKA).partition("-")
    try:
        release = release_of(number)
    except ReleaseError as error:
        raise Refusal(str(error)) from error
    metadata = mode or release.modes[0]
    if metadata not in release.modes:
        known = " or ".join(f"kafka:{number}-{known}" for known in release.modes)
        raise typer.BadParameter(f"{target!r} is no target: give {known}", param_hint="--target")
    return release, metadata

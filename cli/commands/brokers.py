"""Connects a command to the brokers of ``--target``: harrow's own, or the user's cluster."""

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from harrow.campaigns.language.release_options import BrokerRelease
from harrow.campaigns.run.runner import RunStopped
from harrow.cli.console import message_console, say
from harrow.cli.extras import need
from harrow.cli.interrupts import Interrupts
from harrow.cli.requests.run import RunRequest
from harrow.cli.session import Refusal, note

if TYPE_CHECKING:
    from harrow.campaigns.language.plan import Plan
    from harrow.cli.requests.real_brokers import ConformRequest
    from harrow.live_cluster.local.started_brokers import StartedBrokers
    from harrow.live_cluster.releases.kafka_release import KafkaRelease
    from harrow.live_cluster.target.live_run import Brokers
    from harrow.live_cluster.users.users_brokers import UserBrokers

MODEL: Final = "model"
_KAFKA: Final = "kafka:"
_FILES: Final = (".yaml", ".yml")
TERMINATION_SIGNALS: Final = tuple(each for each in signal.Signals if each.name in {"SIGTERM", "SIGHUP"})


@contextmanager
def real_brokers(
    request: "RunRequest | ConformRequest", plans: Iterable["Plan"], interrupts: Interrupts
) -> Iterator["Brokers"]:
    """Yield the brokers of a target. The user's cluster needs ``--yes``, or permission in its file.

    Until the brokers are closed, a signal that would terminate harrow is an interrupt: a run keeps
    its observations, and the user's cluster is healed.
    """
    target = request.target
    interrupts.handle_also(*TERMINATION_SIGNALS)
    if not is_target_file(target):
        yield started_brokers(request)
        return
    need("live")
    from harrow.live_cluster.errors import LiveError
    from harrow.live_cluster.users.journal import JournalError
    from harrow.live_cluster.users.target_file import load_target_file
    from harrow.live_cluster.users.users_brokers import user_brokers

    file = load_target_file(Path(target))
    try:
        with user_brokers(file, everything=request.consent, say=partial(note, request)) as brokers:
            _need_consent(brokers, plans, target)
            try:
                yield brokers
            finally:
                messages = message_console(no_color=request.no_color)
                for fault in brokers.in_force():
                    say(
                        messages,
                        f"this fault is still in force: {fault}; to undo it: harrow heal {target}",
                        style="red",
                    )
    except JournalError as error:
        raise Refusal(f"nothing was done: {error}; see `harrow heal {target}`") from error
    except LiveError as error:
        raise Refusal(f"nothing was done: {error}") from error


def stop_if_interrupted(interrupts: Interrupts) -> None:
    """Stop a run on brokers after an interrupt. A stopped run still has a result."""
    if interrupts.is_pending():
        raise RunStopped("an interrupt")


def broker_release(target: str) -> BrokerRelease | None:
    """Return the release of a target's brokers. Return None for the model or an invalid target."""
    if target.startswith(_KAFKA):
        need("live")
        release, metadata = _release_of(target)
        return BrokerRelease(release.model_release, metadata)
    if target == MODEL or not is_target_file(target):
        return None
    need("live")
    from harrow.live_cluster.errors import LiveError
    from harrow.live_cluster.users.target_file import load_target_file
    from harrow.live_cluster.users.users_brokers import survey_of

    file = load_target_file(Path(target))
    try:
        survey = survey_of(file)
    except LiveError as error:
        raise Refusal(f"nothing was done: {error}") from error
    return BrokerRelease(survey.release.model_release, survey.metadata)


def is_target_file(target: str) -> bool:
    return target.endswith(_FILES) or (not target.startswith(_KAFKA) and Path(target).is_file())


def _need_consent(brokers: "UserBrokers", plans: Iterable["Plan"], target: str) -> None:
    from harrow.live_cluster.users.target_file import described_permissions
    from harrow.live_cluster.users.users_brokers import missing_permissions

    missing = missing_permissions(brokers, plans)
    if missing:
        raise Refusal(
            f"nothing was done: {target} does not allow actions of these campaigns:",
            *(f"  {words}" for words in described_permissions(brokers.file, missing)),
            f"give --yes, or write `allow: [{', '.join(missing)}]` in {target}",
        )


def started_brokers(request: "RunRequest | ConformRequest") -> "StartedBrokers":
    """Return brokers that are not started yet. Without Java or Kafka, their start fails."""
    target, kafka_home = request.target, request.kafka_home
    if not target.startswith(_KAFKA):
        model = "model, " if isinstance(request, RunRequest) else ""
        raise typer.BadParameter(
            f"{target!r} is not a target: give {model}a release such as kafka:2.4.1, or a target file",
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
        raise Refusal(f"{kafka_home} is not a Kafka distribution: it has no folder libs")
    java, java_error = Path(), None
    try:
        java = find_java()
    except JavaError as error:
        java_error = error

    @cache
    def get() -> None:
        if java_error is not None:
            raise Refusal(str(java_error))
        if kafka_home is not None:
            return
        if not kafka_cache.has(release):
            note(request, f"downloading Kafka {release.name} ...")
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
    """Return the release that a target names, and its metadata mode (`zookeeper` or `kraft`)."""
    from harrow.live_cluster.releases.kafka_release import ReleaseError, release_of

    number, _, mode = target.removeprefix(_KAFKA).partition("-")
    try:
        release = release_of(number)
    except ReleaseError as error:
        raise Refusal(str(error)) from error
    metadata = mode or release.modes[0]
    if metadata not in release.modes:
        choices = " or ".join(f"kafka:{number}-{choice}" for choice in release.modes)
        raise typer.BadParameter(f"{target!r} is not a target: give {choices}", param_hint="--target")
    return release, metadata

"""`harrow kafka`: get releases of Kafka, list what is there, remove them."""

from harrow.campaigns.language.spelling import counted
from harrow.cli import exit_code
from harrow.cli.console import data_console, message_console, say, show
from harrow.cli.interrupts import Interrupts
from harrow.cli.render.layout import columns
from harrow.cli.requests.kafka import KafkaRequest
from harrow.cli.session import Refusal, write_json
from harrow.live_cluster.releases.kafka_cache import CacheError, KafkaCache, default_cache
from harrow.live_cluster.releases.kafka_release import (
    KafkaRelease,
    ReleaseError,
    pinned_releases,
    release_of,
)
from harrow.live_cluster.releases.maven import MavenError
from harrow.live_cluster.releases.repository import DownloadError


def session(request: KafkaRequest) -> int:
    """Do what is asked, release by release, and return the exit code."""
    cache = default_cache()
    try:
        releases = [release_of(text) for text in request.releases or ()]
        if request.action == "list":
            _list(request, cache, releases)
            return exit_code.OK
        if not releases:
            raise Refusal(f"name a release to {request.action}, such as {pinned_releases()[-1].name}")
        with Interrupts():
            for release in releases:
                (_get if request.action == "get" else _remove)(request, cache, release)
    except (CacheError, DownloadError, MavenError, ReleaseError) as error:
        raise Refusal(str(error)) from error
    return exit_code.OK


def _get(request: KafkaRequest, cache: KafkaCache, release: KafkaRelease) -> None:
    messages = message_console(no_color=request.no_color)
    is_there = cache.has(release)
    if not request.quiet and not is_there:
        say(messages, f"getting Kafka {release.name} ...")
    folder = cache.get(release, request.repository)
    if request.quiet:
        return
    jars = counted(len(list(folder.glob("*.jar"))), "jar")
    say(messages, f"Kafka {release.name} is in {folder}: {jars}" + (", as before" if is_there else ""))
    if not release.is_pinned:
        say(
            messages,
            f"harrow does not know the jars of {release.name}: it took them as they came",
            style="yellow",
        )


def _remove(request: KafkaRequest, cache: KafkaCache, release: KafkaRelease) -> None:
    if not cache.has(release):
        raise Refusal(f"Kafka {release.name} is not in {cache.folder_of(release).parent}")
    cache.remove(release)
    if not request.quiet:
        say(message_console(no_color=request.no_color), f"removed Kafka {release.name}")


def _list(request: KafkaRequest, cache: KafkaCache, releases: list[KafkaRelease]) -> None:
    """Print the releases that harrow knows or has, or those that were named."""
    known = {release.name: release for release in (*pinned_releases(), *cache.releases())}
    shown = releases or sorted(known.values(), key=lambda release: [*map(int, release.name.split("."))])
    console = data_console(no_color=request.no_color)
    if request.output_format == "json":
        write_json(
            console,
            {
                "schema": "harrow.kafka/1",
                "releases": [
                    {
                        "release": release.name,
                        "pinned": release.is_pinned,
                        "modes": list(release.modes),
                        "folder": str(cache.folder_of(release)) if cache.has(release) else None,
                    }
                    for release in shown
                ],
            },
        )
        return
    table = columns("release", "metadata", "jars", "folder")
    for release in shown:
        folder = str(cache.folder_of(release)) if cache.has(release) else "-"
        table.add_row(
            release.name,
            " or ".join(release.modes),
            "pinned" if release.is_pinned else "as they came",
            folder,
        )
    show(console, table)

"""`harrow kafka`: downloads, lists and removes releases of Kafka."""

from harrow.campaigns.language.spelling import counted
from harrow.cli import exit_code
from harrow.cli.console import data_console, message_console, say, show
from harrow.cli.interrupts import Interrupts
from harrow.cli.render.layout import columns
from harrow.cli.requests.real_brokers import KafkaRequest
from harrow.cli.session import Refusal, note, write_json
from harrow.live_cluster.releases.kafka_cache import CacheError, KafkaCache, default_cache
from harrow.live_cluster.releases.kafka_release import KafkaRelease, ReleaseError, pinned_releases, release_of
from harrow.live_cluster.releases.maven import MavenError
from harrow.live_cluster.releases.repository import DownloadError


def session(request: KafkaRequest) -> int:
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
    was_cached = cache.has(release)
    if not was_cached:
        note(request, f"downloading Kafka {release.name} ...")
    folder = cache.get(release, request.repository)
    jars = counted(len(list(folder.glob("*.jar"))), "jar")
    note(
        request, f"Kafka {release.name} is in {folder}: {jars}{', downloaded earlier' if was_cached else ''}"
    )
    if not release.is_pinned and not request.quiet:
        message = f"harrow has no checksums for the jars of {release.name} and did not check them"
        say(message_console(no_color=request.no_color), message, style="yellow")


def _remove(request: KafkaRequest, cache: KafkaCache, release: KafkaRelease) -> None:
    if not cache.has(release):
        raise Refusal(f"Kafka {release.name} is not in {cache.folder_of(release).parent}")
    cache.remove(release)
    note(request, f"removed Kafka {release.name}")


def _list(request: KafkaRequest, cache: KafkaCache, releases: list[KafkaRelease]) -> None:
    """Print the releases of the request; by default, all that are pinned or downloaded."""
    by_name = {release.name: release for release in (*pinned_releases(), *cache.releases())}
    releases = releases or sorted(by_name.values(), key=lambda release: [*map(int, release.name.split("."))])
    folders = [str(cache.folder_of(release)) if cache.has(release) else None for release in releases]
    console = data_console(no_color=request.no_color)
    if request.output_format == "json":
        mappings = [
            {
                "release": release.name,
                "pinned": release.is_pinned,
                "modes": list(release.modes),
                "folder": folder,
            }
            for release, folder in zip(releases, folders, strict=True)
        ]
        write_json(console, {"schema": "harrow.kafka/1", "releases": mappings})
        return
    table = columns("release", "metadata", "jars", "folder")
    for release, folder in zip(releases, folders, strict=True):
        pinned = "pinned" if release.is_pinned else "unchecked"
        table.add_row(release.name, " or ".join(release.modes), pinned, folder or "-")
    show(console, table)

"""`harrow kafka` lists, downloads and removes releases."""

import json
from pathlib import Path

from harrow.live_cluster.releases.kafka_release import pinned_releases
from tests.cli.conftest import Harrow


def test_kafka_list_shows_the_available_releases(harrow: Harrow, tmp_path: Path) -> None:
    cache = {"HARROW_CACHE": str(tmp_path)}
    listed = harrow("kafka", "list", **cache)
    assert listed.returncode == 0
    assert [line.split()[0] for line in listed.stdout.splitlines()[1:]] == [r.name for r in pinned_releases()]
    (tmp_path / "kafka" / "2.4.1").mkdir(parents=True)
    (tmp_path / "kafka" / "2.4.1" / "jars.txt").touch()
    document = json.loads(harrow("kafka", "list", "2.4.1", "3.9.2", "--format", "json", **cache).stdout)
    assert document == {
        "schema": "harrow.kafka/1",
        "releases": [
            {
                "release": "2.4.1",
                "pinned": True,
                "modes": ["zookeeper"],
                "folder": str(tmp_path / "kafka" / "2.4.1"),
            },
            {"release": "3.9.2", "pinned": True, "modes": ["kraft", "zookeeper"], "folder": None},
        ],
    }
    removed = harrow("kafka", "remove", "2.4.1", **cache)
    assert (removed.returncode, removed.stderr) == (0, "harrow: removed Kafka 2.4.1\n")
    assert not (tmp_path / "kafka" / "2.4.1").exists()


def test_an_impossible_request_is_refused_in_one_line(harrow: Harrow, tmp_path: Path) -> None:
    cache = {"HARROW_CACHE": str(tmp_path)}
    for arguments, message in [
        (("get",), "name a release to get, such as"),
        (("get", "2.4"), "`2.4` is not a release of Kafka; did you mean `2.4.1`?"),
        (
            ("get", "2.4.1", "--repository", "ftp://nowhere"),
            "ftp://nowhere is not the address of a repository",
        ),
        (("get", "2.4.1", "--repository", (tmp_path / "none").as_uri()), "cannot get file://"),
        (("remove", "2.4.1"), "Kafka 2.4.1 is not in"),
    ]:
        ended = harrow("kafka", *arguments, **cache)
        assert ended.returncode == 2
        assert ended.stderr.splitlines()[-1].startswith(f"harrow: {message}")
        assert ended.stdout == ""

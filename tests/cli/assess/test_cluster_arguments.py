"""The cluster that users name is tried as it is, or the mistake has one line."""

from pathlib import Path

import pytest

from tests.cli.conftest import Harrow

BLOCK = """\
# A cluster of mine.
kafka: "2.4"

settings:
  # of all producers
  acks: 1
brokers:
- {id: 7, rack: a}
- {id: 8, rack: b}
disk: {flush: 2ms}
topics:
- {name: pay, replication_factor: 2}
"""
SERVER = "broker.id=1\nzookeeper.connect=z:2181\nmin.insync.replicas=1\n"


def test_a_cluster_file_in_block_form_is_tried_as_it_is(harrow: Harrow, folder: Path) -> None:
    (folder / "shop.yaml").write_text(BLOCK, encoding="utf-8")
    shown = harrow("assess", "shop.yaml", "--show", "controller-dies", "--runs", "1")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "--cluster shop.yaml" in shown.stdout


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("settings:\n  acks: 1\n", "it describes no cluster"),
        ("settings: # all\n\n  acks: 1\nbrokers: [\n", "shop.yaml:5:1: not valid YAML"),
    ],
)
def test_a_section_with_settings_is_no_properties_file(
    harrow: Harrow, folder: Path, section: str, message: str
) -> None:
    (folder / "shop.yaml").write_text(section, encoding="utf-8")
    ended = harrow("import", "shop.yaml")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert message in ended.stderr


def test_a_cluster_file_is_not_imported_and_stands_alone(harrow: Harrow, folder: Path) -> None:
    (folder / "shop.yaml").write_text(BLOCK, encoding="utf-8")
    (folder / "server.properties").write_text(SERVER, encoding="utf-8")
    for arguments in (
        ("import", "shop.yaml"),
        ("assess", "shop.yaml", "server.properties"),
        ("advise", "server.properties", "shop.yaml", "--survive", "one broker"),
    ):
        ended = harrow(*arguments)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert (
            "shop.yaml: this is already a cluster file: there is nothing to import, and it stands alone"
            in ended.stderr
        )


def test_a_live_cluster_is_read_as_import_reads_it(harrow: Harrow, folder: Path) -> None:
    (folder / "live.yaml").write_text("bootstrap: localhost:1\n", encoding="utf-8")
    (expected,) = harrow("import", "live.yaml").stderr.splitlines()
    for arguments in (("assess", "live.yaml"), ("advise", "live.yaml", "--survive", "one broker")):
        ended = harrow(*arguments)
        assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", f"{expected}\n")


def test_a_file_that_is_no_cluster_is_named_itself(harrow: Harrow, folder: Path) -> None:
    (folder / "tool").write_bytes(b"\x7fELF\x02\xf0\x80")
    (folder / "large.yaml").write_text("brokers: 3\n" + "#" * (1 << 20), encoding="utf-8")
    for name, message in (
        ("tool", "tool:1:6: not UTF-8: the byte 0xf0"),
        ("large.yaml", "large.yaml:1:1: the file is larger than 1 MiB"),
        ("missing.yaml", "missing.yaml: cannot be read: No such file or directory"),
    ):
        ended = harrow("assess", name)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert message in ended.stderr


def test_users_are_told_what_is_tried_where_they_name_no_topics_and_no_disks(
    harrow: Harrow, folder: Path
) -> None:
    (folder / "bare.yaml").write_text("brokers: 2\n", encoding="utf-8")
    ended = harrow("assess", "bare.yaml", "--runs", "1")
    assert "no topics are named: harrow tries one with a partition and 2 replicas" in ended.stderr
    assert "no kind of disk is named: a flush takes 1ms, as on an SSD" in ended.stderr


def test_advise_tries_one_topic_of_each_kind_like_assess(harrow: Harrow, folder: Path) -> None:
    topics = "".join(f"- {{name: t-{number}, partitions: 5, replication_factor: 2}}\n" for number in range(9))
    text = BLOCK[: BLOCK.index("- {name: pay")] + topics
    (folder / "many.yaml").write_text(text, encoding="utf-8")
    ended = harrow(
        *("advise", "many.yaml", "--survive", "one broker", "--change", "acks", "--runs", "1"),
        *("--format", "json", "--set", "acks=1"),
    )
    assert "5 of 45 partitions are tried, in 1 of 9 topics" in ended.stderr
    assert "cluster.topics=" in ended.stdout

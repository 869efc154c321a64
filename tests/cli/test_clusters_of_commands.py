"""What commands write about a campaign on a cluster file does not need the file any more."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.cli.conftest import Harrow

SHOP: Final = """\
brokers: [{id: 7}, {id: 8}]
settings: {acks: 1}
topics: [{name: orders, assignment: [[7, 8]]}]
"""
LOSES: Final = """\
demand: lost-write
workload: {producers: [{name: p}]}
script:
  - do:
      - partition: {between: [7], and: [8]}
      - send: {value: m0, partition: orders-0}
  - when: {acked: m0}
    do: {broker_crash: {broker: 7}}
  - when: {replicas: {orders-0: {8: {role: leader}}}}
"""
CAMPAIGN: Final = "sub/loses.yaml"
OTHER_CLUSTER: Final = "cluster: {brokers: 3}\n"
WAYS: Final = {
    "named by the campaign": ("cluster: shop.yaml\n", ()),
    "named by --cluster": ("", ("--cluster", "sub/shop.yaml")),
    "named by --cluster in place of another": (OTHER_CLUSTER, ("--cluster", "sub/shop.yaml")),
    "named by --set": (OTHER_CLUSTER, ("--set", "cluster=sub/shop.yaml")),
}


def _run(harrow: Harrow, folder: Path, cluster: Sequence[str]) -> list[tuple[str, ...]]:
    assert harrow("run", CAMPAIGN, *cluster, "--results", "here").returncode == 1
    assert "report.md" in {path.name for path in (folder / "here" / "latest").iterdir()}
    run = "there/latest"
    return [("replay", run), ("trace", run), ("diff", run), ("run", f"{run}/campaign.yaml", "--no-results")]


def _shrink(harrow: Harrow, folder: Path, cluster: Sequence[str]) -> list[tuple[str, ...]]:
    (folder / "here").mkdir()
    ended = harrow("shrink", CAMPAIGN, *cluster, "--seed", "0", "-o", "here/small.yaml", "--quiet")
    assert ended.returncode == 0, ended.stderr
    return [("validate", "there/small.yaml"), ("run", "there/small.yaml", "--no-results")]


def _regress(harrow: Harrow, folder: Path, cluster: Sequence[str]) -> list[tuple[str, ...]]:
    ended = harrow("regress", "here", "--add", CAMPAIGN, *cluster, "--seed", "0")
    assert ended.returncode == 0, ended.stderr
    return [("regress", "there")]


def _sweep(harrow: Harrow, folder: Path, cluster: Sequence[str]) -> list[tuple[str, ...]]:
    swept = ("--seeds", "1", "--engine", "process", "--out", "here")
    assert harrow("sweep", CAMPAIGN, *cluster, *swept).returncode == 1
    (failure,) = (folder / "here" / "failures").glob("*/campaign.yaml")
    copy = str(Path("there") / failure.relative_to(folder / "here"))
    return [("sweep", "--report", "there"), ("validate", copy), ("run", copy, "--no-results")]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("write", [_run, _shrink, _regress, _sweep])
def test_what_a_command_writes_needs_no_cluster_file(
    harrow: Harrow,
    folder: Path,
    way: str,
    write: Callable[[Harrow, Path, Sequence[str]], list[tuple[str, ...]]],
) -> None:
    cluster, options = WAYS[way]
    (folder / "sub").mkdir()
    (folder / "sub" / "shop.yaml").write_text(SHOP, encoding="utf-8")
    (folder / CAMPAIGN).write_text(f"name: loses\n{cluster}{LOSES}", encoding="utf-8")
    readers = write(harrow, folder, options)
    (folder / "sub" / "shop.yaml").unlink()
    (folder / CAMPAIGN).unlink()
    (folder / "here").rename(folder / "there")
    for arguments in readers:
        ended = harrow(*arguments)
        printed = ended.stdout + ended.stderr
        assert ended.returncode in ((1,) if arguments[0] in ("run", "sweep") else (0,)), printed
        assert "shop.yaml" not in ended.stderr
        assert arguments[0] in ("validate", "replay", "sweep") or "m0" in printed

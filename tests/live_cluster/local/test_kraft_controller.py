"""Controllers get formatted storage, and only the first one of a release starts the formatter."""

import sys
from pathlib import Path
from typing import Never

import pytest

from harrow.live_cluster.local.java_program import JavaPrograms
from harrow.live_cluster.local.kraft_controller import FormatError, LocalController
from harrow.live_cluster.local.shared_classes import SharedClasses
from harrow.live_cluster.processes.child_processes import ChildProcesses
from harrow.live_cluster.processes.ports import LOOPBACK

# Formats as `kafka-storage` does and counts its runs; without a cluster id it fails.
TOOL = """\
#!{python}
import pathlib, sys
with open({runs!r}, "a") as runs:
    runs.write("run\\n")
settings = dict(line.split("=", 1) for line in open(sys.argv[-1]).read().splitlines())
cluster_id = sys.argv[sys.argv.index("--cluster-id") + 1]
if not cluster_id:
    sys.exit("no id")
logs = pathlib.Path(settings["log.dirs"])
(logs / "__cluster_metadata-0").mkdir(parents=True)
(logs / "__cluster_metadata-0" / "0.checkpoint").write_text("features")
(logs / "meta.properties").write_text(f"cluster.id={{cluster_id}}\\nnode.id={{settings['node.id']}}\\n")
"""


class Release:
    """A folder with jars and a fake Java that counts its runs."""

    def __init__(self, folder: Path, *, is_cached: bool) -> None:
        self.folder = folder
        self.jars = folder / "jars"
        self.jars.mkdir()
        self.java = folder / "java"
        self._runs = folder / "runs"
        self.java.write_text(TOOL.format(python=sys.executable, runs=str(self._runs)))
        self.java.chmod(0o755)
        self._shared = SharedClasses(self.jars, self.java, "kraft") if is_cached else None

    def formatted(self, cluster_id: str, controller: int = 3_000) -> dict[str, str]:
        """Format a controller's storage and return its files."""
        folder = self.folder / cluster_id / str(controller)
        with ChildProcesses() as children:
            programs = JavaPrograms(self.java, self.jars, children, self._shared)
            settings = {"node.id": controller}
            local_controller = LocalController(
                programs, controller, folder, (LOOPBACK, 1), settings, cluster_id
            )
            local_controller.format()
        return {
            str(file.relative_to(local_controller.logs)): file.read_text()
            for file in local_controller.logs.rglob("*")
            if file.is_file()
        }

    def runs(self) -> int:
        return len(self._runs.read_text().splitlines())


def test_the_formatter_runs_once_for_a_release_and_each_cluster_has_its_own_ids(tmp_path: Path) -> None:
    release = Release(tmp_path, is_cached=True)
    first, second = release.formatted("one"), release.formatted("two", 3_001)
    assert release.runs() == 1
    assert first.keys() == second.keys() == {"meta.properties", "__cluster_metadata-0/0.checkpoint"}
    assert second["__cluster_metadata-0/0.checkpoint"] == "features"
    assert ("cluster.id=two" in second["meta.properties"], "node.id=3001" in second["meta.properties"]) == (
        True,
        True,
    )
    assert not list((release.jars / "formatted").rglob("meta.properties"))
    assert [path.name for path in release.jars.iterdir() if path.suffix != ".lock"] == ["formatted"]


def test_formatted_storage_is_not_cached_beside_the_users_jars(tmp_path: Path) -> None:
    release = Release(tmp_path, is_cached=False)
    release.formatted("one")
    release.formatted("two")
    assert (release.runs(), list(release.jars.iterdir())) == (2, [])


def test_an_unwritable_cache_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = Release(tmp_path, is_cached=True)

    def refuse(*_: object, **__: object) -> Never:
        raise PermissionError

    monkeypatch.setattr("harrow.live_cluster.local.kraft_controller.exclusive_build_folder", refuse)
    assert release.formatted("one")
    assert (release.runs(), list(release.jars.iterdir())) == (1, [])


def test_a_folder_that_failed_to_format_is_not_cached(tmp_path: Path) -> None:
    release = Release(tmp_path, is_cached=True)
    with pytest.raises(FormatError, match="no id"):
        release.formatted("")
    assert list(release.jars.iterdir()) == []

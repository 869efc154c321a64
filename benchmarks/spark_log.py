"""What Spark's event log says about the tasks of an application."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MIB = 1 << 20


@dataclass(frozen=True)
class SparkLog:
    """The work of all tasks of an application.

    ``cpu_s`` is that of Java, and ``python_s`` the time in which Python worked for a task. The
    peaks are those of the memory of a process, while tasks ran in it: of all Python processes of an
    executor together, and of the heap of its Java.
    """

    stages: int
    tasks: int
    task_s: float
    cpu_s: float
    python_s: float
    shuffled_mib: int
    spilled_mib: int
    python_peak_mib: int
    heap_peak_mib: int

    def __str__(self) -> str:
        return (
            f"{self.stages} stages, {self.tasks} tasks, {self.task_s:.0f} s in tasks "
            f"({self.cpu_s:.0f} CPU s of Java, {self.python_s:.0f} s of Python), "
            f"{self.shuffled_mib} MiB shuffled, {self.spilled_mib} MiB spilled, peaks of an executor: "
            f"{self.python_peak_mib} MiB of Python, {self.heap_peak_mib} MiB of heap"
        )


def write_settings(folder: Path) -> Mapping[str, str]:
    """Write Spark's settings for a log into *folder*. Return the variables that point to them."""
    (folder / "log").mkdir()
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (folder / "log").as_uri(),
        "spark.eventLog.logStageExecutorMetrics": "true",
        "spark.executor.processTreeMetrics.enabled": "true",
        "spark.executor.metrics.pollingInterval": "200",
    }
    lines = "".join(f"{name} {value}\n" for name, value in settings.items())
    (folder / "spark-defaults.conf").write_text(lines, encoding="utf-8")
    return {"SPARK_CONF_DIR": str(folder)}


def read_log(folder: Path) -> SparkLog:
    """Read the log that an application with the settings in *folder* has written."""
    ended = list(_ended_tasks(folder / "log"))
    metrics = [task["Task Metrics"] for task in ended]
    peaks = [task.get("Task Executor Metrics", {}) for task in ended]
    return SparkLog(
        stages=len({task["Stage ID"] for task in ended}),
        tasks=len(ended),
        task_s=sum(task["Executor Run Time"] for task in metrics) / 1e3,
        cpu_s=sum(task["Executor CPU Time"] for task in metrics) / 1e9,
        python_s=sum(_python_ms(task["Task Info"]) for task in ended) / 1e3,
        shuffled_mib=sum(task["Shuffle Write Metrics"]["Shuffle Bytes Written"] for task in metrics) // _MIB,
        spilled_mib=sum(task["Disk Bytes Spilled"] for task in metrics) // _MIB,
        python_peak_mib=max((peak.get("ProcessTreePythonRSSMemory", 0) for peak in peaks), default=0) // _MIB,
        heap_peak_mib=max((peak.get("JVMHeapMemory", 0) for peak in peaks), default=0) // _MIB,
    )


def _ended_tasks(folder: Path) -> Iterator[Mapping[str, Any]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not re.match(r"\.|appstatus", path.name):
            with path.open(encoding="utf-8") as lines:
                for line in lines:
                    event = json.loads(line)
                    if event["Event"] == "SparkListenerTaskEnd" and "Task Metrics" in event:
                        yield event


def _python_ms(task: Mapping[str, Any]) -> int:
    return sum(
        int(value["Update"])
        for value in task["Accumulables"]
        if value["Name"] == "time to execute Python code"
    )

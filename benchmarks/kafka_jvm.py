"""Runs small Java programs beside brokers: they use Kafka's own client, or read a broker's metrics.

It needs a JDK, because the programs are compiled when they start.
"""

import subprocess
from pathlib import Path
from typing import Final

from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.live_cluster.local.java_program import OPTIONS, class_path
from harrow.live_cluster.releases.java import find_java
from harrow.live_cluster.releases.kafka_cache import default_cache
from harrow.live_cluster.releases.kafka_release import release_of

_FLUSH_TIMES: Final = """\
import com.sun.tools.attach.*;
import javax.management.*;
import javax.management.remote.*;

/** Prints how long each broker below a folder takes for a flush, by its own metric. */
public class FlushTimes {
    public static void main(String[] arguments) throws Exception {
        ObjectName timer = new ObjectName("kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs");
        for (VirtualMachineDescriptor each : VirtualMachine.list()) {
            boolean isThis = each.id().equals(String.valueOf(ProcessHandle.current().pid()));
            if (isThis || !each.displayName().contains(arguments[0])) continue;
            VirtualMachine machine = VirtualMachine.attach(each);
            try (JMXConnector agent = JMXConnectorFactory.connect(new JMXServiceURL(machine.startLocalManagementAgent()))) {
                System.out.println(agent.getMBeanServerConnection().getAttribute(timer, "50thPercentile"));
            }
            machine.detach();
        }
    }
}
"""


def run_java(source: str, release: str, folder: Path, *arguments: str | Path) -> list[str]:
    """Run a program with the jars of a release, and return the lines that it prints."""
    program = folder / "Program.java"
    program.write_text(source, encoding="utf-8")
    jars = class_path(default_cache().get(release_of(release)))
    command = [find_java(), *OPTIONS, "-cp", jars, program, *arguments]
    done = subprocess.run(  # noqa: S603 - the program is in this folder
        command, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr[-2_000:])
    return done.stdout.splitlines()


def median_flush_us(release: str, folder: Path) -> int:
    """Return the median time of a flush in the brokers below a folder, by their metrics.

    A program of its own would measure less: three brokers flush the same disk at the same moment,
    and Kafka flushes the log, its indexes and its snapshots.
    """
    times_ms = sorted(float(line) for line in run_java(_FLUSH_TIMES, release, folder, str(folder)))
    return round(times_ms[len(times_ms) // 2] * US_PER_MS)

"""Writes the names of Kafka's settings: ``python -m docs.setting_names``.

A small Java program reads the names in Kafka's ConfigDefs, from the jars that ``harrow kafka get``
keeps. It needs a JDK. The table keeps what it has about releases that are not in the cache.
"""

import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Final

from harrow.campaigns.language.kafka_settings import TABLE, setting_names
from harrow.cluster_model.release.profiles import RELEASES
from harrow.live_cluster.releases.kafka_cache import default_cache

_PROGRAM: Final = """\
import java.lang.reflect.*;
import java.util.*;

public class Names {
    static final String[][] PLACES = {
        {"broker", "kafka.server.KafkaConfig", "configDef"},
        {"broker", "kafka.server.KafkaConfig$", "kafka$server$KafkaConfig$$configDef"},
        {"broker", "kafka.server.KafkaConfig$", "configDef"},
        {"broker", "org.apache.kafka.server.config.AbstractKafkaConfig", "CONFIG_DEF"},
        {"topic", "org.apache.kafka.storage.internals.log.LogConfig", "configDefCopy"},
        {"topic", "kafka.log.LogConfig$", "configDefCopy"},
        {"topic", "kafka.log.LogConfig$", "kafka$log$LogConfig$$configDef"},
        {"topic", "kafka.log.LogConfig$", "configDef"},
        {"producer", "org.apache.kafka.clients.producer.ProducerConfig", "CONFIG"},
        {"consumer", "org.apache.kafka.clients.consumer.ConsumerConfig", "CONFIG"},
    };

    public static void main(String[] args) throws Exception {
        Set<String> done = new HashSet<>();
        for (String[] place : PLACES) {
            Object definition = done.contains(place[0]) ? null : member(place[1], place[2]);
            if (definition == null) continue;
            done.add(place[0]);
            Field keys = Class.forName("org.apache.kafka.common.config.ConfigDef").getDeclaredField("configKeys");
            keys.setAccessible(true);
            for (Object name : ((Map<?, ?>) keys.get(definition)).keySet()) System.out.println(place[0] + "\\t" + name);
        }
        if (done.size() != 4) throw new IllegalStateException("only " + done);
    }

    static Object member(String in, String name) throws Exception {
        try {
            Class<?> type = Class.forName(in);
            Object self = in.endsWith("$") ? type.getField("MODULE$").get(null) : null;
            for (Method method : type.getDeclaredMethods()) {
                if (!method.getName().equals(name) || method.getParameterCount() != 0) continue;
                method.setAccessible(true);
                return method.invoke(self);
            }
            Field field = type.getDeclaredField(name);
            field.setAccessible(true);
            return field.get(self);
        } catch (ClassNotFoundException | NoSuchFieldException missing) {
            return null;
        }
    }
}
"""


def main() -> None:
    releases: dict[tuple[str, str], set[str]] = defaultdict(set)
    for key, present in (setting_names() if TABLE.exists() else {}).items():
        releases[key] |= present
    cache = default_cache()
    for cached in cache.releases():
        release, folder = cached.model_release, cache.folder_of(cached)
        for releases_of_setting in releases.values():
            releases_of_setting.discard(release)
        for line in _names(folder).splitlines():
            scope, name = line.split("\t")
            releases[scope, name].add(release)
    order = list(RELEASES)
    lines = [
        f"{scope} {name} {' '.join(sorted(present, key=order.index))}\n"
        for (scope, name), present in sorted(releases.items())
        if present
    ]
    TABLE.write_text("".join(lines), encoding="utf-8")


def _names(jars: Path) -> str:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "Names.java"
        program.write_text(_PROGRAM, encoding="utf-8")
        command = ["java", "-cp", f"{jars}/*", str(program)]
        return subprocess.run(  # noqa: S603 - the program is above
            command, capture_output=True, text=True, check=True
        ).stdout


if __name__ == "__main__":
    main()

"""Writes the names of Kafka's settings, and the values that the newest release accepts.

``python -m docs.setting_names`` writes both tables.

A small Java program reads the names in Kafka's ConfigDefs, from the jars that ``harrow kafka get``
keeps. It needs a JDK. The table keeps what it has about releases that are not in the cache.
"""

import re
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Final

from harrow.campaigns.language.kafka_settings import ANY_CASE, TABLE, VALUES, setting_names
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.release.switch import version_of
from harrow.live_cluster.releases.kafka_cache import default_cache

_RANGE: Final = re.compile(r"\[(?:(?P<low>-?[0-9.E]+),)?\.\.\.(?:,(?P<high>-?[0-9.E]+))?\]")
"""How Kafka prints a range of numbers (``ConfigDef.Range``)."""
_WORDS: Final = re.compile(
    r"(?P<any_case>\(case insensitive\) )?\[(?P<words>[\w:-]+(\.\w+)*(, [\w:-]+(\.\w+)*)*)\]"
)
"""How Kafka prints words (``ConfigDef.ValidString``, ``ValidList``)."""
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
            for (Object key : ((Map<?, ?>) keys.get(definition)).values()) {
                Object validator = member(key, "validator");
                System.out.println(String.join("\\t", place[0], (String) member(key, "name"), member(key, "type").toString(),
                    validator == null ? "" : validator.getClass().getSimpleName(), String.valueOf(validator).replaceAll("\\s+", " ")));
            }
        }
        if (done.size() != 4) throw new IllegalStateException("only " + done);
    }

    static Object member(Object of, String name) throws Exception {
        Field field = of.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(of);
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
    accepted: dict[tuple[str, str], str] = {}
    newest = max((cached.model_release for cached in cache.releases()), key=version_of, default="")
    for cached in cache.releases():
        release, folder = cached.model_release, cache.folder_of(cached)
        for releases_of_setting in releases.values():
            releases_of_setting.discard(release)
        for line in _names(folder).splitlines():
            scope, name, kind, validator, values = line.split("\t")
            releases[scope, name].add(release)
            if release == newest:
                accepted[scope, name] = f"{kind.lower()} {_accepted(validator, values)}".strip()
    order = list(RELEASES)
    lines = [
        f"{scope} {name} {' '.join(sorted(present, key=order.index))}\n"
        for (scope, name), present in sorted(releases.items())
        if present
    ]
    TABLE.write_text("".join(lines), encoding="utf-8")
    rows = [f"{scope} {name} {text}\n" for (scope, name), text in sorted(accepted.items())]
    VALUES.write_text("".join([f"# {newest}\n", *rows]), encoding="utf-8")


def _accepted(validator: str, values: str) -> str:
    """Return the range (``0..``) or the words (``a|b``) that a validator accepts, if it has any."""
    if validator == "Range" and (match := _RANGE.fullmatch(values)):
        return f"{match['low'] or ''}..{match['high'] or ''}"
    if match := _WORDS.fullmatch(values):
        # What follows a colon is not a word, such as the duration in by_duration:PnDTnHnMn.nS.
        words = "|".join(re.sub(":.*", ":*", word) for word in match["words"].split(", "))
        return f"{ANY_CASE}{words.lower()}" if match["any_case"] else words
    return ""


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

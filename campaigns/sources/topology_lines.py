"""Decides what becomes of the lines that say which servers and disks a cluster has."""

from collections.abc import Mapping, Sequence
from typing import Final

from harrow.campaigns.language.kafka_settings import kafka_has
from harrow.campaigns.language.literals import LiteralError, broker_id
from harrow.campaigns.language.yaml_text import Rows
from harrow.campaigns.sources.description import Fate, SourceLine
from harrow.campaigns.sources.servers import IDS, LOG_DIRS, RACK, ROLES, ServerNode, Servers
from harrow.campaigns.sources.setting_lines import SettingLines, note_on_releases, number_text
from harrow.campaigns.sources.stated_release import ENSEMBLE, VOTERS
from harrow.cluster_model.settings import BROKER, Value
from harrow.cluster_model.topology import CONTROL_PLANES, KRAFT, LOG_DIRS_MAX, ZOOKEEPER

TOPOLOGY_SETTINGS: Final = (*IDS, *VOTERS, RACK, ROLES, ENSEMBLE)
"""Settings that decide which brokers and servers the cluster has."""
_BY_MODE: Final = {ROLES: KRAFT, **dict.fromkeys(VOTERS, KRAFT), ENSEMBLE: ZOOKEEPER}
"""Settings that belong to one way of keeping metadata."""
_GENERATED: Final = "-1"
"""Kafka's default for a broker's id: the broker gets one when it registers."""


class TopologyLines:
    """Notes the fates of such lines in *lines*. *mode* is the control plane, if that is known."""

    def __init__(self, lines: SettingLines, servers: Servers, release: str, mode: str | None) -> None:
        self._lines = lines
        self._servers = servers
        self._release = release
        self._mode = mode

    def settings_of(self, node: ServerNode) -> Mapping[str, Value]:
        """Return the other settings of a server, after noting the fates of all its lines."""
        return {
            **self._lines.defaults(BROKER, node.defaults),
            **self._lines.settings(BROKER, node.entries, lambda entry: self._is_topology(node, entry)),
        }

    def note_racks(self, labels: Sequence[SourceLine]) -> None:
        """Note the fates of the lines that say which label is the rack, and what it is."""
        names = {label.value for label in labels}
        for node in self._servers.nodes:
            for label, zone in node.server.zones.items():
                if label not in names:
                    self._lines.note(zone, Fate.UNAFFECTED, "it is no rack of Kafka's")
                elif node.value(RACK) == zone.value:
                    self._lines.note(zone, Fate.TAKEN, "the rack of its brokers")
                else:
                    self._lines.note(zone, Fate.LACKING, "the zones of other brokers are not known")
        brokers = [node for node in self._servers.nodes if node.is_broker()]
        for line in labels:
            if all(node.value(RACK) for node in brokers):
                self._lines.note(line, Fate.TAKEN)
            else:
                message = "the zone of each broker is not in the resources: add the rack of each"
                self._lines.note(line, Fate.LACKING, message)

    def _is_topology(self, node: ServerNode, entry: SourceLine) -> bool:
        """Note the fate of a line that decides which servers and disks the cluster has."""
        if entry.name in TOPOLOGY_SETTINGS:
            self._note_topology(node, entry)
            return True
        if (
            entry.name not in LOG_DIRS
            or "," not in entry.value
            or not kafka_has(BROKER, entry.name, self._release)
        ):
            return False
        number = len(entry.value.split(","))
        if number > LOG_DIRS_MAX:
            self._lines.refuse(
                entry, f"{number} log directories: a broker of the model has at most {LOG_DIRS_MAX}"
            )
        elif all(node.value(*LOG_DIRS) == other.value(*LOG_DIRS) for other in self._servers.nodes):
            self._lines.note(entry, Fate.TAKEN, f"{number} log directories")
        else:
            self._lines.note(
                entry, Fate.LACKING, "all brokers of the model have as many log directories as the first"
            )
        return True

    def _note_topology(self, node: ServerNode, entry: SourceLine) -> None:
        name = entry.name
        if not kafka_has(BROKER, name, self._release):
            self._lines.note(entry, Fate.UNKNOWN, note_on_releases(name, BROKER))
        elif name in _BY_MODE and self._mode != _BY_MODE[name]:
            missing = CONTROL_PLANES[_BY_MODE[name]]
            note = (
                f"the brokers use {CONTROL_PLANES[self._mode]}, so the model has no {missing}"
                if self._mode
                else f"the model has no {missing} in Kafka {self._release}"
            )
            self._lines.note(entry, Fate.LACKING, note)
        elif name == RACK and self._servers.is_for_all:
            self._lines.note(entry, Fate.LACKING, "one file for all brokers: add the rack of each")
        elif name in IDS:
            self._note_id(node, entry)
        else:
            self._lines.note(entry, Fate.TAKEN)

    def _note_id(self, node: ServerNode, entry: SourceLine) -> None:
        text = number_text(entry.value)
        if not node.is_broker():
            self._lines.note(entry, Fate.UNAFFECTED, "the model numbers its controllers")
        elif text == _GENERATED and node.value(ROLES) is None:
            self._lines.note(entry, Fate.LACKING, "Kafka generates an id; harrow numbers brokers from 0")
        else:
            try:
                number = broker_id(text)
            except LiteralError as error:
                self._lines.refuse(entry, error)
                return
            if any(other.id == number for other in self._servers.nodes if other.is_broker()):
                self._lines.note(entry, Fate.TAKEN)
            else:
                self._lines.note(entry, Fate.LACKING, "other sources name other brokers")


def control_plane_rows(
    nodes: Sequence[ServerNode], mode: str | None, zookeeper_servers: int | None
) -> dict[str, object]:
    """Return the keys of a cluster file that say who keeps the metadata."""
    if mode is None:
        return {}
    if mode == ZOOKEEPER:
        addresses = next((text for node in nodes if (text := node.value(ENSEMBLE))), "")
        servers = zookeeper_servers or len(addresses.split("/")[0].split(","))
        return {"metadata": ZOOKEEPER, "zookeeper": Rows(servers=servers)}
    roles = [node.value(ROLES) or "" for node in nodes]
    combined = any("broker" in role and "controller" in role for role in roles)
    controllers = sum("controller" in role for role in roles)
    voters = next((text for node in nodes if (text := node.value(*VOTERS))), "")
    count = len(voters.split(",")) if voters else controllers or 1
    return {"metadata": KRAFT, "kraft": Rows(voters=count, combined=combined)}

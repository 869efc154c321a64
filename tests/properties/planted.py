"""Plants one anomaly of each kind in a correct history at a random place.

Each function takes a history without anomalies, changes it, and returns the expected findings.
``draw`` chooses one of several options. Each function first adds a few correct operations with keys
of their own, so that there is always something to change.
"""

from collections.abc import Callable

from tests.properties.correct_log import History
from tests.properties.planted_cycles import plant_g0, plant_g1c
from tests.properties.planted_order import (
    plant_int_nonmonotonic_poll,
    plant_int_nonmonotonic_send,
    plant_int_poll_skip,
    plant_int_send_skip,
    plant_nonmonotonic_poll,
    plant_nonmonotonic_send,
    plant_poll_skip,
)
from tests.properties.planted_records import (
    plant_duplicate,
    plant_g1a,
    plant_inconsistent_offsets,
    plant_lost_write,
    plant_misrouted,
    plant_precommitted_read,
    plant_torn_transaction,
    plant_unseen,
)
from tests.properties.planting import PlantedHistory
from tests.properties.recorded_history import Draw

PLANTS: dict[str, Callable[[History, Draw], PlantedHistory]] = {
    "inconsistent-offsets": plant_inconsistent_offsets,
    "duplicate": plant_duplicate,
    "lost-write": plant_lost_write,
    "unseen": plant_unseen,
    "G1a": plant_g1a,
    "misrouted": plant_misrouted,
    "precommitted-read": plant_precommitted_read,
    "torn-transaction": plant_torn_transaction,
    "poll-skip": plant_poll_skip,
    "nonmonotonic-poll": plant_nonmonotonic_poll,
    "int-poll-skip": plant_int_poll_skip,
    "int-nonmonotonic-poll": plant_int_nonmonotonic_poll,
    "nonmonotonic-send": plant_nonmonotonic_send,
    "int-nonmonotonic-send": plant_int_nonmonotonic_send,
    "int-send-skip": plant_int_send_skip,
    "G0": plant_g0,
    "G1c": plant_g1c,
}
"""One function for each anomaly that the judge of recorded histories reports."""

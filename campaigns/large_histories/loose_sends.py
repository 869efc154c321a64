"""Finds the offsets of sends that did not learn them, where a consumer received their records."""

import numpy as np

from harrow.campaigns.large_histories.byte_block import Ints
from harrow.campaigns.large_histories.events import Events
from harrow.campaigns.large_histories.record_slots import ACKED_AT, RecordSlots
from harrow.campaigns.large_histories.tables import ACKED, FAILED
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class LooseSends:
    """Sends of a partition that did not name an offset, after a search for their records.

    ``remaining`` have no record. ``repeated`` are sends of a record that another one sent, too.
    ``suspects`` are values.
    """

    remaining: Events
    repeated: Events
    suspects: Ints


def place_loose_sends(sends: Events, slots: RecordSlots, at: Ints) -> LooseSends:
    """Note in *slots* which of the *sends* sent the records *at* some slots of their partition."""
    values = slots.value[at]
    _, firsts, counts = np.unique(sends.value, return_index=True, return_counts=True)
    twice = sends.value[firsts[counts > 1]]
    if not len(values):
        return LooseSends(sends, sends.part(0, 0), twice)
    order = np.argsort(values)
    rank = np.searchsorted(values[order], sends.value)
    rank[rank == len(values)] = 0
    is_placed = values[order[rank]] == sends.value
    found, placed = at[order[rank[is_placed]]], sends.take(is_placed)
    # Another send of the value, or a failed one whose record is there, is irregular.
    is_first = slots.session[found] == 0
    suspects = placed.value[~is_first | (placed.kind == FAILED)]
    slots.session[found[is_first]] = placed.place[is_first] + 1
    slots.invoked[found[is_first]] = placed.position[is_first]
    slots.flags[found[placed.kind == ACKED]] |= ACKED_AT
    return LooseSends(sends.take(~is_placed), placed.take(~is_first), np.concatenate((twice, suspects)))

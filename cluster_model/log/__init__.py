"""A replica's log and its disk: batches, leader epochs, producer states, flushing and checkpoints."""

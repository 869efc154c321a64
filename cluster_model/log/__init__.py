"""Models a replica's log and its disk: batches, leader epochs, producer states, checkpoints."""

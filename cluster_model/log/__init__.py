"""The log of a replica and its disk: batches, leader epochs, producer states and checkpoints."""

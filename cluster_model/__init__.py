"""Models Kafka as state machines without I/O, and the simulator that drives them.

The deterministic core: standard library only, no wall clock, no module-level
randomness, no I/O. A run is a pure function of (campaign, choices).
"""

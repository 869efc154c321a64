"""Models Kafka as state machines without I/O, and the simulator that drives them.

This package is the deterministic core. It uses only the standard library, and has no wall clock, no
module-level randomness and no I/O. A run is a pure function of its campaign and its choices.
"""

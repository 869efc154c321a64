"""Describes the behaviour of each Kafka release as switches."""

# Plain Python: mypyc does not support the metadata of fields, which declares the switches.

"""Describes the behaviour of each Kafka release as switches."""

# Plain Python: its files declare switches in the metadata of fields, which are read at run time.

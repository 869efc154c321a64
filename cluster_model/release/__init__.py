"""The behaviour of each Kafka release as switches, with a file for each subject."""

# Plain Python: its files declare switches by the metadata of fields.

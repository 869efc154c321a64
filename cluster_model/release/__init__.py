"""The behaviour of each Kafka release as switches, with a file for each subject."""

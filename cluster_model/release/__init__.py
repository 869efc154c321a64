"""What each release of Kafka does, as switches: a file for each subject."""

"""Clients under test: Kafka libraries, each in its own process."""

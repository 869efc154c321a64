"""Logs of Kafka's clients and tools, converted into histories."""

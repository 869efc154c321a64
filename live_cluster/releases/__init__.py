"""Releases of Kafka: which there are, their jars, where jars are kept, and Java."""

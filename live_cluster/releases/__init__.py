"""Releases of Kafka, their jars, the cache of jars, and Java."""

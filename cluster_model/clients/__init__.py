"""Kafka's clients: producers, consumers, and what they share."""

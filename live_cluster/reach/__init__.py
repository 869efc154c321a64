"""Obstacles: what campaigns need and real brokers cannot do or show."""

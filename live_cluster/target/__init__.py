"""Runs of campaigns on real brokers, and a comparison with the model."""

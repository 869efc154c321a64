"""Simulates time, processes, and the network between them."""

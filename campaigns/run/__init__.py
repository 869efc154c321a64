"""Runs a plan on a target: its clients, its script, its faults, and the observer of the cluster."""

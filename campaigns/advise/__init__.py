"""Searches for the cheapest settings of a cluster that survive chosen faults."""

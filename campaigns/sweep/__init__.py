"""Sweeps: many seeds and settings of campaigns, on Spark or on a pool of processes."""

"""Invariants of the cluster, and the monitor that watches them while it runs."""

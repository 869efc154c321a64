"""Invariants of the cluster, and the monitor that checks them while it runs."""

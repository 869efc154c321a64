"""Measures how well the cluster served its clients: acks, latencies, outages, lag."""

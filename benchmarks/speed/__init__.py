"""Measures what a run costs: for many clusters, compared with a commit, and at growing sizes."""

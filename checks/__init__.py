"""Judges runs: rules turn the history, the replica logs and the trace into findings and a verdict.

The rules do not know the simulator, so they also judge real clusters.
"""

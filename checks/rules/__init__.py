"""The rules: one file for each anomaly."""

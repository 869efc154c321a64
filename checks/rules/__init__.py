"""Contains the rules, with one file for each anomaly."""

"""Strikes faults: picks their time and brokers, and limits how many act at once."""

"""Injects faults: picks their times and brokers, and limits what they take out of service."""

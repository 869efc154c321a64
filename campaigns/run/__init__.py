"""A plan on a target: clients, script, faults, observation."""

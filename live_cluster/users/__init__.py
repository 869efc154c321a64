"""The user's own cluster: permitted commands, faults in force, and healing."""

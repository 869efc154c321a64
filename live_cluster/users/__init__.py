"""A cluster that somebody else runs: what may be done to it, what is in force there, and how it is healed."""

"""A campaign on real brokers: the target, what faults do to it, what is seen of it, and whether the model allows it."""

"""Records the inputs of a served run."""

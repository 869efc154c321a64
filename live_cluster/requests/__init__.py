"""Single requests to a broker of the model and to a real one, and whether both answer the same."""

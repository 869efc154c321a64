"""Single requests to the model and to something real, and a comparison of the answers."""

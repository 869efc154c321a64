"""Single requests to a broker, and to the model's: produce, fetch, offsets, and elections between them."""

"""Single requests to a broker: produce, fetch, offsets, with elections in between."""

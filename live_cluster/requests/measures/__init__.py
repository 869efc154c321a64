"""Comparisons of many requests, with a tally of the differences and recordings of them."""

"""How well clients were served: sends and answers, latencies, outages, lag."""

"""The report of a sweep, for people: on a terminal, and as Markdown."""

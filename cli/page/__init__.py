"""HTML pages: of a run, and of reports."""

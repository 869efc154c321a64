"""The HTML page that shows a run."""

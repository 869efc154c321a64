"""A campaign as text: read, checked, written."""

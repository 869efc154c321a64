"""Rules: history + replica logs + trace -> findings and verdict. They know no simulator."""

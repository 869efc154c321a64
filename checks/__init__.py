"""Rules: history, replica logs and trace become findings and a verdict. They know no simulator."""

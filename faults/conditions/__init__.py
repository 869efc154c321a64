"""What conditions are made of: a file for each thing that can be seen of a cluster."""

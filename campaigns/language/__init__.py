"""Campaign files: reading, checking and writing them."""

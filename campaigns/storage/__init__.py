"""Files and folders by path or URI, and files that are never incomplete."""

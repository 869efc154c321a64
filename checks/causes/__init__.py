"""How a finding came about: copies of records, requests, and what would have prevented it."""

"""A trace as an HTML page that needs no network."""

"""A trace as text for a terminal."""

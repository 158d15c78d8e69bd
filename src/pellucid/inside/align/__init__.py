"""Word links from cross-attention."""

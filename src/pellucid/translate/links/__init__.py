"""Word links of translations and of given pairs."""

"""Languages: their codes and names, and the letters of their scripts."""

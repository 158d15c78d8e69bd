"""SVG, PNG and PDF figures."""

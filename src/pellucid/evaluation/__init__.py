"""BLEU, chrF and TER with intervals, and the significance of differences."""

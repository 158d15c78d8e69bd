"""Many files on many machines: a folder's manifest is the truth, and any worker may join."""

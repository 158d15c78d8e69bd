"""Before the first update: settings, data, the model to start from, and what to compute on."""

"""From folders to results: what the commands do, and what Python users call."""

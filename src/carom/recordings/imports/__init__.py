"""From what readers give to recordings of ours: bodies and roles, the vertical, one clock, one event per file."""

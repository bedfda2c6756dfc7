"""Contact parameters from recorded strikes."""

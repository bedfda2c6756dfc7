"""The impact model: simulated impacts, the base model that learns them, its correction, its student."""

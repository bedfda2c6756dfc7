"""MJX, MuJoCo on JAX (extra `mjx`): strikes in batches, and derivatives of collisions."""

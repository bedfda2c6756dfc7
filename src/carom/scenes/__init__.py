"""What is simulated: bodies, shapes and scenes with roles."""

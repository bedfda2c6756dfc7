"""What `carom check` looks at."""

"""Impacts in recordings: where they are, how the bodies moved before and after, how far to trust them."""

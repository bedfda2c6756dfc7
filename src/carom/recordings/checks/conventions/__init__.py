"""Which convention quaternions follow, told by what physics allows: w first or last, world from body or its inverse."""

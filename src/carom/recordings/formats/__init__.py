"""Recordings on disk: the folder format, its data files, and what others publish."""

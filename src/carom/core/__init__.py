"""The ground floor: errors, files and folders on disk, resumable work, rotations, progress."""

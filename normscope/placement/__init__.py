"""norms + stream -> the site of each norm, and the name of the pattern."""

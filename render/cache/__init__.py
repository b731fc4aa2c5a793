"""What runs leave for the runs after them, outside the tree: never needed, never believed unless it proves itself."""

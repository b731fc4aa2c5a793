"""YAML as Flux reads and rewrites it: source trees with places, and output text."""

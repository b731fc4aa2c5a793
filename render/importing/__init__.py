"""From a Flux repository that people have to a catalog that renders the same objects."""

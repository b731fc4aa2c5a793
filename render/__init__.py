"""A compiler for Flux GitOps repositories: a catalog in, the Flux objects of one cluster out."""

__version__ = "0.1.0"

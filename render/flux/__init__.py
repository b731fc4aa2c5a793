"""Flux, kustomize and registry semantics as pure functions: no files, no diagnostics."""

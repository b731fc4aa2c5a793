"""The Jinja2 templates, one a Kubernetes kind, shipped as data."""

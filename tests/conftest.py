from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# How long an example takes depends on what else the machine does. Under CI the examples are always the same, so that a
# change fails for what it changes.
settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fixed", settings.get_profile("here"), derandomize=True)
settings.load_profile("fixed" if os.environ.get("CI") else "here")

# Tests leave nothing in the cache of whoever runs them.
os.environ["RENDER_CACHE_DIR"] = ""

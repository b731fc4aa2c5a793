"""How the modules under test are loaded: as Python, or compiled."""

from __future__ import annotations

import pytest

import render.build

IS_COMPILED = not render.build.__file__.endswith(".py")

interpreted = pytest.mark.skipif(
    IS_COMPILED, reason="puts something in the place of a function that compiled modules call directly"
)

"""Texts come back as they were added, in memory and from the spool."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from render import texts
from render.texts import Texts


def test_small_texts_are_held_in_memory() -> None:
    made = Texts()
    made.add("a", "é\n".encode())

    assert list(made) == ["a"]
    assert made["a"] == "é\n"
    assert "é\n".encode() == made.data("a")
    assert made.size("a") == 3
    assert made._spool is None


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=300), max_size=30))
def test_large_texts_come_back_from_the_spool(files: dict[str, str]) -> None:
    made = Texts()
    made._size = texts.IN_MEMORY
    for path, text in files.items():
        made.add(path, text.encode())

    assert files == dict(made)
    assert len(files) == len(made)
    assert all(made.size(path) == len(text.encode()) for path, text in files.items())
    assert ("nowhere" * 9) not in made


def test_an_unknown_path_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        Texts()["a"]

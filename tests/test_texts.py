"""Texts come back as they were added, in memory and from the spool."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from render import texts
from render.texts import Texts, unnamed


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


def test_a_file_without_a_name_lies_in_the_folder_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    with unnamed() as file:
        file.write(b"text")
        file.seek(0)

        assert file.read() == b"text"
        assert os.fstat(file.fileno()).st_dev == tmp_path.stat().st_dev
        assert os.fstat(file.fileno()).st_mode & 0o777 == 0o600
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("folder", ["", "/there/is/no/such/folder"])
def test_another_folder_does_when_that_is_none(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", folder)

    with unnamed() as file:
        assert file.write(b"text") == 4

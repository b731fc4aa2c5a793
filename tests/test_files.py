from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from render.files import below, clean, is_inside, repository, upwards

PATHS = st.text(alphabet="ab./ ", max_size=12)


@given(PATHS)
def test_a_path_is_spelled_as_pathlib_spells_it(text: str) -> None:
    assert clean(text) == str(PurePosixPath(text)) == clean(PurePosixPath(text))


@given(PATHS, PATHS.filter(lambda text: not text.startswith("/") and str(PurePosixPath(text)) != "."))
def test_a_path_below_a_folder_is_that_of_pathlib(folder: str, path: str) -> None:
    assert below(clean(folder), clean(path)) == str(PurePosixPath(folder) / path)


@given(PATHS, PATHS)
def test_what_is_inside_is_what_pathlib_says(path: str, folder: str) -> None:
    one, other = f"/{path.strip('/')}", f"/{folder.strip('/')}"
    assert is_inside(clean(one), clean(other)) == PurePosixPath(one).is_relative_to(other)


@given(PATHS)
def test_the_way_up_is_that_of_pathlib(text: str) -> None:
    path = PurePosixPath(f"/{text.strip('/')}")
    assert list(upwards(str(path))) == [str(one) for one in (path, *path.parents)]


@pytest.mark.parametrize("depth", [0, 2])
def test_the_repository_is_the_innermost_with_a_git_folder(
    depth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path.joinpath(*["x"] * depth)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "platform.yaml").touch()
    monkeypatch.chdir(folder)
    (tmp_path / ".git").mkdir()

    assert repository("platform.yaml") == os.path.relpath(tmp_path)
    (folder / ".git").touch()
    assert repository(folder / "platform.yaml") == "."

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.data import Snapshot, SnapshotCollection
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from tests.trees import GOLDENS, RENDERINGS, golden_files, tree

FILES = {
    f"{rendering}/{path}": text for rendering in RENDERINGS for path, text in sorted(tree(rendering).files.items())
}


class TreeExtension(SingleFileSnapshotExtension):
    """Keeps the file `<rendering>/<path>` at that path below `goldens/`; the snapshot's name is its path."""

    _write_mode = WriteMode.TEXT
    file_extension = ""

    @classmethod
    def dirname(cls, **_: Any) -> str:
        return str(GOLDENS)

    @classmethod
    def get_snapshot_name(cls, *, index: Any = 0, **_: Any) -> str:
        return str(index)

    def is_snapshot_location(self, **_: Any) -> bool:
        return True

    @classmethod
    def matches_test_location(cls, **_: Any) -> bool:
        return True

    def read_snapshot_collection(self, *, snapshot_location: str) -> SnapshotCollection:
        """Name a file found on disk as `get_snapshot_name` does, or an update would take every golden for unused."""
        found = SnapshotCollection(location=snapshot_location)
        found.add(Snapshot(name=Path(snapshot_location).relative_to(GOLDENS).as_posix()))
        return found

    def read_snapshot_data_from_location(self, *, snapshot_location: str, **_: Any) -> str | None:
        """Read without translating line ends: goldens are compared byte for byte."""
        path = Path(snapshot_location)
        return path.read_bytes().decode("utf-8") if path.is_file() else None

    @classmethod
    def write_snapshot_collection(cls, *, snapshot_collection: SnapshotCollection, **_: Any) -> None:
        (snapshot,) = snapshot_collection
        Path(snapshot_collection.location).write_bytes(str(snapshot.data).encode("utf-8"))


@pytest.fixture
def golden(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(TreeExtension)


@pytest.mark.filterwarnings(r"ignore:\s*Can not relate snapshot")
@pytest.mark.parametrize("path", FILES)
def test_file_is_its_golden(golden: SnapshotAssertion, path: str) -> None:
    assert golden(name=path) == FILES[path]


@pytest.mark.parametrize("rendering", RENDERINGS)
def test_shipped_catalog_renders_without_a_finding(rendering: str) -> None:
    assert not tree(rendering).diagnostics
    assert tree(rendering).services > 25


def test_goldens_hold_the_renderings_and_nothing_else(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("update_snapshots"):
        pytest.skip("the update removes what is left over when it ends")
    assert sorted(FILES) == golden_files()

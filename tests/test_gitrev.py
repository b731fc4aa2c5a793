from __future__ import annotations

from pathlib import Path

import pytest

from render.gitrev import GitError, Revision
from tests.gitrepo import commit, git


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "fleet"
    write(
        folder, {"catalog/a.yaml": "a: 1\n", "catalog/deep/b.yml": "b: 1\n", "platform.yaml": "p\n", "catalog/n": "n"}
    )
    commit(folder)
    return folder


@pytest.fixture
def into(tmp_path: Path) -> Path:
    made = tmp_path / "into"
    made.mkdir()
    return made


def taken(revision: Revision) -> dict[str, str]:
    found = (path for path in revision.folder.rglob("*") if path.is_file() or path.is_symlink())
    return {path.relative_to(revision.folder).as_posix(): path.read_text() for path in sorted(found)}


def test_files_are_those_of_the_revision(repository: Path, into: Path) -> None:
    first = git(repository, "rev-parse", "HEAD").strip()
    write(repository, {"catalog/a.yaml": "a: 2\n", "catalog/c.yaml": "c: 1\n"})
    commit(repository)
    write(repository, {"catalog/a.yaml": "a: 3\n"})

    revision = Revision("HEAD~1", repository, into)
    revision.take(repository / "catalog", repository / "platform.yaml")

    assert revision.commit == first
    assert taken(revision) == {"catalog/a.yaml": "a: 1\n", "catalog/deep/b.yml": "b: 1\n", "platform.yaml": "p\n"}
    assert (repository / "catalog/a.yaml").read_text() == "a: 3\n"
    assert git(repository, "status", "--porcelain") == " M catalog/a.yaml\n"


def test_the_copy_has_the_name_of_the_repository(repository: Path, into: Path) -> None:
    revision = Revision("main", repository / "catalog", into)

    assert (revision.top, revision.folder) == (repository.resolve(), into.resolve() / "fleet")
    assert revision.place(repository / "catalog") == into.resolve() / "fleet" / "catalog"


def test_whole_repository_can_be_taken(repository: Path, into: Path) -> None:
    revision = Revision("HEAD", repository, into)
    revision.take(repository)

    assert sorted(taken(revision)) == ["catalog/a.yaml", "catalog/deep/b.yml", "platform.yaml"]


def test_paths_may_be_taken_one_after_the_other(repository: Path, into: Path) -> None:
    revision = Revision("HEAD", repository, into)
    revision.take(repository / "catalog")
    revision.take(repository / "catalog/deep", repository / "platform.yaml")

    assert len(taken(revision)) == 3


def test_a_path_that_the_revision_does_not_have_is_left_out(repository: Path, into: Path) -> None:
    revision = Revision("HEAD", repository, into)
    revision.take(repository / "other", repository / "catalog/a.yaml")

    assert taken(revision) == {"catalog/a.yaml": "a: 1\n"}


@pytest.mark.parametrize("name", ["-x.yaml", "*.yaml", "ä b.yaml", ":(top)x.yaml", "a\nb.yaml", 'q"q.yaml'])
def test_odd_names_are_taken_as_they_are(repository: Path, into: Path, name: str) -> None:
    write(repository, {name: "odd\n"})
    commit(repository)
    revision = Revision("HEAD", repository, into)
    revision.take(repository / name)

    assert taken(revision) == {name: "odd\n"}


def test_attributes_and_filters_change_nothing(repository: Path, into: Path) -> None:
    attributes = "a.yaml export-ignore\n*.yml filter=broken\nplatform.yaml text eol=crlf ident\n"
    write(repository, {".gitattributes": attributes, "platform.yaml": "$Id$\n"})
    commit(repository)
    git(repository, "config", "filter.broken.smudge", "exit 1")
    git(repository, "config", "filter.broken.required", "true")
    revision = Revision("HEAD", repository, into)
    revision.take(repository)

    assert taken(revision) == {
        "catalog/a.yaml": "a: 1\n",
        "catalog/deep/b.yml": "b: 1\n",
        "platform.yaml": "$Id$\n",
    }


def test_links_stay_links(repository: Path, into: Path) -> None:
    (repository / "catalog/link.yaml").symlink_to("a.yaml")
    commit(repository)
    revision = Revision("HEAD", repository, into)
    revision.take(repository / "catalog")

    assert (revision.folder / "catalog/link.yaml").readlink() == Path("a.yaml")


def test_nothing_is_written_through_a_forged_link(repository: Path, into: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    write(repository, {"x.yaml": "forged\n"})
    inner = commit(repository)
    tree = git(repository, "ls-tree", inner, "x.yaml").split()[2]
    (repository / "target").write_text(str(outside))
    blob = git(repository, "hash-object", "-w", "target").strip()
    folder = git_tree(repository, f"100644 blob {tree}\tx.yaml\n")
    # Git itself would never store two entries of one name.
    forged = git_tree(repository, f"120000 blob {blob}\tcatalog\n040000 tree {folder}\tcatalog\n")
    git(repository, "update-ref", "refs/heads/forged", git(repository, "commit-tree", "-m", "x", forged).strip())

    revision = Revision("forged", repository, into)
    revision.take(repository / "catalog")

    assert list(outside.iterdir()) == []


def git_tree(repository: Path, listing: str) -> str:
    (repository / "listing").write_text(listing)
    with (repository / "listing").open() as given:
        import subprocess

        command = ["git", "mktree"]
        return (
            subprocess.run(command, stdin=given, cwd=repository, check=True, capture_output=True)
            .stdout.decode()
            .strip()
        )


@pytest.mark.parametrize("revision", ["nope", "HEAD~7", "0" * 40, "HEAD:catalog"])
def test_unknown_revision_is_told(repository: Path, into: Path, revision: str) -> None:
    with pytest.raises(GitError, match="there is no such revision here"):
        Revision(revision, repository, into)


@pytest.mark.parametrize("revision", ["", "--all", "-h", "--output=x"])
def test_an_option_is_no_revision(repository: Path, into: Path, revision: str) -> None:
    with pytest.raises(GitError, match="no name of a revision"):
        Revision(revision, repository, into)


def test_environment_of_a_hook_does_not_matter(repository: Path, into: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", ".git")
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/index")

    assert Revision("HEAD", repository / "catalog", into).top == repository.resolve()


def test_folder_without_repository_is_told(tmp_path: Path, into: Path) -> None:
    with pytest.raises(GitError, match="git says: not a git repository"):
        Revision("HEAD", tmp_path, into)


def test_folder_that_is_not_there_is_told(tmp_path: Path, into: Path) -> None:
    with pytest.raises(GitError, match="there is no folder"):
        Revision("HEAD", tmp_path / "nothing", into)


def test_path_outside_the_repository_is_told(repository: Path, into: Path, tmp_path: Path) -> None:
    revision = Revision("HEAD", repository, into)

    with pytest.raises(GitError, match="is not in the repository"):
        revision.take(tmp_path / "elsewhere")


def test_missing_git_is_told(repository: Path, into: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(into))

    with pytest.raises(GitError, match="`git` is not installed"):
        Revision("HEAD", repository, into)


def test_lost_object_is_told(repository: Path, into: Path) -> None:
    name = git(repository, "rev-parse", "HEAD:catalog/a.yaml").strip()
    (repository / ".git/objects" / name[:2] / name[2:]).unlink()
    revision = Revision("HEAD", repository, into)

    with pytest.raises(GitError, match=f"the object {name} is missing"):
        revision.take(repository / "catalog")

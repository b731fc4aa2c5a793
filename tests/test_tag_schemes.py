"""`docs/tag-schemes.md` against the program: each policy derived, each list of tags judged, each pick as it should be.

`python -m tests.test_tag_schemes` writes the answers into the page; `python -m render.docs` writes the policies.
"""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from render import docs
from render.cli_policy import policy
from render.policies import read_tags

PAGE = docs.ROOT / "docs/tag-schemes.md"
FOLDER = docs.ROOT / "tests/fixtures/tags"
PICKS = {
    "semver": "1.10.0",
    "v-semver": "v1.3.0",
    "semver-suffix": "1.10.1-alpine",
    "major-suffix": "20-alpine",
    "two-parts": "18.10",
    "one-number": "100",
    "calver": "2025.1.0",
    "date": "2025-01-31",
    "release-time": "RELEASE.2024-10-02T17-50-41Z",
    "four-parts": "4.0.19.3010",
    "named-version": "version-2026.11.0",
    "k3s": "1.26.9-k3s10",
    "linuxserver": "5.1.4-ls12",
    "hash-and-time": "master-00ff12d-1730000000",
    "digest": "latest",
}
"""What a person would update to, by the name of the list."""
_BLOCK = re.compile(r"(?P<head><!-- picks (?P<name>\S+) -->\n)(?P<body>.*?)(?P<tail><!-- end -->)", re.DOTALL)


def answer(name: str, above: str) -> str:
    """Return what the command prints for the example above the block and a list of tags."""
    with docs.project(above).entered():
        result = CliRunner().invoke(policy, ["web", "--tags", str(FOLDER / f"{name}.txt")])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def refresh(text: str) -> str:
    """Return the page's text with every answer made anew."""

    def make(match: re.Match[str]) -> str:
        tags = " ".join(read_tags((FOLDER / f"{match['name']}.txt").read_text(encoding="utf-8")))
        told = answer(match["name"], text[: match.start()])
        listed, answered = docs.fenced(tags, "text"), docs.fenced(told, "text")
        return f"{match['head']}Tags:\n\n{listed}\nAnswer:\n\n{answered}{match['tail']}"

    return _BLOCK.sub(make, text)


def sections() -> dict[str, str]:
    """Return the text of the page down to each list, by the list's name."""
    text = PAGE.read_text(encoding="utf-8")
    return {match["name"]: text[: match.start()] for match in _BLOCK.finditer(text)}


def test_the_page_holds_what_the_command_answers() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert refresh(text) == text, "run `python -m tests.test_tag_schemes`"


def test_every_list_has_its_section_and_its_pick() -> None:
    assert sorted(PICKS) == sorted(path.stem for path in FOLDER.iterdir()) == sorted(sections())


@pytest.mark.parametrize("name", sorted(PICKS))
def test_flux_picks_what_a_person_would(name: str) -> None:
    first = answer(name, sections()[name]).splitlines()[0]
    assert re.fullmatch(rf"web/main: {re.escape(PICKS[name])}( \(now \S+\))?", first)


@pytest.mark.parametrize("name", sorted(PICKS))
def test_every_list_has_the_current_tag_and_tags_that_are_refused(name: str) -> None:
    tags = read_tags((FOLDER / f"{name}.txt").read_text(encoding="utf-8"))
    current = re.findall(r"^  image: ghcr\.io/example/web:([^@\n]+)", sections()[name], re.MULTILINE)[-1]
    assert current in tags
    assert "  not " in answer(name, sections()[name])


if __name__ == "__main__":
    PAGE.write_text(refresh(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

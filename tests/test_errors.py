from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from render import codes, templates
from render.cli import run
from render.codes import CODES
from tests.compiled import IS_COMPILED

FOLDER = Path(__file__).parent / "errors"
CASES = sorted(path.name for path in FOLDER.iterdir())
UPDATE = bool(os.environ.get("RENDER_UPDATE_ERRORS"))
"""Write what is printed into expected.txt; read each text against the style guide afterwards."""

RESERVED: dict[str, str] = {
    "R213": "everything that can be asked for is rendered; a code is never given another meaning"
}
"""Codes that nothing emits yet, each with the reason."""

ELSEWHERE: dict[str, str] = {"R518": "somebody else has to write while a build runs: tests/test_tree.py"}
"""Codes without a case here, each with the reason."""

HEADLINE = re.compile(r"^(?P<severity>error|warning)\[(?P<code>R\d{3})\]: (?P<message>.*)$", re.MULTILINE)


def arguments_of(name: str) -> list[str]:
    """The command line of a case."""
    listed = FOLDER / name / "args.txt"
    return listed.read_text().split() if listed.exists() else ["build"]


def report_of(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> tuple[int, str]:
    """Run a case in a copy of its folder: exit code and all that is printed."""
    hidden = shutil.ignore_patterns("expected.txt", "args.txt", "templates")
    shutil.copytree(FOLDER / name, folder, symlinks=True, ignore=hidden)
    monkeypatch.chdir(folder)
    own = FOLDER / name / "templates"
    if own.is_dir():
        if IS_COMPILED:
            pytest.skip("compiled modules render the shipped templates alone")
        draw = templates.render
        monkeypatch.setattr(
            templates,
            "render",
            lambda kind, values: draw(kind, values, own if (own / f"{kind}.yaml.j2").exists() else None),
        )
    arguments = arguments_of(name)
    out = ["--out", "tree"] if arguments[0] in ("build", "check", "sync") else []
    code = run([*arguments, *out, "--format", "full"])
    printed = capsys.readouterr()
    return code, printed.out + printed.err


@pytest.mark.parametrize("name", CASES)
def test_report_is_the_expected_text(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, report = report_of(name, tmp_path / "case", monkeypatch, capsys)
    expected = FOLDER / name / "expected.txt"
    if UPDATE:
        expected.write_text(report)

    assert expected.read_text() == report
    stops = ("error[" in report) or "--fail-on" in arguments_of(name)
    assert code == (1 if stops else 0)


@pytest.mark.parametrize("name", [name for name in CASES if re.match(r"R\d{3}-", name)])
def test_case_shows_the_code_it_is_named_after(name: str) -> None:
    told = HEADLINE.findall((FOLDER / name / "expected.txt").read_text())

    assert name[:4] in {code for _, code, _ in told}


@pytest.mark.parametrize("name", CASES)
def test_headlines_keep_the_rules_of_form(name: str) -> None:
    faults = list(HEADLINE.finditer((FOLDER / name / "expected.txt").read_text()))

    assert faults
    for fault in faults:
        message = fault["message"]
        assert message[0].islower() or message[0] in "`'"
        assert not message.endswith(".")
        assert not re.search(r"\b(?:failed to|oops|None|Traceback)\b", message)
        assert message.count("`") % 2 == 0
        assert CODES[fault["code"]].severity == fault["severity"] or fault["code"] in BOTH_SEVERITIES


BOTH_SEVERITIES = {
    "R224": "a line of a file may only look like a password",
    "R215": "an escape that nothing undoes is harmless, an undefined variable is not",
    "R601": "a table entry may be pointless without being wrong",
    "R605": "an object may be written without overrides, but not a manifest without its images",
    "R610": "a file that cannot be read may hold no release",
    "R702": "a range above the tag is a leap, one below it a downgrade",
    "R704": "an odd order may be meant",
    "R705": "an unanchored pattern works, only not as people think",
}


def test_every_code_has_a_case() -> None:
    shown = {code for name in CASES for _, code, _ in HEADLINE.findall((FOLDER / name / "expected.txt").read_text())}

    assert set(CODES) - set(RESERVED) - set(ELSEWHERE) == shown


def emitted() -> Iterator[str]:
    """Yield every code that the source of the compiler names outside its list of codes."""
    package = Path(codes.__file__).parent
    for path in sorted(package.rglob("*.py")):
        if path.name != "codes.py":
            yield from re.findall(r'"(R\d{3})"', path.read_text())


def test_every_code_is_emitted_and_every_emitted_code_is_explained() -> None:
    assert set(CODES) - set(RESERVED) == set(emitted())


@pytest.mark.parametrize("code", CODES)
def test_page_of_a_code_has_title_severity_and_text(code: str) -> None:
    page = CODES[code]

    assert page.title
    assert page.title[0].isupper() or page.title.startswith("`")
    assert not page.title.endswith(".")
    assert page.severity in {"error", "warning"}
    assert page.text.endswith(".")
    assert codes.page(code) == f"## {code}: {page.title}\n\nSeverity: {page.severity}.\n\n{page.text}\n"


def test_codes_are_listed_in_order() -> None:
    assert sorted(CODES) == list(CODES)


def test_secrets_are_in_no_report() -> None:
    reports = "".join((FOLDER / name / "expected.txt").read_text() for name in CASES)

    assert "hunter" not in reports
    assert "apiToken: abc" not in reports

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from render.cli import cli, load_all
from render.diff_markdown import TAG

load_all()

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
RECIPES = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
COMMANDS = re.findall(r"^ *(?:- )?(?:run: )?(render [^\n]*)$", "".join(RECIPES), re.MULTILINE)


def parse(line: str) -> None:
    """Parse a command line as the program would, without running it."""
    words = shlex.split(re.split(r" (?:>|\|\||&&) ", line)[0])
    cli.commands[words[1]].make_context(words[1], words[2:])


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipe_is_yaml(recipe: str) -> None:
    assert yaml.safe_load(recipe)


def test_every_command_of_the_recipes_parses() -> None:
    assert {"diff", "check", "build"} == {line.split()[1] for line in COMMANDS}
    for line in COMMANDS:
        parse(line)


def test_recipes_find_the_comment_by_its_first_line() -> None:
    assert PAGE.count(TAG) == 2


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_hook_runs_a_command_that_there_is(hook: dict[str, Any]) -> None:
    parse(hook["entry"])
    assert (hook["language"], hook["pass_filenames"]) == ("python", False)


def test_hooks_run_at_every_commit() -> None:
    """A deleted service must be seen, and pre-commit does not count deleted files."""
    assert all(hook["always_run"] is True and "files" not in hook for hook in HOOKS)


def test_hooks_of_the_page_exist() -> None:
    assert {hook["id"] for hook in HOOKS} >= set(re.findall(r"- id: (\S+)", PAGE))

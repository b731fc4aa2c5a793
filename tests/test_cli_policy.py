"""The command `policy`: what it takes, prints, and leaves with."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from render.cli_policy import policy
from tests.distribution import Behaviour, docker_config, serving
from tests.project import PLATFORM, Project, Ran, project
from tests.test_policies import CATALOG

COMMAND = "from render.cli_policy import policy; policy(prog_name='render policy')"
TAGS = "1.2.3\n1.3.0\n2.0.0\nlatest\n"
CHOICE = """\
web/main: 1.3.0 (now 1.2.3)
  then 1.2.3
  not latest: does not match the pattern `^[0-9]+\\.[0-9]+\\.[0-9]+$`
  not 2.0.0: is not in the range `1.x`
"""
SPEC = """\
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImagePolicy
metadata: {name: any, namespace: flux-system}
spec:
  imageRepositoryRef: {name: any}
  policy: {alphabetical: {order: asc}}
"""


def run(made: Project, *arguments: str, stdin: str = "") -> Ran:
    """Run the command in the project's folder."""
    out, err = io.StringIO(), io.StringIO()
    given = io.TextIOWrapper(io.BytesIO(stdin.encode()))
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(made.folder):
        patch.setattr(sys, "stdin", given)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as left:
            policy.main(args=list(arguments), prog_name="render policy")
    assert isinstance(left.value.code, int)
    return Ran(left.value.code, out.getvalue(), err.getvalue())


def fault(made: Project, *arguments: str, stdin: str = "") -> str:
    """Return the message of a usage error."""
    ran = run(made, *arguments, stdin=stdin)
    assert (ran.code, ran.out) == (2, "")
    return ran.err.partition("Error: ")[2].strip()


@pytest.fixture
def made(tmp_path: Path) -> Project:
    return project(tmp_path, {"catalog/web.yaml": CATALOG, "tags.txt": TAGS, "policy.yaml": SPEC})


@pytest.mark.parametrize("target", ["web/main"])
def test_tags_of_a_file_are_judged(made: Project, target: str) -> None:
    assert run(made, target, "--tags", "tags.txt") == Ran(0, CHOICE, "")


def test_tags_come_from_a_pipe(made: Project) -> None:
    assert run(made, "web/main", "--tags", "-", stdin=TAGS) == Ran(0, CHOICE, "")


def test_catalog_and_platform_stand_where_they_are_said_to(made: Project) -> None:
    (made.folder / "catalog").rename(made.folder / "services")
    (made.folder / "platform.yaml").rename(made.folder / "cluster.yaml")
    ran = run(made, "web/main", "--tags", "tags.txt", "--catalog", "services", "--platform", "cluster.yaml")
    assert ran == Ran(0, CHOICE, "")


def test_json_is_one_document(made: Project) -> None:
    ran = run(made, "web/main", "--tags", "tags.txt", "--format", "json")
    assert ran.code == 0
    assert json.loads(ran.out) == {
        "version": 1,
        "policies": [
            {
                "service": "web",
                "image": "main",
                "selected": "1.3.0",
                "undetermined": [],
                "candidates": ["1.3.0", "1.2.3"],
                "rejected": [
                    {"tag": "latest", "reason": "does not match the pattern `^[0-9]+\\.[0-9]+\\.[0-9]+$`"},
                    {"tag": "2.0.0", "reason": "`2.0.0` is not in the range `1.x`"},
                ],
                "error": None,
            }
        ],
    }


def test_no_selection_is_exit_code_1(made: Project) -> None:
    ran = run(made, "web/main", "--tags", "-", stdin="2.0.0\n")
    assert ran == Ran(
        1,
        "web/main: nothing is selected: unable to determine latest version from provided list\n"
        "  not 2.0.0: is not in the range `1.x`\n",
        "",
    )


def test_verbose_lists_every_tag(made: Project) -> None:
    many = "".join(f"1.{number}.0\n" for number in range(40))
    short = run(made, "web/main", "--tags", "-", stdin=many).out
    long = run(made, "web/main", "--tags", "-", "-v", stdin=many).out
    assert " and 29 more" in short
    assert "more" not in long
    assert "1.0.0" in long


def test_a_manifest_needs_no_catalog(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(SPEC)
    ran = run(Project(tmp_path), "--spec", "policy.yaml", "--tags", "-", stdin="a\nb\n")
    assert ran == Ran(0, "flux-system/any: b\n  then a\n", "")


def test_a_manifest_comes_from_a_pipe(made: Project) -> None:
    ran = run(made, "--spec", "-", "--tags", "tags.txt", stdin=SPEC)
    assert ran.out.startswith("flux-system/any: latest\n")


def test_a_broken_manifest_is_told_in_place(made: Project) -> None:
    ran = run(made, "--spec", "-", "--tags", "tags.txt", stdin="kind: ImagePolicy\nspec: {policy: {}}\n")
    assert (ran.code, ran.out) == (1, "")
    assert " --> <stdin>:2:" in ran.err


def test_a_broken_catalog_is_told_in_place(made: Project) -> None:
    (made.folder / "catalog/bad.yaml").write_text("name: bad\nsauce: {}\n")
    ran = run(made, "web/main", "--tags", "tags.txt")
    assert (ran.code, ran.out) == (1, "")
    assert " --> catalog/bad.yaml:2:1" in ran.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--tags tags.txt", "give one of SERVICE, --spec and --all"),
        ("web --all --registry", "give one of SERVICE, --spec and --all"),
        ("web --spec policy.yaml --tags tags.txt", "give one of SERVICE, --spec and --all"),
        ("web", "say where the tags come from by either --tags or --registry"),
        ("web --tags tags.txt --registry", "say where the tags come from by either --tags or --registry"),
        ("--all --tags tags.txt", "--all needs --registry: the tags in one file are those of one image"),
        (
            "--spec policy.yaml --registry",
            "--spec needs --tags: an ImagePolicy does not say which repository is scanned",
        ),
        ("--spec - --tags -", "only one of --spec and --tags can be stdin"),
        ("web/main --tags none.txt", "--tags none.txt: no such file or directory"),
        ("web/main --tags catalog", "--tags catalog: is a directory"),
        ("--spec none.yaml --tags tags.txt", "--spec none.yaml: no such file or directory"),
        (
            "web/main --tags platform.json",
            "--tags platform.json: the JSON must be a list of strings, or an object with such a list under `tags`",
        ),
        ("wbe --tags tags.txt", "there is no service `wbe` in the catalog; did you mean `web`?"),
        ("other --tags tags.txt", "there is no service `other` in the catalog"),
        ("web/cahce --tags tags.txt", "`web` has no image `cahce`; did you mean `cache`?"),
        ("web --tags tags.txt", "--tags are those of one image, and `web` has 2: web/cache, web/main"),
        ("web/held --tags tags.txt", "no policy to ask: `web/held`: `pin` decides its version"),
        ("web/still --tags tags.txt", "no policy to ask: `web/still`: it has no `update`"),
        ("idle --tags tags.txt", "`idle` is disabled, or declares no image"),
        ("web/main --registry --ca-file none.pem", "there is no file none.pem"),
        ("web/main --registry --ca-file tags.txt", "tags.txt holds no certificates in PEM"),
    ],
)
def test_what_cannot_be_asked_is_told(made: Project, arguments: str, told: str) -> None:
    (made.folder / "platform.json").write_text("{}")
    (made.folder / "catalog/idle.yaml").write_text(f"{CATALOG.replace('name: web', 'name: idle')}enabled: false\n")
    assert told == fault(made, *arguments.split())


def test_without_the_client_it_is_told_what_to_install(made: Project) -> None:
    code = f"import sys; sys.modules['oras'] = None; {COMMAND}"
    for arguments, told in ((["--registry"], 2), (["--tags", "tags.txt"], 0)):
        command = [sys.executable, "-c", code, "web/main", *arguments]
        ran = subprocess.run(command, cwd=made.folder, capture_output=True, text=True, check=False)
        assert told == ran.returncode, ran.stderr
        assert ("install it with `pip install 'flux-catalog-render[registry]'`" in ran.stderr) == (told == 2)


def test_help_imports_nothing_heavy() -> None:
    heavy = ("requests", "oras", "render.build", "re2")
    code = f"import sys, render.cli_policy; print([name for name in {heavy} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def farm(folder: Path, host: str, names: list[str]) -> Project:
    """Return a catalog with one image a service, each in the registry."""
    services = {
        f"catalog/{name}.yaml": CATALOG.partition("images:")[0]
        .replace("name: web", f"name: {name}")
        .replace("ghcr.io/example/web", f"{host}/library/{name}")
        for name in names
    }
    credentials = f"registries:\n  credentials:\n  - {{registry: '{host}', insecure: true}}\n"
    return project(folder, {**services, "platform.yaml": PLATFORM.replace("registries:\n", credentials)})


@pytest.fixture
def login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what keeps a login for a registry."""
    pytest.importorskip("oras")
    (tmp_path / "docker").mkdir()
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))

    def keep(host: str) -> None:
        (tmp_path / "docker/config.json").write_text(docker_config(host))

    return keep


def test_a_registry_is_asked_with_the_login_of_docker(tmp_path: Path, login: Any) -> None:
    with serving(Behaviour({"library/web": TAGS.split()}, login="token", page=2)) as registry:
        login(registry.host)
        ran = run(farm(tmp_path, registry.host, ["web"]), "web", "--registry")
    assert ran == Ran(0, CHOICE, "")


def test_all_images_are_asked_and_each_fault_is_named(tmp_path: Path, login: Any) -> None:
    behaviour = Behaviour({"library/a": TAGS.split(), "library/c": ["3.0.0"]}, answers={"library/d": (500, b"")})
    with serving(behaviour) as registry:
        login(registry.host)
        ran = run(farm(tmp_path, registry.host, ["d", "c", "b", "a"]), "--all", "--registry")
    assert ran.code == 1
    assert [line.replace(registry.host, "HOST") for line in ran.out.splitlines() if not line.startswith(" ")] == [
        "a/main: 1.3.0 (now 1.2.3)",
        "b/main: not known: HOST: it has no repository `library/b` (repository name not known to registry)",
        "c/main: nothing is selected: unable to determine latest version from provided list",
        "d/main: not known: HOST: it answers 500 Internal Server Error",
    ]
    assert ran.err == "4 images: 1 with a selection, 3 without\n"


@pytest.mark.parametrize("jobs", [1, 3])
def test_so_many_images_are_asked_about_at_once(tmp_path: Path, login: Any, jobs: int) -> None:
    names = [f"s{number}" for number in range(8)]
    behaviour = Behaviour({f"library/{name}": TAGS.split() for name in names}, slow=0.03)
    with serving(behaviour) as registry:
        login(registry.host)
        ran = run(farm(tmp_path, registry.host, names), "--all", "--registry", "--jobs", str(jobs))
    assert (ran.code, ran.err) == (0, "8 images: 8 with a selection, 0 without\n")
    assert behaviour.open_at_once == jobs


def test_a_slow_image_fails_alone(tmp_path: Path, login: Any) -> None:
    with serving(Behaviour({"library/web": TAGS.split()}, slow=1)) as registry:
        login(registry.host)
        ran = run(farm(tmp_path, registry.host, ["web"]), "web", "--registry", "--timeout", "0.2", "--format", "json")
    assert ran.code == 1
    assert json.loads(ran.out)["policies"][0]["error"] == f"{registry.host}: no answer within 0.2 s"


def on_terminal(made: Project, *arguments: str) -> str:
    """Return what a terminal on stderr is shown."""
    ours, theirs = pty.openpty()
    try:
        command = [sys.executable, "-c", COMMAND, *arguments]
        subprocess.run(command, cwd=made.folder, stdout=subprocess.DEVNULL, stderr=theirs, check=True, timeout=60)
    finally:
        os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError), os.fdopen(ours, "rb", buffering=0) as terminal:
        while part := terminal.read(1 << 16):
            shown += part
    return shown.decode()


@pytest.mark.parametrize(("slow", "is_shown"), [(0.4, True), (0.0, False)])
def test_a_terminal_sees_progress_when_it_takes_long(tmp_path: Path, login: Any, slow: float, is_shown: bool) -> None:
    names = ["a", "b", "c"]
    with serving(Behaviour({f"library/{name}": TAGS.split() for name in names}, slow=slow)) as registry:
        login(registry.host)
        shown = on_terminal(farm(tmp_path, registry.host, names), "--all", "--registry", "--jobs", "1")
    assert ("asking registries" in shown) == is_shown
    assert shown.endswith("3 images: 3 with a selection, 0 without\r\n")


def test_a_pipe_sees_no_progress(tmp_path: Path, login: Any) -> None:
    names = ["a", "b", "c"]
    with serving(Behaviour({f"library/{name}": TAGS.split() for name in names}, slow=0.2)) as registry:
        login(registry.host)
        ran = run(farm(tmp_path, registry.host, names), "--all", "--registry", "--jobs", "1")
    assert ran.err == "3 images: 3 with a selection, 0 without\n"


def test_a_catalog_without_policies_has_nothing_to_ask(tmp_path: Path, login: Any) -> None:
    login("registry.example")
    made = project(tmp_path, {"catalog/web.yaml": "name: web\nenabled: false\n"})
    assert run(made, "--all", "--registry") == Ran(0, "", "0 images: 0 with a selection, 0 without\n")

"""New services and new repositories: what is written builds at once, and nothing is overwritten."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from render import cli_new, scaffold
from render.scaffold import NO_SOURCE, Plan, new_repository, source_of
from tests.project import PLATFORM, Project, project

CHARTS = """\
charts:
  stable: {url: https://charts.example.org}
  folder: {url: oci://r.example/charts}
  whole: {url: oci://r.example/charts/whole, version: "1.2.3"}
  named: {url: https://named.example.org, name: only}
"""


def repository(folder: Path, **files: str) -> Project:
    return project(folder, {"platform.yaml": PLATFORM + CHARTS, **files})


def errors(made: Project) -> list[str]:
    return [f"{one.code} {one.message}" for one in made.build().diagnostics if one.severity == "error"]


@pytest.mark.parametrize(
    ("options", "source"),
    [
        ("--chart stable/web --version 1.2.3", {"chart": {"repository": "stable", "name": "web", "version": "1.2.3"}}),
        (
            "--chart stable --chart-name web --version 1.2.3",
            {"chart": {"repository": "stable", "name": "web", "version": "1.2.3"}},
        ),
        ("--chart named --version 1.2.3", {"chart": {"repository": "named", "version": "1.2.3"}}),
        ("--chart whole", {"chart": {"repository": "whole"}}),
        ("--chart folder/a --version 1.2.3", {"chart": {"repository": "folder", "name": "a", "version": "1.2.3"}}),
        ("--chart oci://r.example/a --version 1.2.3", {"chart": {"url": "oci://r.example/a", "version": "1.2.3"}}),
        (
            "--chart https://h.example --chart-name a --version 1.2.3",
            {"chart": {"url": "https://h.example", "name": "a", "version": "1.2.3"}},
        ),
        (
            "--chart whole --image docker.io/x/a:1.2.3 --range 1.x",
            {"image": "docker.io/x/a:1.2.3", "chart": {"repository": "whole"}},
        ),
        (
            "--chart whole --image docker.io/x/a:1.2.3 --at controller.image",
            {"image": {"ref": "docker.io/x/a:1.2.3", "at": "controller.image"}, "chart": {"repository": "whole"}},
        ),
        ("--image docker.io/x/a:1.2.3", {"image": "docker.io/x/a:1.2.3"}),
        ("--image docker.io/x/a:1.2.3 --range ~1.2.0 --port 80", {"image": "docker.io/x/a:1.2.3"}),
        ("--image docker.io/x/a:2024.07.0 --channel calver --port 8080", {"image": "docker.io/x/a:2024.07.0"}),
    ],
)
def test_a_new_service_builds(options: str, source: dict[str, Any], tmp_path: Path) -> None:
    made = repository(tmp_path)
    ran = made.run("new", "web", *options.split())
    text = (tmp_path / "catalog/web.yaml").read_text()

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0] == "catalog/web.yaml"
    assert text.startswith("# yaml-language-server: $schema=.schema/service.json\nname: web\n")
    assert yaml.safe_load(text)["source"] == source
    assert errors(made) == []
    assert made.run("build").code == 0
    assert json.loads((tmp_path / "catalog/.schema/service.json").read_text())["title"] == "ServiceDefinition"


def test_all_that_is_said_is_written(tmp_path: Path) -> None:
    made = repository(tmp_path, **{"catalog/media/a.yaml": "name: a\nsource: {chart: {repository: whole}}\n"})
    ran = made.run(
        "new", "web", "--image", "docker.io/x/web:1.2.3", "--range", "1.x", "--port", "80", "--namespace", "media",
        "--description", "What: it does", "--dry-run",
    )  # fmt: skip

    assert ran.code == 0
    assert ran.out == (
        "# yaml-language-server: $schema=../.schema/service.json\n"
        "name: web\n"
        "namespace: media\n"
        'description: "What: it does"\n'
        "source:\n"
        "  image: docker.io/x/web:1.2.3\n"
        "update:\n"
        '  range: "1.x"\n'
        "workload:\n"
        "  ports:\n"
        "    - name: http\n"
        "      containerPort: 80\n"
        "  probes:\n"
        "    readiness:\n"
        "      tcpSocket:\n"
        "        port: http\n"
    )
    assert sorted(path.name for path in (tmp_path / "catalog").rglob("*")) == ["a.yaml", "media"]


def test_the_file_may_be_named_and_takes_the_schema_of_its_neighbours(tmp_path: Path) -> None:
    neighbour = (
        "# yaml-language-server: $schema=../../schemas/service.json\nname: a\nsource: {chart: {repository: whole}}\n"
    )
    made = repository(tmp_path, **{"catalog/media/a.yaml": neighbour})
    ran = made.run("new", "web", "--chart", "whole", "--file", "deep/er/web.yml")

    assert (ran.code, ran.out) == (0, "catalog/deep/er/web.yml\n")
    assert (
        (tmp_path / "catalog/deep/er/web.yml")
        .read_text()
        .startswith("# yaml-language-server: $schema=../../../schemas/service.json\n")
    )
    assert not (tmp_path / "catalog/.schema").exists()


def test_the_first_service_makes_the_catalog(tmp_path: Path) -> None:
    made = repository(tmp_path)
    (tmp_path / "catalog").rmdir()

    assert made.run("new", "web", "--chart", "whole").code == 0
    assert errors(made) == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    made = repository(tmp_path, **{"catalog/web.yaml": "name: other\nsource: {chart: {repository: whole}}\n"})
    before = made.tree()
    ran = made.run("new", "web", "--chart", "whole", "--format", "concise")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("catalog/web.yaml: R805 the file is there already;")
    assert made.tree() == before
    (tmp_path / "catalog/gone.yaml").symlink_to("nowhere.yaml")
    assert made.run("new", "gone", "--chart", "whole").code == 1
    assert not (tmp_path / "catalog/nowhere.yaml").exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--chart stabel/web --version 1.2.3", "catalog/web.yaml:5:17: R204 the chart source `stabel` is not in"),
        ("--chart whole --image docker.io/x/a:latest --range 1.x", "catalog/web.yaml:7:1: R703"),
        ("--chart whole --image docker.io/x/A:1", "catalog/web.yaml:4:10: R205"),
        ("--chart whole --namespace Upper", "catalog/web.yaml:3:12: R104"),
        ("--image docker.io/x/a:1.2.3 --range 3.x --port 80", "R702"),
    ],
)
def test_a_service_that_would_not_build_is_not_written(options: str, told: str, tmp_path: Path) -> None:
    made = repository(tmp_path)
    ran = made.run("new", "web", "--format", "concise", *options.split())

    assert told in ran.err
    if "warning" not in ran.err:
        assert (ran.code, ran.out) == (1, "")
        assert list((tmp_path / "catalog").iterdir()) == []


def test_a_name_that_is_taken_is_told(tmp_path: Path) -> None:
    made = repository(tmp_path, **{"catalog/z.yaml": "name: web\nsource: {chart: {repository: whole}}\n"})
    ran = made.run("new", "web", "--chart", "whole", "--format", "concise")

    assert ran.code == 1
    assert "R203" in ran.err
    assert [path.name for path in (tmp_path / "catalog").iterdir()] == ["z.yaml"]


def test_faults_of_other_services_stand_in_nobodys_way(tmp_path: Path) -> None:
    made = repository(tmp_path, **{"catalog/z.yaml": "name: z\nsorce: {}\n"})
    (tmp_path / "catalog/link.yaml").symlink_to(tmp_path / "catalog/z.yaml")
    ran = made.run("new", "web", "--chart", "whole")

    assert (ran.code, ran.err) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "Missing argument 'NAME'"),
        (("web",), "missing --chart or --image"),
        (("web", "--chart", "stable/web"), "missing --version"),
        (("web", "--chart", "stable"), "missing --chart-name, --version"),
        (("web", "--chart", "https://h.example", "--version", "1"), "missing --chart-name"),
        (("web", "--image", "a:1", "--range", "1.x"), "missing --port"),
        (("web", "--chart", "whole", "--port", "80"), "--port is for a plain Deployment"),
        (("web", "--chart", "whole", "--range", "1.x"), "are about --image"),
        (("web", "--image", "a:1", "--at", "image"), "are about --chart"),
        (("../web", "--chart", "whole"), "NAME must be"),
        (("web", "--chart", "whole", "--file", "../web.yaml"), "--file must be"),
        (("web", "--chart", "whole", "--file", "web.json"), "--file must be"),
    ],
)
def test_a_wrong_command_line_is_2(arguments: tuple[str, ...], told: str, tmp_path: Path) -> None:
    ran = repository(tmp_path).run("new", *arguments)

    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err


def test_a_platform_file_is_needed(tmp_path: Path) -> None:
    made = repository(tmp_path)
    (tmp_path / "platform.yaml").unlink()
    ran = made.run("new", "web", "--chart", "whole", "--format", "concise")

    assert ran.code == 1
    assert "R105" in ran.err


class Person:
    """Answers questions in order, and remembers them."""

    def __init__(self, *answers: str) -> None:
        self.answers = iter(answers)
        self.asked: list[str] = []

    def __call__(self, question: str, *, type: Any = None, default: str | None = None, **_: Any) -> Any:  # noqa: A002
        self.asked.append(question)
        answer = next(self.answers)
        return click.types.convert_type(type or str)(answer or default)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Any:
    def sit(*answers: str) -> Person:
        person = Person(*answers)
        monkeypatch.setattr(cli_new, "_is_terminal", lambda: True)
        monkeypatch.setattr(click, "prompt", person)
        return person

    return sit


def test_a_terminal_is_asked_for_what_is_missing(tmp_path: Path, terminal: Any) -> None:
    person = terminal("stable", "", "media", "web", "1.2.3")
    made = repository(tmp_path)
    ran = made.run("new", "web")

    assert ran.code == 0
    assert len(person.asked) == 5
    assert "chart sources of the platform: stable, folder, whole, named" in ran.err
    assert yaml.safe_load((tmp_path / "catalog/web.yaml").read_text()) == {
        "name": "web",
        "namespace": "media",
        "source": {"chart": {"repository": "stable", "name": "web", "version": "1.2.3"}},
    }


def test_a_plain_deployment_is_asked_for_its_port(tmp_path: Path, terminal: Any) -> None:
    person = terminal("", "docker.io/x/a:1.2.3", "1.x", "", "8080")
    made = repository(tmp_path)

    assert made.run("new", "web").code == 0
    assert person.asked[-1] == "Port that the container listens on"
    assert errors(made) == []


def test_a_terminal_is_not_asked_when_nothing_is_missing(tmp_path: Path, terminal: Any) -> None:
    person = terminal()

    assert repository(tmp_path).run("new", "web", "--chart", "whole").code == 0
    assert person.asked == []


# A new repository


def empty(folder: Path) -> Project:
    return Project(folder)


def test_a_new_repository_builds_at_once(tmp_path: Path) -> None:
    made = empty(tmp_path)
    ran = made.run("init", "--cluster", "home", "--ci", "github")

    assert ran.code == 0
    assert ran.out.splitlines() == [
        ".github/workflows/render.yaml",
        ".pre-commit-config.yaml",
        "catalog/.schema/platform.json",
        "catalog/.schema/service.json",
        "catalog/demo/podinfo.yaml",
        "platform.yaml",
    ]
    assert "point Flux at ./clusters/home/flux" in ran.err
    built = made.run("build", "--fail-on", "warning")
    assert (built.code, built.err) == (0, built.err)
    assert "1 service" in built.err
    assert made.run("check").code == 0
    assert (tmp_path / "clusters/home/apps/podinfo/helmrelease.yaml").is_file()
    assert (tmp_path / "platform.yaml").read_text() == (
        "# yaml-language-server: $schema=catalog/.schema/platform.json\n"
        "cluster: home\n"
        "root: clusters/home\n"
        "flux:\n"
        '  version: "2.9"\n'
    )


def test_a_service_is_added_to_a_new_repository(tmp_path: Path) -> None:
    made = empty(tmp_path)
    assert made.run("init", "--cluster", "home", "--no-example", "--quiet").err == ""
    assert made.run("build").code == 0
    new = made.run("new", "web", "--chart", "oci://r.example/web", "--version", "1.2.3")

    assert (new.code, new.out) == (0, "catalog/web.yaml\n")
    assert made.run("build", "--fail-on", "warning").code == 0


@pytest.mark.parametrize("ci", ["github", "gitlab", "forgejo", "none"])
def test_the_pipeline_is_of_the_kind_that_is_wanted(ci: str, tmp_path: Path) -> None:
    made = empty(tmp_path)
    url = "https://git.corp.example/render@v1.0.0"
    ran = made.run("init", "infra", "--cluster", "home", "--ci", ci, "--source", url, "--no-pre-commit", "--no-example")
    texts = [path.read_text() for path in (tmp_path / "infra").rglob("*") if path.suffix in (".yml", ".yaml")]
    pipelines = [text for text in texts if "render check" in text]

    assert ran.code == 0
    assert len(pipelines) == (ci != "none")
    for text in pipelines:
        assert isinstance(yaml.safe_load(text), dict)
        assert f'pip install "git+{url}"' in text
    assert NO_SOURCE not in ran.err


def test_a_place_that_nobody_knows_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaffold, "source_of", lambda: f"{NO_SOURCE}@v0")
    ran = empty(tmp_path).run("init", "--cluster", "home", "--ci", "gitlab")

    assert f"put the place of `render` into the pipeline, in the place of {NO_SOURCE}" in ran.err


@pytest.mark.parametrize(
    ("noted", "source"),
    [
        (None, NO_SOURCE),
        ('{"url": "file:///x", "dir_info": {"editable": true}}', NO_SOURCE),
        (
            '{"url": "https://git.corp.example/render", "vcs_info": {"vcs": "git", "commit_id": "abc"}}',
            "https://git.corp.example/render@abc",
        ),
    ],
)
def test_the_place_of_the_compiler_is_what_pip_noted(
    noted: str | None, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Installed:
        def read_text(self, _: str) -> str | None:
            return noted

    monkeypatch.setattr(scaffold, "distribution", lambda _: Installed())

    assert source_of().startswith(source)


def test_a_compiler_that_is_not_installed_has_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaffold, "DISTRIBUTION", "no-such-distribution")

    assert source_of().startswith(NO_SOURCE)


@pytest.mark.parametrize("path", ["platform.yaml", ".pre-commit-config.yaml", "catalog/.schema/service.json"])
def test_init_overwrites_nothing(path: str, tmp_path: Path) -> None:
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text("mine")
    ran = empty(tmp_path).run("init", "--cluster", "home", "--format", "concise")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"{path}: R805 the file is there already")
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == [tmp_path / path]


def test_init_refuses_what_would_not_build(tmp_path: Path) -> None:
    made = empty(tmp_path)

    for options in (("--cluster", "Home"), ("--cluster", "home", "--flux-version", "2.1")):
        ran = made.run("init", *options, "--format", "concise")
        assert ran.code == 1
        assert "platform.yaml:" in ran.err
        assert list(tmp_path.iterdir()) == []
    assert made.run("init").code == 2
    assert made.run("init", "--cluster", "home", "--source", 'x" y').code == 2


@pytest.mark.parametrize(
    ("root", "told"),
    [
        ("../x", "infra/platform.yaml:3:7: R502"),
        ("/x", "infra/platform.yaml:3:7: R502"),
        ("catalog", "infra/platform.yaml:3:7: R241"),
        ("catalog/home", "infra/platform.yaml:3:7: R241"),
        ("platform.yaml", "infra/platform.yaml: R508"),
    ],
)
def test_init_refuses_a_root_that_no_build_could_write_to(root: str, told: str, tmp_path: Path) -> None:
    ran = empty(tmp_path).run("init", "infra", "--cluster", "home", "--root", root, "--format", "concise")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(told)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("root", "told"), [(".", "./flux"), ("./a//b/", "./a/b/flux"), ("a b", "./a b/flux")])
def test_init_tells_where_flux_is_pointed(root: str, told: str, tmp_path: Path) -> None:
    ran = empty(tmp_path).run("init", "--cluster", "home", "--root", root)

    assert ran.err == f"next: `render build`, commit, and point Flux at {told}\n"
    assert empty(tmp_path).run("build").code == 0


def test_init_writes_all_or_nothing(tmp_path: Path) -> None:
    (tmp_path / "infra").mkdir()
    (tmp_path / "infra/catalog").write_text("no folder")
    ran = empty(tmp_path).run("init", "infra", "--cluster", "home", "--ci", "github", "--format", "concise")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("infra/catalog: R508 cannot write the folder: file exists;")
    assert [path.name for path in tmp_path.rglob("*")] == ["infra", "catalog"]


def test_what_lies_in_a_catalog_beside_its_definitions_does_not_matter(tmp_path: Path) -> None:
    made = repository(tmp_path)
    (tmp_path / "catalog/.secret").mkdir(mode=0)
    os.mkfifo(tmp_path / "catalog/pipe")
    os.mkfifo(tmp_path / "catalog/pipe.yaml")
    (tmp_path / "catalog/notes.bin").write_bytes(bytes(range(256)))
    (tmp_path / "catalog/gone").symlink_to("nowhere")

    assert made.run("new", "web", "--chart", "whole").code == 0


def test_a_terminal_is_asked_for_the_cluster(tmp_path: Path, terminal: Any) -> None:
    person = terminal("lab", "2.8", "", "")
    (tmp_path / ".github").mkdir()
    made = empty(tmp_path)
    ran = made.run("init")

    assert ran.code == 0
    assert person.asked == ["Name of the cluster", "Flux version", "Output root", "Pipeline"]
    assert (tmp_path / ".github/workflows/render.yaml").is_file()
    assert yaml.safe_load((tmp_path / "platform.yaml").read_text()) == {
        "cluster": "lab",
        "root": "clusters/lab",
        "flux": {"version": "2.8"},
    }


def test_a_folder_that_cannot_be_written_leaves_nothing_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = new_repository(Plan(tmp_path, "home", "2.9", "clusters/home"))
    (tmp_path / "catalog").write_text("a file")
    faults = scaffold.write(made.files)

    assert [one.code for one in faults] == ["R508"]

    class Full:
        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            return None

        def write(self, _: str) -> None:
            raise OSError(28, "No space left on device")

    def opened(self: Path, *_: object, **__: object) -> Full:
        self.touch()
        return Full()

    monkeypatch.setattr(Path, "open", opened)
    faults = scaffold.write({tmp_path / "new.yaml": "text"})
    assert [one.message for one in faults] == ["cannot write the file: no space left on device"]
    assert not (tmp_path / "new.yaml").exists()


def test_the_json_report_holds_the_files(tmp_path: Path) -> None:
    made = repository(tmp_path)
    ran = made.run("new", "web", "--chart", "whole", "--format", "json", "--dry-run")
    report = json.loads(ran.out)

    assert (ran.code, ran.err) == (0, "")
    assert (report["version"], report["written"], report["diagnostics"]) == (1, [], [])
    assert sorted(report["files"]) == ["catalog/.schema/service.json", "catalog/web.yaml"]
    report = json.loads(made.run("new", "web", "--chart", "whole", "--format", "json").out)
    assert report["files"]["catalog/web.yaml"] == (tmp_path / "catalog/web.yaml").read_text()
    assert sorted(report["written"]) == sorted(report["files"])
    ran = made.run("new", "web", "--chart", "whole", "--format", "json")
    report = json.loads(ran.out)
    assert (ran.code, report["written"], [one["code"] for one in report["diagnostics"]]) == (1, [], ["R805"])


def test_github_gets_commands_on_stdout(tmp_path: Path) -> None:
    made = repository(tmp_path)
    ran = made.run("new", "web", "--chart", "whole", "--format", "github")

    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("catalog/web.yaml\n")
    assert made.run("new", "web", "--chart", "whole", "--format", "github").out.startswith(
        "::error file=catalog/web.yaml,title=R805::"
    )

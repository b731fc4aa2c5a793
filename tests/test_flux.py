"""Flux's install manifest with its images rewritten, and every other byte as it was."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from render.flux.override_sites import transform
from render.flux.overrides import Entry, apply
from render.manifest import MAX_MIB, Rewrite, read, rewrite
from render.override import read_flux_table, read_json_table
from tests.project import project

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: source-controller
  namespace: flux-system
spec:
  template:
    spec:
      initContainers:
      - image: ghcr.io/fluxcd/init:v1 # first
      containers:
      - image: "ghcr.io/fluxcd/source-controller:v1.6.2"
        name: manager
      volumes:
      - image: {reference: 'ghcr.io/fluxcd/data:v1'}
"""

CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: pods.example.org
spec:
  containers:
  - image: ghcr.io/fluxcd/source-controller:v1.6.2
  big: 123456789012345678901234567890
"""


def rewritten(data: bytes | str, entries: list[dict[str, str]]) -> Rewrite:
    made = read(Path("-"), io.BytesIO(data.encode() if isinstance(data, str) else data))
    table = read_json_table(json.dumps(entries), "--overrides")
    assert not table.failed
    rewrite(made, table.placed, "--overrides")
    return made


def told(made: Rewrite) -> list[str]:
    return [f"{one.code} {one.location} {one.message}" for one in made.diagnostics]


def test_images_of_every_place_are_rewritten_and_nothing_else() -> None:
    entries = [
        {"name": "ghcr.io/fluxcd/init", "newTag": "v2"},
        {"name": "ghcr.io/fluxcd/data", "newName": "r.example:5000/data"},
        {"name": "ghcr.io/fluxcd/source-controller", "newName": "r.example/sc", "digest": "sha256:" + "a" * 64},
    ]
    made = rewritten(f"{CRD}---\n{DEPLOYMENT}", entries)

    assert made.diagnostics == []
    assert made.made.decode() == f"{CRD}---\n{DEPLOYMENT}".replace(
        "ghcr.io/fluxcd/init:v1 #", "ghcr.io/fluxcd/init:v2 #"
    ).replace("'ghcr.io/fluxcd/data:v1'", "'r.example:5000/data:v1'").replace(
        '"ghcr.io/fluxcd/source-controller:v1.6.2"', f'"r.example/sc@sha256:{"a" * 64}"'
    )
    assert [(fate.kind, fate.name, fate.path, fate.place.line) for fate in made.fates] == [
        ("Deployment", "flux-system/source-controller", "spec.template.spec.initContainers[0].image", 19),
        ("Deployment", "flux-system/source-controller", "spec.template.spec.containers[0].image", 21),
        ("Deployment", "flux-system/source-controller", "spec.template.spec.volumes[0].image.reference", 24),
    ]


def test_items_of_a_list_object_are_named_by_themselves() -> None:
    item = json.loads(json.dumps(yaml.safe_load(DEPLOYMENT)))
    data = json.dumps({"apiVersion": "v1", "kind": "List", "items": [{"kind": "List", "items": [item]}]})
    made = rewritten(data, [{"name": "ghcr.io/fluxcd/init", "newTag": "v2"}])

    assert told(made) == []
    assert made.made.decode() == data.replace("init:v1", "init:v2")
    assert made.fates[0][1:4] == (
        "Deployment",
        "flux-system/source-controller",
        "spec.template.spec.initContainers[0].image",
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"# nothing\n",
        b"\xef\xbb\xbf" + DEPLOYMENT.encode(),
        DEPLOYMENT.replace("\n", "\r\n").encode(),
        DEPLOYMENT.rstrip("\n").encode(),
        b"kind: Odd\nmetadata: {name: a}\nspec: {template: text}\n---\n" + DEPLOYMENT.encode() + b"...\n\n\n",
    ],
)
def test_an_empty_list_changes_no_byte_and_lists_every_image(data: bytes) -> None:
    made = rewritten(data, [])

    assert (made.diagnostics, made.made) == ([], data)
    assert [fate.before for fate in made.fates] == (
        ["ghcr.io/fluxcd/init:v1", "ghcr.io/fluxcd/source-controller:v1.6.2", "ghcr.io/fluxcd/data:v1"]
        if len(data) > 20
        else []
    )


def test_a_mark_of_the_byte_order_and_line_ends_stay() -> None:
    data = b"\xef\xbb\xbf" + DEPLOYMENT.replace("\n", "\r\n").rstrip().encode()
    made = rewritten(data, [{"name": "ghcr.io/fluxcd/data", "newTag": "v2"}])

    assert made.made == data.replace(b"data:v1", b"data:v2")


def test_an_entry_may_be_a_chain_that_an_entry_below_goes_on_with() -> None:
    entries = [{"name": "ghcr.io/fluxcd/init", "newName": "mid"}, {"name": "mid", "newName": "r.example/init"}]
    made = rewritten(DEPLOYMENT, entries)

    assert told(made) == []
    assert b"- image: r.example/init:v1 # first" in made.made


def test_aliases_that_all_become_the_same_are_one_change() -> None:
    data = """\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  initContainers:
  - &c
    image: &i ghcr.io/fluxcd/source-controller:v1.6.2
    name: first
  containers:
  - {image: *i, name: second}
  - {<<: *c, name: third}
"""
    made = rewritten(data, [{"name": "ghcr.io/fluxcd/source-controller", "newName": "r.example/sc"}])

    assert told(made) == []
    assert made.made.decode() == data.replace("ghcr.io/fluxcd/source-controller", "r.example/sc")
    assert [fate.after for fate in made.fates] == ["r.example/sc:v1.6.2"] * 3


@pytest.mark.parametrize(
    "use",
    [
        "metadata: {name: a, annotations: {of: *i}}\n",
        "metadata: {name: a, annotations: {*i : x}}\n",
        "status: {image: *i}\nmetadata: {name: a}\n",
    ],
)
def test_an_alias_that_is_no_image_forbids_the_change(use: str) -> None:
    data = f"apiVersion: v1\nkind: Pod\nspec: {{containers: [{{image: &i a:1}}]}}\n{use}"
    made = rewritten(data, [{"name": "a", "newTag": "2"}])

    assert told(made) == ["R803 <stdin>:3:29 aliases repeat `a:1` where it does not become `a:2`"]
    assert made.made == data.encode()


def test_an_alias_in_another_document_is_another_anchor() -> None:
    pod = "kind: Pod\nmetadata: {name: %s}\nspec: {containers: [{image: &i %s:1}]}\nuse: %s\n"
    data = pod % ("a", "a", "x") + "---\n" + pod % ("b", "b", "*i")
    made = rewritten(data, [{"name": "a", "newTag": "2"}])

    assert told(made) == []
    assert made.made.decode() == data.replace("a:1", "a:2")


def test_all_faults_are_told_at_once() -> None:
    data = "kind: Pod\nmetadata: {name: a}\nspec: {containers: [{image: a}, {image: &i b:1}]}\nuse: *i\n"
    entries = [{"name": "a", "newName": "1e3"}, {"name": "b", "newTag": "2"}, {"name": "c", "newTag": "2"}]

    assert [one.split()[0] for one in told(rewritten(data, entries))] == ["R801", "R803", "R803"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a: \xff", "R001 <stdin>:1 byte 0xff is not UTF-8"),
        (b"a: [", "R003 <stdin>:1:5 not valid YAML: a missing value"),
        (b"#" * ((MAX_MIB << 20) + 1), f"R005 <stdin> the manifest has more than {MAX_MIB} MiB"),
        (b"a: 1\na: 2", "R002 <stdin>:2:1 duplicate key `a`"),
    ],
)
def test_what_cannot_be_read_is_refused(data: bytes, expected: str) -> None:
    made = read(Path("-"), io.BytesIO(data))
    if not made.failed:
        rewrite(made, read_json_table("[]", "x").placed, "x")

    assert [one.removesuffix(" (the same key as `a`)") for one in told(made)] == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "R802 o:1:1 not JSON: expecting value"),
        ("[] []", "R802 o:1:4 nothing may stand after the list"),
        ("[]x", "R802 o:1:3 nothing may stand after the list"),
        ("{}", "R802 o:1:1 the overrides must be a list"),
        ("null", "R802 o:1:1 the overrides must be a list"),
        ('[{"name": NaN}]', "R802 o:1:1 not JSON: `NaN` is no JSON value"),
        ("- name: a", "R802 o:1:1 not JSON: expecting value"),
        pytest.param("[" * 100_000, "R802 o:1:1 too many lists in each other", id="deep"),
        ('[{"name":"a","newTag":"1","newTag":"2"}]', "R002 o:1:27 duplicate key `newTag`"),
        ('[{"name":"a","newTag":1.10}]', "R601 o:1:23 `o[0]`: `newTag` must be a string, not the number `1.10`"),
        ('[{"name":"a","newTag":"1","digest":null}]', "R802 o:1:36 `digest` must be a string, not null"),
        ('["a"]', "R601 o:1:2 `o[0]`: an entry must be a map, not the value `a`"),
        ('[{"name":"a","tagSuffix":"x","newTag":"1"}]', "R601 o:1:14 `o[0]`: unknown field `tagSuffix`"),
    ],
)
def test_overrides_are_one_strict_list(text: str, expected: str) -> None:
    faults = read_json_table(text, "o").diagnostics

    assert [f"{one.code} {one.location} {one.message}" for one in faults] == [expected]


def test_overrides_may_be_spread_over_lines_and_tabs() -> None:
    table = read_json_table('\n[\n\t{"name": "reg:5000/a",\n\t "newTag": "v1#2"\n}]\n', "o")

    # A tag cannot hold `#`; what matters is that it is no comment.
    assert [one.message for one in table.diagnostics] == ["`o[0]`: `newTag` must be a tag, not `v1#2`"]


JSON_NAMES = st.from_regex(r"[a-z0-9]{1,8}(/[a-z0-9]{1,8})?", fullmatch=True)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"name": JSON_NAMES, "newTag": st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,9}", fullmatch=True)},
            optional={"newName": JSON_NAMES.map("r.example:5000/".__add__), "digest": st.just("sha256:" + "a" * 64)},
        ),
        max_size=3,
        unique_by=lambda one: one["name"],
    ),
    st.sampled_from([None, 2, "\t"]),
    st.booleans(),
)
def test_json_is_read_as_json(entries: list[dict[str, str]], indent: int | str | None, ascii_only: bool) -> None:
    table = read_json_table(json.dumps(entries, indent=indent, ensure_ascii=ascii_only), "o")

    assert not table.failed
    assert table.entries == [Entry.of(one) for one in entries]


@given(st.text(max_size=12))
def test_text_that_is_no_list_of_json_is_refused(text: str) -> None:
    try:
        expected = json.loads(text) == []
    except ValueError:
        expected = False

    assert read_json_table(text, "o").failed == (not expected)


def test_the_platform_file_may_have_no_overrides(tmp_path: Path) -> None:
    (tmp_path / "platform.yaml").write_text("cluster: a\nflux: {version: '2.9'}\n")
    table = read_flux_table(tmp_path / "platform.yaml")

    assert (table.entries, table.diagnostics) == ([], [])
    assert read_flux_table(tmp_path / "none.yaml").failed


# Manifests as texts in which only the images are known places.

NAMES = ["ghcr.io/fluxcd/source-controller", "r:5000/a", "a", "docker.io/library/a"]
TAGS = ["", ":1", ":v1.2.3", f"@sha256:{'0' * 64}", f":v1@sha256:{'f' * 64}"]
REFERENCES = st.builds(str.__add__, st.sampled_from(NAMES), st.sampled_from(TAGS))
ENTRIES = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(NAMES)},
        optional={
            "newName": st.sampled_from(["mirror.example/x", "r.example:443/y/z", "a", "docker.io/library/a"]),
            "newTag": st.sampled_from(["2", "v9.1", "1e3", "latest"]),
            "digest": st.just("sha256:" + "9" * 64),
        },
    ).filter(lambda entry: len(entry) > 1 and entry.get("newName") != entry["name"]),
    max_size=3,
    unique_by=lambda entry: entry["name"],
)


class Image(NamedTuple):
    reference: str
    quote: str


Piece = str | Image


@st.composite
def containers(draw: st.DrawFn, indent: str) -> list[Piece]:
    made: list[Piece] = []
    for index in range(draw(st.integers(1, 3))):
        quote = draw(st.sampled_from(["", "'", '"']))
        image = Image(draw(REFERENCES), quote)
        form = draw(st.integers(0, 4))
        if form == 0:
            made += [f"{indent}- {{ name: c{index},  image: ", image, " }  # flow\n"]
        elif form == 1:
            made += [f'{indent}- {{"image":', image._replace(quote='"'), f', "name":"c{index}"}}\n']
        elif form == 2:
            made += [f"{indent}-   name:   c{index}\n{indent}    image   :  ", image, "   # a:1\n\n"]
        elif form == 3:
            made += [f"{indent}- image: |-\n{indent}    ", image._replace(quote=""), f"\n{indent}  name: c{index}\n"]
        else:
            made += [f"{indent}- image:\n{indent}    # a:1\n{indent}    !!str ", image, f"\n{indent}  n: 0o17\n"]
    return made


@st.composite
def objects(draw: st.DrawFn, index: int) -> list[Piece]:
    kind = draw(st.sampled_from(["Deployment", "Pod", "CronJob", "CustomResourceDefinition", "ConfigMap", "Widget"]))
    head = f"# object {index}: a:1\nkind: {kind}\napiVersion: v1\nmetadata: {{name: o{index}, labels: {{a: &x 010}}}}\n"
    if kind == "ConfigMap":
        return [head, "data:\n  image: a:1\n  text: |\n    containers:\n    - image: a:1\n"]
    inner = draw(containers("    "))
    if kind == "CustomResourceDefinition":
        inner = [f"{one.quote}{one.reference}{one.quote}" if isinstance(one, Image) else one for one in inner]
    if kind in ("Pod", "CustomResourceDefinition"):
        return [head, "spec:\n  containers:\n", *inner, "  image: a:1\n  other: *x\n"]
    path = {"Deployment": ["spec:", " template:", "  spec:"], "CronJob": ["spec:", " jobTemplate:", "  pod:"]}
    lines = path.get(kind, ["status:", " a:", "  b:"])
    return [head, "".join(f"{line}\n" for line in lines), "   initContainers:\n", *inner, "   big: 1e400\n"]


@st.composite
def manifests(draw: st.DrawFn) -> tuple[list[Piece], str]:
    pieces: list[Piece] = []
    for index in range(draw(st.integers(1, 3))):
        pieces += ["---\n" if pieces or draw(st.booleans()) else "", *draw(objects(index))]
    return pieces, draw(st.sampled_from(["\n", "\r\n"]))


def text_of(pieces: list[Piece], end: str, entries: list[Entry]) -> str:
    """The manifest with every image as the entries leave it."""
    made = []
    for one in pieces:
        if isinstance(one, Image):
            after = apply(entries, one.reference).text
            made.append(f"{one.quote}{after}{one.quote}")
        else:
            made.append(one)
    return "".join(made).replace("\n", end)


@given(manifests(), ENTRIES, st.booleans(), st.booleans())
def test_text_outside_the_images_is_untouched(
    made: tuple[list[Piece], str], raw: list[dict[str, str]], whole: bool, marked: bool
) -> None:
    pieces, end = made
    entries = [Entry.of(one) for one in raw]
    cut = len(end) if not whole and str(pieces[-1]).endswith("\n") else 0
    before, after = (text_of(pieces, end, used) for used in ([], entries))
    before, after = (("\ufeff" if marked else "") + text[: len(text) - cut] for text in (before, after))
    found = rewritten_if_hit(before, raw)
    if found is None:
        return

    assert found.made.decode() == after
    images = [one.reference for one in pieces if isinstance(one, Image)]
    assert [fate.before for fate in found.fates] == images
    plain, expected = (list(yaml.load_all(text, yaml.CBaseLoader)) for text in (before, found.made.decode()))
    assert transform(plain, entries).documents == expected


def rewritten_if_hit(text: str, raw: list[dict[str, str]]) -> Rewrite | None:
    """The rewritten manifest; None when an entry matches nothing, which must then be what is told."""
    found = read(Path("-"), io.BytesIO(text.encode()))
    rewrite(found, read_json_table(json.dumps(raw), "--overrides").placed, "--overrides")
    errors = [one for one in found.diagnostics if one.severity == "error"]
    hit = {step.entry for fate in found.fates for step in fate.trace}
    assert [one.code for one in errors] == ["R801"] * (len(raw) - len(hit))
    if errors:
        assert found.made == text.encode()
        return None
    return found


# The command.

PLATFORM = """\
cluster: test
flux:
  version: "2.9"
fluxImageOverrides:
  - name: ghcr.io/fluxcd/source-controller
    newName: r.example/sc
"""
FILES = {"gotk.yaml": DEPLOYMENT, "platform.yaml": PLATFORM}


def test_the_product_is_stdout_and_the_report_stderr(tmp_path: Path) -> None:
    made = project(tmp_path, FILES)
    ran = made.run("flux", "gotk.yaml")

    assert (ran.code, ran.out) == (0, DEPLOYMENT.replace("ghcr.io/fluxcd/source-controller", "r.example/sc"))
    assert ran.err == (
        "gotk.yaml:10:16: Deployment flux-system/source-controller: `ghcr.io/fluxcd/init:v1` stays, no entry matches\n"
        "gotk.yaml:12:16: Deployment flux-system/source-controller: "
        "`ghcr.io/fluxcd/source-controller:v1.6.2` -> `r.example/sc:v1.6.2`\n"
        "gotk.yaml:15:28: Deployment flux-system/source-controller: `ghcr.io/fluxcd/data:v1` stays, no entry matches\n"
        "3 images: 1 rewritten, 2 unchanged\n"
    )
    assert made.run("flux", "gotk.yaml", "--quiet") == ran.__class__(0, ran.out, "")
    assert (tmp_path / "gotk.yaml").read_text() == DEPLOYMENT


def test_in_place_writes_the_file_with_its_permissions(tmp_path: Path) -> None:
    made = project(tmp_path, FILES)
    (tmp_path / "gotk.yaml").chmod(0o640)
    ran = made.run("flux", "gotk.yaml", "--in-place")

    assert (ran.code, ran.out) == (0, "")
    assert (tmp_path / "gotk.yaml").read_text() == DEPLOYMENT.replace(
        "ghcr.io/fluxcd/source-controller", "r.example/sc"
    )
    assert (tmp_path / "gotk.yaml").stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["catalog", "gotk.yaml", "platform.yaml"]


def test_in_place_leaves_a_file_without_changes_alone(tmp_path: Path) -> None:
    made = project(tmp_path, FILES)
    before = (tmp_path / "gotk.yaml").stat()
    ran = made.run("flux", "gotk.yaml", "--in-place", "--overrides", "[]")

    assert ran.code == 0
    assert (tmp_path / "gotk.yaml").stat() == before


def test_in_place_follows_no_link(tmp_path: Path) -> None:
    made = project(tmp_path, FILES)
    (tmp_path / "link.yaml").symlink_to("gotk.yaml")
    ran = made.run("flux", "link.yaml", "--in-place", "--format", "concise")

    assert ran.code == 1
    assert ran.err.splitlines()[0] == (
        "link.yaml: R506 the file is a symbolic link; name the file that the link leads to"
    )
    assert (tmp_path / "gotk.yaml").read_text() == DEPLOYMENT
    assert made.run("flux", "link.yaml").code == 0


def test_nothing_is_written_on_a_fault(tmp_path: Path) -> None:
    made = project(tmp_path, FILES)
    overrides = '[{"name":"ghcr.io/fluxcd/init","newTag":"v2"},{"name":"nginx","newTag":"1"}]'
    for more in ((), ("--in-place",)):
        ran = made.run("flux", "gotk.yaml", "--overrides", overrides, *more)

        assert (ran.code, ran.out) == (1, "")
        assert "no image of the manifest is `nginx`" in ran.err
        assert "3 images: 1 would be rewritten, 2 unchanged" in ran.err
    assert (tmp_path / "gotk.yaml").read_text() == DEPLOYMENT


def test_a_warning_stops_where_it_is_told_to(tmp_path: Path) -> None:
    made = project(tmp_path, FILES)
    overrides = '[{"name":"ghcr.io/fluxcd/init","newName":"mid"},{"name":"mid","newTag":"2"}]'
    ran = made.run("flux", "gotk.yaml", "--overrides", overrides, "--fail-on", "warning")

    assert (ran.code, ran.out) == (1, "")
    assert "warning[R608]" in ran.err
    assert made.run("flux", "gotk.yaml", "--overrides", overrides).code == 0


def test_the_json_report_is_the_product(tmp_path: Path) -> None:
    ran = project(tmp_path, FILES).run("flux", "gotk.yaml", "--format", "json")
    report: Any = json.loads(ran.out)

    assert (ran.code, ran.err) == (0, "")
    assert {key: value for key, value in report.items() if key != "images"} == {
        "version": 1,
        "file": "gotk.yaml",
        "changed": True,
        "written": False,
        "entries": [
            {
                "name": "ghcr.io/fluxcd/source-controller",
                "newName": "r.example/sc",
                "newTag": None,
                "digest": None,
                "images": 1,
            }
        ],
        "diagnostics": [],
    }
    assert report["images"][1] == {
        "line": 12,
        "column": 16,
        "kind": "Deployment",
        "name": "flux-system/source-controller",
        "path": "spec.template.spec.containers[0].image",
        "before": "ghcr.io/fluxcd/source-controller:v1.6.2",
        "after": "r.example/sc:v1.6.2",
        "entries": [0],
    }
    assert [one["entries"] for one in report["images"]] == [[], [0], []]


def test_the_json_report_says_what_is_written(tmp_path: Path) -> None:
    made = project(tmp_path, FILES)

    assert json.loads(made.run("flux", "gotk.yaml", "--format", "json", "--in-place").out)["written"] is True
    faulty = made.run("flux", "gotk.yaml", "--format", "json", "--overrides", "x")
    report = json.loads(faulty.out)
    assert (faulty.code, report["images"], report["entries"]) == (1, [], [])
    assert [one["code"] for one in report["diagnostics"]] == ["R802"]


def test_github_gets_commands_and_no_manifest(tmp_path: Path) -> None:
    ran = project(tmp_path, FILES).run(
        "flux", "gotk.yaml", "--format", "github", "--overrides", '[{"name":"nginx","newTag":"1"}]'
    )

    assert ran.code == 1
    assert ran.out.startswith("::error file=--overrides,line=1,col=10,title=R801::")
    assert "kind: Deployment" not in ran.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("-", "--in-place"), "--in-place needs a file"),
        (("gotk.yaml", "--overrides", "[]", "--platform", "platform.yaml"), "either --overrides or --platform"),
        ((), "Missing argument 'FILE'"),
    ],
)
def test_a_wrong_command_line_is_2(arguments: tuple[str, ...], told: str, tmp_path: Path) -> None:
    ran = project(tmp_path, FILES).run("flux", *arguments)

    assert ran.code == 2
    assert told in ran.err


@pytest.mark.parametrize("more", [(), ("--in-place",)])
def test_a_file_that_is_not_there_is_told(more: tuple[str, ...], tmp_path: Path) -> None:
    ran = project(tmp_path, FILES).run("flux", "none.yaml", "--format", "concise", *more)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("none.yaml: R001 cannot read the file: no such file or directory")


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from render import writer

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer, "replace", full)
    ran = project(tmp_path, FILES).run("flux", "gotk.yaml", "--in-place", "--format", "concise")

    assert ran.code == 1
    assert ran.err.startswith("gotk.yaml: R508 cannot write the file: no space left on device")
    assert (tmp_path / "gotk.yaml").read_text() == DEPLOYMENT

from __future__ import annotations

from pathlib import Path

import pytest

from render.build import Build
from tests.project import PLATFORM, project

WEB = "name: web\nsource: {chart: {url: 'oci://charts.example.org/c', version: '1.0.0'}}\n"
DECLARED = PLATFORM + "defaults: {substitute: [DOMAIN, _x1]}\n"
EMPTY = PLATFORM + "defaults: {substitute: []}\n"


def made(folder: Path, text: str, platform: str = DECLARED) -> Build:
    return project(folder, {"catalog/web.yaml": text, "platform.yaml": platform}).build()


def codes(folder: Path, value: str, platform: str = DECLARED) -> list[str]:
    """Return the codes told of a value."""
    return [fault.code for fault in made(folder, f"{WEB}values:\n  a: '{value}'\n", platform).diagnostics]


@pytest.mark.parametrize(
    "value",
    [
        "${DOMAIN}",
        "https://web.${DOMAIN}/${_x1}",
        "${DOMAIN:=example.org}",
        "${OTHER:=example.org}",
        "${OTHER:-example.org}",
        "${OTHER=x}",
        "${OTHER:=}",
        "$${OTHER}",
        "$DOMAIN",
        "$OTHER and $(OTHER)",
        "100$",
        "$$",
        "{OTHER}",
    ],
)
def test_what_flux_can_fill_or_leaves_alone_is_taken(tmp_path: Path, value: str) -> None:
    assert codes(tmp_path, value) == []


@pytest.mark.parametrize(
    "value", ["${OTHER}", "a ${OTHER} b", "${DOMAIN}${OTHER}", "${domain}", "$$${OTHER}", "${OTHER:+x}"]
)
def test_variable_that_is_not_declared_is_refused(tmp_path: Path, value: str) -> None:
    assert codes(tmp_path, value) == ["R215"]


@pytest.mark.parametrize(
    "value", ["${", "${}", "${DOMAIN", "${1}", "${#ARGS}", "${a.b}", "${ DOMAIN }", "${@}", "${!x}"]
)
def test_form_that_flux_fails_on_is_refused(tmp_path: Path, value: str) -> None:
    assert codes(tmp_path, value) == ["R215"]


FATAL = ["+x", "?x", "!", "@Q", "%", "%%", "#", "##", "/", ":0:", ":0:-1", " ", "-x", ".y", ":"]


@pytest.mark.parametrize("rest", FATAL)
def test_form_that_flux_fails_on_is_refused_for_a_declared_variable_too(tmp_path: Path, rest: str) -> None:
    assert codes(tmp_path, f"${{DOMAIN{rest}}}") == ["R215"]


@pytest.mark.parametrize("value", ["${DOMAIN:=${OTHER}}", "${OTHER:-${ANOTHER}}"])
def test_variable_in_a_default_must_be_declared(tmp_path: Path, value: str) -> None:
    assert codes(tmp_path, value) == ["R215"]


@pytest.mark.parametrize("value", ["${OTHER}", "${", "${1}", "${DOMAIN}"])
def test_tree_without_variables_takes_everything(tmp_path: Path, value: str) -> None:
    assert codes(tmp_path, value, PLATFORM) == []


@pytest.mark.parametrize("value", ["$${OTHER}", "a $${b} c"])
def test_escape_that_nothing_undoes_is_warned_of(tmp_path: Path, value: str) -> None:
    built = made(tmp_path, f"{WEB}values:\n  a: '{value}'\n", PLATFORM)

    assert [(fault.code, fault.severity) for fault in built.diagnostics] == [("R215", "warning")]
    assert f"a: '{value}'\n" in built.files["apps/web/helmrelease.yaml"]


def test_empty_list_declares_a_tree_with_variables(tmp_path: Path) -> None:
    assert codes(tmp_path / "a", "${DOMAIN}", EMPTY) == ["R215"]
    assert codes(tmp_path / "b", "$${DOMAIN}", EMPTY) == []


@pytest.mark.parametrize(
    "where",
    [
        "values: {a: {b: [x, '${OTHER}']}}\n",
        "values: {'${OTHER}': x}\n",
        "labels: {a: '${OTHER}'}\n",
        "annotations: {a: '${OTHER}'}\n",
        "release: {serviceAccountName: '${OTHER}'}\n",
        "valuesFrom: [{kind: Secret, name: '${OTHER}'}]\n",
        "postRenderers: [{kustomize: {patches: [{patch: 'a: ${OTHER}'}]}}]\n",
        "extraObjects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: '${OTHER}'}}]\n",
        "values:\n  script: |\n    first\n    echo ${OTHER}\n",
    ],
)
def test_variables_are_looked_for_in_all_that_is_rendered(tmp_path: Path, where: str) -> None:
    faults = made(tmp_path, WEB + where).diagnostics

    assert [fault.code for fault in faults] == ["R215"]
    assert "`OTHER`" in faults[0].message


@pytest.mark.parametrize(
    "where", ["description: costs ${MUCH}\n", "# ${OTHER}\n", "enabled: false\nvalues: {a: '${OTHER}'}\n"]
)
def test_what_is_not_rendered_may_hold_anything(tmp_path: Path, where: str) -> None:
    assert made(tmp_path, WEB + where).diagnostics == []


def test_each_variable_of_a_value_is_told_once_and_each_place_of_its_own(tmp_path: Path) -> None:
    text = WEB + "values:\n  a: ${ONE} ${TWO} ${ONE}\n  b: ${ONE}\n"

    assert [(fault.location.line, fault.message.split("`")[1]) for fault in made(tmp_path, text).diagnostics] == [
        (4, "ONE"),
        (4, "TWO"),
        (5, "ONE"),
    ]


def test_value_that_is_aliased_is_told_once(tmp_path: Path) -> None:
    text = WEB + "values:\n  a: &a {b: '${OTHER}'}\n  c: *a\n"

    assert len(made(tmp_path, text).diagnostics) == 1


@pytest.mark.parametrize("field", ["annotations", "labels"])
def test_object_that_opts_out_is_left_alone(tmp_path: Path, field: str) -> None:
    metadata = f"metadata: {{name: a, {field}: {{kustomize.toolkit.fluxcd.io/substitute: disabled}}}}"
    opted = f"{{apiVersion: v1, kind: ConfigMap, {metadata}, data: {{a: '${{OTHER}}'}}}}"
    other = opted.replace("disabled", "enabled").replace("name: a", "name: b")

    assert made(tmp_path / "one", f"{WEB}extraObjects: [{opted}]\n").diagnostics == []
    assert len(made(tmp_path / "two", f"{WEB}extraObjects: [{opted}, {other}]\n").diagnostics) == 1


def test_service_that_opts_out_is_left_alone(tmp_path: Path) -> None:
    opted = "annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}\nvalues: {a: '${OTHER}'}\n"

    assert made(tmp_path, WEB + opted).diagnostics == []


def test_variable_is_carried_as_it_is(tmp_path: Path) -> None:
    text = made(tmp_path, WEB + "values:\n  a: web.${DOMAIN}\n  b: ${_x1}\n").files["apps/web/helmrelease.yaml"]

    assert text.endswith("  values:\n    a: web.${DOMAIN}\n    b: ${_x1}\n")


def test_hint_offers_the_escape_of_the_very_text(tmp_path: Path) -> None:
    (fault,) = made(tmp_path, WEB + "values: {a: '${OTHER}'}\n").diagnostics

    assert "`$${OTHER}`" in fault.hint


def test_secret_value_is_not_quoted(tmp_path: Path) -> None:
    text = WEB + "values:\n  password: 'hunter2-${OTHER'\n"

    (fault,) = made(tmp_path, text).diagnostics

    assert "hunter2" not in fault.message + fault.snippet + fault.hint + fault.cause


FORMS = ["^", "^^", ",", ",,", ":1", ":1:2", ": -1", "#a", "##a", "%a", "%%.*", "/a/b", "//a/", "/#a/b", ":+x", ":?x"]


@pytest.mark.parametrize("rest", FORMS)
def test_form_that_flux_knows_needs_a_declared_variable(tmp_path: Path, rest: str) -> None:
    assert codes(tmp_path / "a", f"${{DOMAIN{rest}}}") == []
    assert codes(tmp_path / "b", f"${{OTHER{rest}}}") == ["R215"]


@pytest.mark.parametrize(
    "part",
    [
        "charts: {base: {url: 'oci://${OTHER}/web'}}\n",
        "imageAutomation: {branch: '${OTHER}'}\n",
        "registries: {credentials: [{registry: a.example, secretRef: {name: a}}, {registry: '${OTHER}'}]}\n",
    ],
)
def test_variables_of_the_platform_file_are_told_there(tmp_path: Path, part: str) -> None:
    platform = DECLARED.replace("registries:\n  imageOverrides: []\n", "") + part

    assert [(fault.code, fault.location.path) for fault in made(tmp_path, WEB, platform).diagnostics] == [
        ("R215", "platform.yaml")
    ]


def test_default_release_is_looked_into_and_what_is_not_rendered_is_not(tmp_path: Path) -> None:
    release = PLATFORM + "defaults: {substitute: [A], release: {serviceAccountName: '${OTHER}'}}\n"
    flux = DECLARED + "fluxImageOverrides: []\n# ${OTHER}\n"

    assert [fault.code for fault in made(tmp_path / "a", WEB, release).diagnostics] == ["R215"]
    assert made(tmp_path / "b", WEB, flux).diagnostics == []


def test_fault_of_a_form_names_it_and_offers_its_escape(tmp_path: Path) -> None:
    (fault,) = made(tmp_path, WEB + "values: {a: 'x ${DOMAIN} ${a.b} y'}\n").diagnostics

    assert fault.message == "`${a.b}` is no form that Flux can substitute"
    assert fault.hint == "write `$${a.b}` if it is meant as text"


UPDATE = (
    "{channel: custom, policy: {numerical: {order: asc}}, filterTags: {pattern: '^v(?P<n>[0-9]+)$', extract: '%s'}}"
)


@pytest.mark.parametrize("field", ["update: %s", "images: {side: {ref: 'a/b:v1', at: side, update: %s}}"])
def test_group_in_braces_is_refused_where_variables_are_filled(tmp_path: Path, field: str) -> None:
    image = WEB.replace("source: {", "source: {image: 'a/c:v1', ")
    text = f"{image}{field % UPDATE % '${n}'}\n"

    (fault,) = made(tmp_path / "declared", text).diagnostics

    assert (fault.code, fault.hint) == ("R215", "write `$n`")
    assert not made(tmp_path / "free", text, PLATFORM).failed
    assert not made(tmp_path / "bare", text.replace("${n}", "$n")).failed

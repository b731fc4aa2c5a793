from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from render.flux.commit_message import faults
from render.plan.cluster import MESSAGE
from tests.gotemplates import fragments

SOUND = (
    MESSAGE.format(cluster="home"),
    "Update from image update automation",
    "{{ .AutomationObject }} {{ .AutomationObject.Name }} {{ .AutomationObject.String }}",
    "{{ range .Changed.Changes }}{{ .OldValue }} {{ .NewValue }} {{ .Setter | upper }} {{ $.Values.team }}{{ end }}",
    "{{ range $object, $changes := .Changed.Objects }}{{ $object.Kind }}{{ $object.ResourceIdentifier.Name }}{{ end }}",
    "{{ range $k, $c := .Changed.Objects }}{{ $k.Kind }}{{ range $c }}{{ .Setter }}{{end}}{{end}}",
    "{{ with .Changed }}{{ len .Changes }}{{ end }}",
    "{{ $x := .Changed }}{{ $x = .AutomationObject }}{{ $x.Name }}",
    '{{ define "one" }}- {{ .Setter }}{{ end }}{{ range .Changed.Changes }}{{ template "one" . }}{{ end }}',
    "{{ index .Values `team` }}{{ .Values.team }}{{ (index .Changed.Changes 0).OldValue }}",
    '{{ printf "%s" .AutomationObject | trunc 10 }}',
    "{{ .Changed.FileChanges.a }}",
    "the words .Updated and {{ print `.Updated` }}{{/* .Updated */}}",
)


@pytest.mark.parametrize("text", SOUND)
def test_template_that_flux_runs_is_sound(text: str) -> None:
    assert faults(text) == []


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("{{ .Updated }}", ".Updated"),
        ("{{ range .Updated.Images }}- {{ . }}{{ end }}", ".Updated"),
        ("{{ with $x := . }}{{ $x.Updated.Files }}{{ end }}", ".Updated"),
        ("{{ if .Updated.Objects }}{{ end }}", ".Updated"),
        ("{{ range .Changed.Changes }}{{ $.Updated }}{{ end }}", ".Updated"),
        ('{{ define "x" }}{{ .Updated }}{{ end }}{{ template "x" . }}', ".Updated"),
        ("{{ len .Updated.Files | print }}", ".Updated"),
        ("{{ .Changed.ImageResult.Images }}", ".Changed.ImageResult"),
        ("{{ (.Changed).ImageResult }}", ".Changed.ImageResult"),
        ("{{ with .Changed }}{{ .ImageResult }}{{ end }}", ".Changed.ImageResult"),
    ],
)
def test_field_that_flux_has_removed_is_told(text: str, field: str) -> None:
    (fault,) = faults(text)

    assert fault.is_removed
    assert fault.message == f"uses `{field}`, which Flux has removed"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ .Change.Objects }}", "`.Change` is no field of the data of the template"),
        ("{{ .Changed.Changes.OldValue }}", "`.OldValue` is no field of a list"),
        ("{{ range .Changed.Changes }}{{ .Old }}{{ end }}", "`.Old` is no field of a change"),
        ("{{ range .Changed.Objects }}{{ range . }}{{ .Name }}{{ end }}{{ end }}", "`.Name` is no field of a change"),
        ("{{ range $o, $c := .Changed.Objects }}{{ $o.Image }}{{ end }}", "`.Image` is no field of an object"),
        ("{{ .AutomationObject.Kind }}", "`.Kind` is no field of `.AutomationObject`"),
        ("{{ .Values.team.name }}", "`.name` is no field of a text"),
        ("{{ range .Changed }}{{ end }}", "a range cannot go over `.Changed`"),
        ('{{ template "x" . }}', "there is no template `x`"),
        ("{{ now }}", "there is no function `now`"),
        ("{{ env `HOME` }}", "there is no function `env`"),
        ("{{ range .Changed.Changes }}", "an `{{end}}` is missing"),
    ],
)
def test_what_flux_would_stumble_over_is_told(text: str, message: str) -> None:
    assert [fault.message for fault in faults(text)] == [message]


def test_faults_are_told_by_line() -> None:
    assert [(fault.line, fault.is_removed) for fault in faults("{{ .A }}\n{{ .Updated }}\n{{ .B }}")] == [
        (1, False),
        (2, True),
        (3, False),
    ]


def test_template_that_calls_itself_is_followed_once() -> None:
    assert faults('{{ define "x" }}{{ template "x" . }}{{ .Updated }}{{ end }}{{ template "x" . }}')[0].is_removed


@given(st.lists(fragments(), max_size=8).map("".join))
def test_any_template_is_checked(text: str) -> None:
    for fault in faults(text):
        assert 1 <= fault.line <= text.count("\n") + 1
        assert fault.message
        assert fault.hint

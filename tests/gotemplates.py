"""Go templates: some that Go takes, some that it refuses, and pieces to make others from."""

from __future__ import annotations

from hypothesis import strategies as st

TAKEN = (
    "",
    "plain text, } } { {",
    "{{.}}",
    "{{ . }}",
    "{{- . -}}",
    "{{-\n.\n-}}",
    "a {{/* a comment */}} b",
    "a {{- /* a comment }} {{ */ -}} b",
    "{{ .A.B.C }}",
    "{{ .Größe }}",
    "{{ $ }}{{ $.A }}",
    "{{ $x := .A }}{{ $x.B }}{{ $x = 2 }}",
    "{{ $x = 1 }}",
    "{{ $1 := 1 }}{{ $1 }}",
    "{{ range .A }}{{ . }}{{ else }}none{{ end }}",
    "{{ range $i, $x := .A }}{{ $i }}{{ if $x }}{{ break }}{{ else }}{{ continue }}{{ end }}{{ end }}",
    "{{ range $x := .A }}{{ end }}",
    "{{ range $i, $x = .A }}{{ end }}",
    "{{ if .A }}a{{ else if .B }}b{{ else if .C }}c{{ else }}d{{ end }}",
    "{{ if not (eq .A 1) }}{{ end }}",
    "{{ with .A }}{{ .B }}{{ else with .C }}{{ .D }}{{ else }}{{ end }}",
    "{{ with $x := .A }}{{ $x }}{{ end }}",
    '{{ define "x" }}{{ . }}{{ end }}{{ template "x" . }}{{ template "x" }}',
    '{{ define "x" }}{{ end }}{{ define "x" }}a{{ end }}{{ define "x" }} {{ end }}',
    "{{ define `x` }}{{ $ }}{{ end }}",
    '{{ block "x" .A }}{{ .B }}{{ end }}',
    '{{ template "nowhere" }}',
    "{{ print 1 -1 +1 0x1F 0b11 0o17 017 1_000 1.5 .5 1e3 0x1p-2 1i 1+2i 'a' '\\n' '\\'' }}",
    '{{ print "a\\n\\"\\u00e9\\U0001F600\\x41\\101" `raw "text` true false nil }}',
    "{{ print `two\nlines` }}",
    "{{ (.A).B }}{{ (print 1 2) }}{{ (index .A 0).B }}",
    "{{ .A | print | printf `%s` }}",
    "{{ .A.B 1 (2) }}",
    "{{ . | }}",
    "{{ print\n  1\n  2 }}",
    "{{- 3 -}}{{-3}}",
    "{{ .A }}}}",
)

REFUSED = (
    "{{ print(1) }}",
    "{{",
    "{{ . ",
    "{{ . }",
    "{{}}",
    "{{ }}",
    "{{ /* a */ }}",
    "{{/* a",
    "{{/* a */ . }}",
    "{{ nofunction }}",
    "{{ .A.nofunction | nofunction }}",
    "{{ $x }}",
    "{{ if .A }}{{ $x := 1 }}{{ end }}{{ $x }}",
    "{{ end }}",
    "{{ else }}",
    "{{ if .A }}",
    "{{ if }}{{ end }}",
    "{{ if .A }}{{ else }}{{ else }}{{ end }}",
    "{{ range .A }}{{ else if .B }}{{ end }}",
    "{{ range .A }}",
    "{{ range }}{{ end }}",
    "{{ range $x, := .A }}{{ end }}",
    "{{ range $x, $y, $z := .A }}{{ end }}",
    "{{ break }}",
    "{{ if .A }}{{ continue }}{{ end }}",
    "{{ break 1 }}",
    "{{ $x, $y := .A }}",
    "{{ $x : .A }}",
    "{{ print 1 | 2 }}",
    "{{ print 1 | . }}",
    "{{ print | nil }}",
    "{{ | print }}",
    "{{ 1.A }}",
    '{{ "a".B }}',
    "{{ nil.A }}",
    "{{ (print 1 }}",
    "{{ print 1) }}",
    "{{ print () }}",
    "{{ 'ab' }}",
    "{{ '' }}",
    "{{ ''' }}",
    "{{ '\\\"' }}",
    '{{ "a }}',
    '{{ "a\n" }}',
    '{{ "\\q" }}',
    '{{ "\\\'" }}',
    '{{ "\\400" }}',
    '{{ "\\ud800" }}',
    '{{ "\\U00110000" }}',
    "{{ `a }}",
    "{{ 0x }}",
    "{{ 08 }}",
    "{{ 1_ }}",
    "{{ 1__0 }}",
    "{{ 0x1.8 }}",
    "{{ 1e }}",
    "{{ 1e999 }}",
    "{{ 99999999999999999999 }}",
    "{{ 1a }}",
    "{{ 1+2 }}",
    "{{ 1+2i3 }}",
    "{{ .A$ }}",
    "{{ .A-B }}",
    "{{ print-1 }}",
    "{{ a=b }}",
    "{{ .A = 1 }}",
    "{{ .A, .B }}",
    "{{ ! .A }}",
    "{{ .A \x00 }}",
    "{{ define }}{{ end }}",
    '{{ define "x" . }}{{ end }}',
    '{{ define "x" }}{{ else }}{{ end }}',
    '{{ define "x" }}',
    '{{ if .A }}{{ define "x" }}{{ end }}{{ end }}',
    '{{ define "x" }}a{{ end }}{{ define "x" }}b{{ end }}',
    '{{ $x := 1 }}{{ define "x" }}{{ $x }}{{ end }}',
    "{{ template }}",
    "{{ template x }}",
    '{{ template "x" . }',
    '{{ block "x" }}{{ end }}',
    "{{ end 1 }}",
    "{{ else if .A }}",
    "{{ if .A }}{{ else with .B }}{{ end }}",
    "{{ range .A }}{{ end }}{{ break }}",
    '{{ range .A }}{{ block "x" . }}{{ break }}{{ end }}{{ end }}',
)

_VALUES = ". $ .A $.B .A.B (.A) (.A.B) (.A).B print index true 1 -1 1.5 0x1 1_0 1i 1+2i 'a' \"a\" `r`"
_STARTS = "print index printf eq .A $ $.B (.A).B (print)"
"""Values that may stand anywhere in a pipeline."""
_ODD = "nil $x nofunction 08 '' \"\\q\" 1.A 1a .A$ | ( ) , = := ! ' `"
_KINDS = ("action",) * 8 + ("control",) * 6 + ("text",) * 3 + ("open", "close", "noise")
_NOISE = " .$()|:=,\"`'\\abAB01_exi+-/*}{"


@st.composite
def pipelines(draw: st.DrawFn) -> str:
    """The inside of an action, most often a sound one."""
    words = st.sampled_from(_VALUES.split())
    commands = [" ".join(draw(st.lists(words, min_size=1, max_size=3)))]
    later = st.tuples(st.sampled_from(_STARTS.split()), st.lists(words, max_size=2))
    commands += [" ".join([start, *more]) for start, more in draw(st.lists(later, max_size=2))]
    if draw(st.integers(0, 15)) == 7:
        commands.insert(draw(st.integers(0, len(commands))), draw(st.sampled_from(_ODD.split())))
    text = draw(st.sampled_from((" | ", "|"))).join(commands)
    return draw(st.sampled_from(("",) * 12 + ("$x := ", "$y = ", "$x, $y := "))) + text


@st.composite
def fragments(draw: st.DrawFn) -> str:
    """A piece of a template; pieces in a row make one that Go may take."""
    odd = draw(st.integers(0, 9)) == 5
    kind = draw(st.sampled_from(_KINDS))
    left = draw(st.sampled_from(("{{", "{{ ", "{{- ", "{{\n", "{{-") if odd else ("{{", "{{ ", "{{- ", "{{\n")))
    right = draw(st.sampled_from(("}}", " }}", " -}}", "-}}") if odd else ("}}", " }}", " -}}")))
    pipeline = draw(pipelines())
    match kind:
        case "action":
            return f"{left}{pipeline}{right}"
        case "control":
            word = draw(st.sampled_from(("if", "range", "with")))
            middle = draw(
                st.sampled_from(("", "a", "{{else}}", "{{ . }}", "{{ else if .A }}", "{{break}}", "{{ $x }}"))
            )
            return f"{left}{word} {pipeline}{right}{middle}{{{{end}}}}"
        case "open":
            words = ('define "x"', 'block "x" .', 'template "x"', "if .A", "range .A", "/* c */", "else", "break")
            return f"{left}{draw(st.sampled_from(words))}{right}"
        case "close":
            return draw(st.sampled_from(("{{end}}", "{{ end }}", "{{else}}", "{{- end -}}", "{{end .}}")))
        case "text":
            return draw(st.sampled_from(("a", " ", "\n", "}}", "{", "é")))
    return "{{" + draw(st.text(_NOISE, max_size=8)) + "}}"

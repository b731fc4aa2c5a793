{{- /* repository:tag, as most charts put it together */ -}}
{{- define "split" -}}
{{ .repository }}:{{ .tag }}
{{- end -}}
{{- /* the registry always, even where the repository holds one already */ -}}
{{- define "registry" -}}
{{ .registry }}/{{ .repository }}:{{ .tag }}
{{- end -}}
{{- define "digest" -}}
{{ .repository }}:{{ .tag }}{{ with .digest }}@{{ . }}{{ end }}
{{- end -}}

{{- define "metadata" }}
metadata:
  name: {{ .name }}
  namespace: {{ .namespace }}
  labels:
    {{- toYaml .service.labels | nindent 4 }}
{{- end }}

{{- define "kustomization" }}
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}

{{- define "source" }}
{{- $chart := .service.source.chart }}
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
{{- include "metadata" (dict "name" .service.name "namespace" .service.namespace "service" .service) }}
spec:
  interval: {{ .platform.defaults.interval }}
  url: {{ .url }}/{{ $chart.name }}
  layerSelector:
    mediaType: application/vnd.cncf.helm.chart.content.v1.tar+gzip
    operation: copy
  ref:
    tag: {{ $chart.version | quote }}
{{- end }}

{{- define "release" }}
{{- $chart := .service.source.chart }}
{{- $values := deepCopy .service.values }}
{{- range .images }}
{{- $ref := splitList ":" .ref }}
{{- $node := dict "repository" (index $ref 0) "tag" (index $ref 1) }}
{{- range reverse (splitList "." .at) }}
{{- $node = dict . $node }}
{{- end }}
{{- $values = mergeOverwrite $values $node }}
{{- end }}
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
{{- include "metadata" (dict "name" .service.name "namespace" .service.namespace "service" .service) }}
spec:
  interval: {{ .platform.defaults.interval }}
  {{- if .oci }}
  chartRef:
    kind: OCIRepository
    name: {{ .service.name }}
  {{- else }}
  chart:
    spec:
      chart: {{ $chart.name }}
      version: {{ $chart.version | quote }}
      sourceRef:
        kind: HelmRepository
        name: {{ $chart.repository }}
        namespace: flux-system
  {{- end }}
  {{- if .service.dependsOn }}
  dependsOn:
    {{- $namespaces := .namespaces }}
    {{- range .service.dependsOn }}
    - name: {{ . }}
      namespace: {{ index $namespaces . }}
    {{- end }}
  {{- end }}
  upgrade:
    strategy:
      name: RemediateOnFailure
    remediation:
      retries: 3
      remediateLastFailure: true
      strategy: rollback
  rollback:
    cleanupOnFail: true
  values:
    {{- toYaml $values | nindent 4 }}
{{- end }}

{{- define "automation" }}
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageRepository
{{- include "metadata" (dict "name" .name "namespace" "flux-system" "service" .service) }}
spec:
  image: {{ index (splitList ":" .image.ref) 0 }}
  interval: {{ get (dict "@daily" "24h" "0 */6 * * *" "6h") .image.update.cadence | default .image.update.cadence }}
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImagePolicy
{{- include "metadata" (dict "name" .name "namespace" "flux-system" "service" .service) }}
spec:
  imageRepositoryRef:
    name: {{ .name }}
  filterTags:
    pattern: '^[0-9]+\.[0-9]+\.[0-9]+$'
  policy:
    semver:
      range: {{ .image.update.range | quote }}
{{- end }}

{{- define "fluxkustomization" }}
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: {{ .name }}
  namespace: flux-system
spec:
  interval: {{ .platform.defaults.interval }}
  timeout: 10m
  {{- with .needs }}
  dependsOn:
    - name: {{ . }}
  {{- end }}
  sourceRef:
    kind: GitRepository
    name: flux-system
  path: ./{{ .platform.root }}/{{ .path }}
  prune: true
  wait: true
{{- end }}

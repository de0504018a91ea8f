{{- /* The name of everything: there is one controller of this kind in a cluster, so the release's name is enough. */}}
{{- define "bindery.name" -}}
{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "bindery.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "bindery.name" .) }}
{{- end }}

{{- /* What a selector needs. It must never change, so versions do not belong here. */}}
{{- define "bindery.selector" -}}
app.kubernetes.io/name: bindery
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "bindery.labels" -}}
{{ include "bindery.selector" . }}
app.kubernetes.io/component: persistentvolume-controller
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- /* The controllers that run, or * for all of them. */}}
{{- define "bindery.controllers" -}}
{{- $on := list }}
{{- $all := true }}
{{- range $name, $enabled := .Values.controllers }}
{{- if $enabled }}{{ $on = append $on $name }}{{ else }}{{ $all = false }}{{ end }}
{{- end }}
{{- if $all }}*{{ else }}{{ join "," $on }}{{ end }}
{{- end }}

{{- define "bindery.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- /* The name of the controller's objects. The release's name is enough: there is one controller in a cluster. */}}
{{- define "bindery.name" -}}
{{ .Release.Name | trunc 53 | trimSuffix "-" }}
{{- end }}

{{- define "bindery.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "bindery.name" .) }}
{{- end }}

{{- define "bindery.schedulerAccount" -}}
{{ .Values.scheduler.serviceAccountName | default (printf "%s-scheduler" (include "bindery.name" .)) }}
{{- end }}

{{- /* The installed components as JSON: controller and scheduler share templates. This lists the differences. */}}
{{- define "bindery.parts" -}}
{{- $name := include "bindery.name" . }}
{{- $parts := list }}
{{- if .Values.controller.enabled }}
{{- $parts = append $parts (dict "name" $name "app" "bindery" "component" "persistentvolume-controller"
      "command" "controller" "account" (include "bindery.serviceAccount" .) "lease" .Values.leaderElection.leaseName
      "replicas" .Values.replicas "port" .Values.listen.port "resources" .Values.resources
      "kubeApiQps" .Values.controller.kubeApiQps "verbosity" .Values.controller.verbosity
      "extraArgs" .Values.controller.extraArgs
      "volumes" .Values.extraVolumes "volumeMounts" .Values.extraVolumeMounts) }}
{{- end }}
{{- if .Values.scheduler.enabled }}
{{- $parts = append $parts (dict "name" (printf "%s-scheduler" $name) "app" "bindery-scheduler" "component" "scheduler"
      "command" "scheduler" "account" (include "bindery.schedulerAccount" .) "lease" .Values.scheduler.leaseName
      "replicas" .Values.scheduler.replicas "port" .Values.scheduler.port "resources" .Values.scheduler.resources
      "kubeApiQps" .Values.scheduler.kubeApiQps "verbosity" .Values.scheduler.verbosity
      "extraArgs" .Values.scheduler.extraArgs) }}
{{- end }}
{{- toJson $parts }}
{{- end }}

{{- /* The selector labels of a component. They must never change, so they contain no version. */}}
{{- define "bindery.selector" -}}
app.kubernetes.io/name: {{ .part.app }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{- define "bindery.labels" -}}
{{ include "bindery.selector" . }}
app.kubernetes.io/component: {{ .part.component }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
{{- end }}

{{- /* The labels of the controller's objects. */}}
{{- define "bindery.controllerLabels" -}}
{{ include "bindery.labels" (dict "root" . "part" (dict "app" "bindery" "component" "persistentvolume-controller")) }}
{{- end }}

{{- /* The labels of the scheduler's objects. */}}
{{- define "bindery.schedulerLabels" -}}
{{ include "bindery.labels" (dict "root" . "part" (dict "app" "bindery-scheduler" "component" "scheduler")) }}
{{- end }}

{{- /* The enabled controllers, or * for all. */}}
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

{{- /* The name of a provisioner's objects. */}}
{{- define "bindery.partName" -}}
{{ printf "%s-%s" (include "bindery.name" .root | trunc 48 | trimSuffix "-") .part.name }}
{{- end }}

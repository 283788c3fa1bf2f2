{{/* The labels that this chart adds to those of deploy/k8s. */}}
{{- define "holdfast.chart" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "holdfast.labels" -}}
app.kubernetes.io/part-of: holdfast
{{ include "holdfast.chart" . }}
{{- end }}

{{- define "holdfast.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* What the image of Holdfast has in a container: image, and when it is pulled. */}}
{{- define "holdfast.imageFields" -}}
image: {{ include "holdfast.image" . }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- end }}

{{/* MiB of a quantity in Mi or Gi, which is all that the schema lets through. */}}
{{- define "holdfast.mebi" -}}
{{- if hasSuffix "Gi" . -}}{{ mul (trimSuffix "Gi" . | int) 1024 }}{{- else -}}{{ trimSuffix "Mi" . | int }}{{- end -}}
{{- end }}

{{/* GOMEMLIMIT of resources: nine tenths of the limit. The rest is for what Go does not count. */}}
{{- define "holdfast.gomemlimit" -}}
{{ div (mul (include "holdfast.mebi" .limits.memory | int) 9) 10 }}MiB
{{- end }}

{{/* MiB that a node's store may take. */}}
{{- define "holdfast.store" -}}
{{ div (mul (include "holdfast.mebi" .Values.broker.storage.size | int) 4) 5 }}
{{- end }}

{{/* A size in MiB as the shortest number with its unit: {n, giga, mega}. */}}
{{- define "holdfast.size" -}}
{{- if mod .n 1024 -}}{{ .n }}{{ .mega }}{{- else -}}{{ div .n 1024 }}{{ .giga }}{{- end -}}
{{- end }}

{{- define "holdfast.url" -}}
{{ ternary "tls" "nats" .Values.tls.enabled }}://
{{- end }}

{{/* The security of a pod of user and group id. */}}
{{- define "holdfast.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ . }}
  runAsGroup: {{ . }}
  fsGroup: {{ . }}
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "holdfast.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: ["ALL"]
{{- end }}

{{/* What all pods have: {root, placement}. */}}
{{- define "holdfast.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false # its variables would begin with HOLDFAST_, as our flags' do
{{- with .root.Values.priorityClass.name }}
priorityClassName: {{ . }}
{{- end }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .placement.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .placement.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Pods with these labels are spread over machines, and over zones where there are some: {labels, nodes}. */}}
{{- define "holdfast.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: {{ .nodes }}
    labelSelector:
      matchLabels:
        {{- toYaml .labels | nindent 8 }}
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- toYaml .labels | nindent 8 }}
{{- end }}

{{/* What a value cannot say by its type: refused before anything is made. */}}
{{- define "holdfast.check" -}}
{{- if and .Values.broker.enabled .Values.broker.existing }}
{{- fail "broker.existing names a broker of your own: set broker.enabled to false" }}
{{- end }}
{{- if not (or .Values.broker.enabled .Values.broker.existing) }}
{{- fail "there is no broker: set broker.existing to host:port of yours, or broker.enabled to true" }}
{{- end }}
{{- if and .Values.broker.enabled (not .Values.tls.enabled) }}
{{- fail "tls.enabled is false: the broker of this chart takes no connection without TLS" }}
{{- end }}
{{- if and .Values.tls.certManager.enabled (not .Values.broker.enabled) }}
{{- fail "tls.certManager renews the certificates of the broker of this chart, and broker.enabled is false" }}
{{- end }}
{{- if and .Values.board.enabled (not .Values.broker.enabled) }}
{{- fail "board.enabled needs the broker of this chart: beside another broker run `holdfast board` as its guide says" }}
{{- end }}
{{- if and .Values.monitoring.exporter.enabled (not .Values.broker.enabled) }}
{{- fail "monitoring.exporter reads the figures of the broker of this chart, and broker.enabled is false" }}
{{- end }}
{{- if and .Values.ingress.enabled (not .Values.board.enabled) }}
{{- fail "ingress.enabled leads to the board, and board.enabled is false" }}
{{- end }}
{{- if and .Values.priorityClass.create (not .Values.priorityClass.name) }}
{{- fail "priorityClass.create is true, and priorityClass.name is empty" }}
{{- end }}
{{- end }}

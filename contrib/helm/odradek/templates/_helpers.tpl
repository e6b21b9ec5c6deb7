{{- define "odradek.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- /* What selects the pods of a part; takes (dict "root" $ "part" "host"), as all that follow. */ -}}
{{- define "odradek.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "odradek.labels" -}}
{{ include "odradek.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "odradek.metadata" -}}
name: {{ include "odradek.fullname" .root }}-{{ .part }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "odradek.labels" . | nindent 2 }}
{{- end -}}

{{- define "odradek.advertised" -}}
{{- .values.advertisedHost | default (printf "%s.%s.svc.%s" .name .root.Release.Namespace .root.Values.clusterDomain) -}}
{{- end -}}

{{- /* Metadata of the pods: a changed configuration replaces them. */ -}}
{{- define "odradek.podMetadata" -}}
labels:
  {{- include "odradek.labels" . | nindent 2 }}
annotations:
  {{- if hasKey .values "config" }}
  checksum/config: {{ .values.config | sha256sum }}
  {{- end }}
  {{- with .values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- /* The beginning of the specification of the pods. */ -}}
{{- define "odradek.podSpec" -}}
serviceAccountName: {{ include "odradek.fullname" .root }}
automountServiceAccountToken: false
terminationGracePeriodSeconds: {{ .values.terminationGracePeriodSeconds }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ .root.Values.runAsUser }}
  runAsGroup: {{ .root.Values.runAsUser }}
  fsGroup: {{ .root.Values.runAsUser }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- range $key := list "imagePullSecrets" "nodeSelector" "tolerations" "affinity" }}
{{- with get $.root.Values $key }}
{{ $key }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* What the containers of all parts have in common. */ -}}
{{- define "odradek.container" -}}
image: "{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}"
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
resources:
  {{- toYaml .values.resources | nindent 2 }}
{{- end -}}

{{- /* Variables of the environment: those of the chart are used in arguments as $(POD_NAME). */ -}}
{{- define "odradek.env" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- with .values.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* Probes of metrics.listener. The event loop has 5 s to answer. */ -}}
{{- define "odradek.probes" -}}
{{- include "odradek.health" . }}
lifecycle:
  preStop:
    exec: {command: [sleep, "5"]}  # until no load balancer sends clients here
{{- end -}}

{{- /* The same for a part that has no clients. */ -}}
{{- define "odradek.health" -}}
startupProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 2
  timeoutSeconds: 10
  failureThreshold: 300
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
  timeoutSeconds: 10
  failureThreshold: 2
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 10
  failureThreshold: 6
{{- end -}}

{{- define "odradek.mounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if hasKey .values "config" }}
- {name: config, mountPath: /etc/odradek/config, readOnly: true}
{{- end }}
{{- range .values.secrets }}
- {name: {{ printf "secret-%s" . }}, mountPath: {{ printf "/etc/odradek/secrets/%s" . }}, readOnly: true}
{{- end }}
{{- end -}}

{{- define "odradek.volumes" -}}
- name: tmp
  emptyDir: {}
{{- if hasKey .values "config" }}
- name: config
  configMap:
    name: {{ include "odradek.fullname" .root }}-{{ .part }}
{{- end }}
{{- range .values.secrets }}
- name: {{ printf "secret-%s" . }}
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- end -}}

{{- /* Arguments of the commands that read a configuration. */ -}}
{{- define "odradek.arguments" -}}
- --config=/etc/odradek/config/odradek.toml
- --set=metrics.listener=http://0.0.0.0:9464
- --log-level={{ .root.Values.logLevel }}
- --log-format=json
{{- range .values.plugins }}
- --plugin={{ . }}
{{- end }}
{{- end -}}

{{- define "odradek.configMap" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  {{- include "odradek.metadata" . | nindent 2 }}
data:
  odradek.toml: |
    {{- .values.config | nindent 4 }}
{{- end -}}

{{- define "odradek.disruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "odradek.metadata" . | nindent 2 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "odradek.selector" . | nindent 6 }}
{{- end -}}

{{- /* Ports of plugins that listen: of the container, and of a Service. */ -}}
{{- define "odradek.extraContainerPorts" -}}
{{- range .values.extraPorts }}
- {name: {{ .name }}, containerPort: {{ .port }}}
{{- end }}
{{- end -}}

{{- define "odradek.extraServicePorts" -}}
{{- range .values.extraPorts }}
- {name: {{ .name }}, port: {{ .port }}, targetPort: {{ .name }}}
{{- end }}
{{- end -}}

{{- /* The volume of each replica. */ -}}
{{- define "odradek.volumeClaim" -}}
- metadata:
    name: data
  spec:
    accessModes: [ReadWriteOnce]
    {{- with .values.storageClassName }}
    storageClassName: {{ . }}
    {{- end }}
    resources:
      requests: {storage: {{ .values.storage }}}
{{- end -}}

{{- /* The node ids of gateway.nodes in ascending order, as the gateway gives them ports, each with a comma. */ -}}
{{- define "odradek.nodes" -}}
{{- $ranges := dict }}
{{- range splitList "," .values.nodes }}
{{- $ends := splitList "-" . }}
{{- $_ := set $ranges (first $ends | int | printf "%010d") (list (first $ends | int) (last $ends | add1 | int)) }}
{{- end }}
{{- range keys $ranges | sortAlpha }}
{{- $range := get $ranges . }}
{{- range untilStep (first $range) (last $range) 1 }}{{ . }},{{ end }}
{{- end }}
{{- end -}}

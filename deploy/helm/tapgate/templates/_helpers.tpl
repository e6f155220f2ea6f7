{{- define "tapgate.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{- define "tapgate.labels" -}}
app.kubernetes.io/name: tapgate
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* Labels that select the pods of a component: (dict "root" $ "component" "gateway") */}}
{{- define "tapgate.selector" -}}
app.kubernetes.io/name: tapgate
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "tapgate.image" -}}
{{- $repository := required "image.repository is required: the registry and name of your image" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "tapgate.environment" -}}
{{- $_ := required "settings.TAPGATE_PUBLIC_URL is required, such as https://pay.example.com" .Values.settings.TAPGATE_PUBLIC_URL -}}
- {name: TAPGATE_ENVIRONMENT, value: production}
- {name: TAPGATE_HOST, value: "0.0.0.0"}
- {name: TAPGATE_DATA_DIR, value: /var/lib/tapgate}
- {name: TAPGATE_DRAIN_SECONDS, value: {{ .Values.drainSeconds | quote }}}
- {name: TAPGATE_WORKERS, value: {{ .Values.gateway.workers | quote }}}
- {name: TAPGATE_REPORT_WORKERS, value: {{ .Values.gateway.reportWorkers | quote }}}
- {name: TAPGATE_MESSENGER_WORKERS, value: {{ .Values.messenger.workers | quote }}}
- {name: TAPGATE_GATEWAY_URL, value: "http://{{ include "tapgate.name" . }}-gateway:8000"}
- {name: TAPGATE_MESSENGER_URL, value: "http://{{ include "tapgate.name" . }}-messenger:8001"}
{{- range $name, $value := .Values.settings }}
{{- if $value }}
- {name: {{ $name }}, value: {{ $value | toString | quote }}}
{{- end }}
{{- end }}
{{- end }}

{{- define "tapgate.secret" -}}
- secretRef:
    name: {{ required "secretName is required: an existing Secret with the settings that are secret" .Values.secretName }}
{{- end }}

{{- define "tapgate.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "tapgate.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "tapgate.volumeMounts" -}}
- {name: data, mountPath: /var/lib/tapgate}
- {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "tapgate.volumes" -}}
- name: data
  emptyDir: {sizeLimit: 128Mi}
- name: tmp
  emptyDir: {sizeLimit: 64Mi}
{{- end }}

{{/* Probes of a service. A restart does not help while the database is down, so only /ready depends
on it. The startup probe leaves time for a migration that waits for locks. */}}
{{- define "tapgate.probes" -}}
startupProbe:
  httpGet: {path: /live, port: http}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /live, port: http}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /ready, port: http}
  periodSeconds: 2
  timeoutSeconds: 3
  failureThreshold: 2
{{- end }}

{{/* Pod that runs one command to its end: (dict "root" $ "command" (list "migrate") "resources" ...).
It uses no service account: the chart's does not exist yet when the first migration runs. */}}
{{- define "tapgate.commandPod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
restartPolicy: Never
securityContext:
  {{- include "tapgate.podSecurity" .root | nindent 2 }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
  - name: {{ first .command }}
    image: {{ include "tapgate.image" .root }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    args: {{ toJson .command }}
    env:
      {{- include "tapgate.environment" .root | nindent 6 }}
    envFrom:
      {{- include "tapgate.secret" .root | nindent 6 }}
    resources:
      {{- toYaml .resources | nindent 6 }}
    securityContext:
      {{- include "tapgate.containerSecurity" .root | nindent 6 }}
    volumeMounts:
      {{- include "tapgate.volumeMounts" .root | nindent 6 }}
      {{- if .claimName }}
      - name: backups
        mountPath: /backups
      {{- end }}
volumes:
  {{- include "tapgate.volumes" .root | nindent 2 }}
  {{- if .claimName }}
  - name: backups
    persistentVolumeClaim:
      claimName: {{ .claimName }}
  {{- end }}
{{- end }}

{{/* The configuration of the broker, as deploy/k8s/nats/nats.conf. */}}
{{- define "holdfast.nats.conf" -}}
server_name: $SERVER_NAME
port: 4222
http: "127.0.0.1:8222" # for the probes, within the pod
pid_file: /var/run/nats/nats.pid
max_payload: 1MB
{{- if gt (int .Values.broker.replicas) 1 }}
max_closed_clients: 1024 # the reconciler reads this list three times a second
lame_duck_grace_period: 5s
lame_duck_duration: 30s
{{- end }}

# A client needs a certificate of the clients' authority, and the password of its user.
tls {
  cert_file: /etc/nats-tls/tls.crt
  key_file: /etc/nats-tls/tls.key
  ca_file: /etc/nats-tls/ca.crt
  verify: true
  timeout: 5
}

jetstream {
  store_dir: /data
  max_memory_store: 256MB
  max_file_store: {{ include "holdfast.size" (dict "n" (include "holdfast.store" . | int) "giga" "GB" "mega" "MB") }} # four fifths of the volume
  sync_interval: always # acknowledged is on the disk
  request_queue_limit: 1024 # requests that wait, of all users: each holds up to 576 KiB of memory
  info_queue_limit: 1024
}
{{- if gt (int .Values.broker.replicas) 1 }}

# A node needs a certificate of the routes' authority, and the routes' password.
cluster {
  name: holdfast
  port: 6222
  no_advertise: true
  ping_interval: 2s # a silent node's subscriptions are dropped after 4 to 6 s: until then they take requests
  ping_max: 2
  tls {
    cert_file: /etc/nats-routes-tls/tls.crt
    key_file: /etc/nats-routes-tls/tls.key
    ca_file: /etc/nats-routes-tls/ca.crt # nats-server always verifies the certificates of nodes
    timeout: 5
  }
  # A node that receives a traced message from another node reports it to any subject that its author names (ADR 233),
  # but to none of these, at which the report would be stored in place of what others wrote.
  permissions {
    import {
      deny: [
        "{{ .Values.config.prefix }}.log.*.*.harness"
        "{{ .Values.config.prefix }}.log.*.*.ledger"
        "{{ .Values.config.prefix }}.log.*.*.retry"
        "{{ .Values.config.prefix }}.log.*.*.compaction"
        "{{ .Values.config.prefix }}.log.*.*.reconciler"
        "$KV.{{ .Values.config.prefix }}_state.*.>"
        "$KV.{{ .Values.config.prefix }}_leases.*.>"
        "$O.{{ .Values.config.prefix }}_objects.C.harness.*.*"
        "$O.{{ .Values.config.prefix }}_objects.M.harness.*.*"
        "$O.{{ .Values.config.prefix }}_objects.C.person.*.*"
        "$O.{{ .Values.config.prefix }}_objects.M.person.*.*"
        "$O.{{ .Values.config.prefix }}_objects.C.service.*.*"
        "$O.{{ .Values.config.prefix }}_objects.M.service.*.*"
        "{{ .Values.config.prefix }}.timer.*.>"
        "{{ .Values.config.prefix }}.due.*.>"
        "{{ .Values.config.prefix }}.feed.*.>"
        "{{ .Values.config.prefix }}.parked.*.>"
      ]
    }
  }
  include ../nats-users/routes.conf
}
{{- end }}

include ./permissions.conf
{{ end }}

{{/* What the board adds, as deploy/k8s/board/board.conf. */}}
{{- define "holdfast.board.conf" -}}
include ./nats.conf

websocket {
  port: 8443
  tls {
    cert_file: /etc/nats-tls/tls.crt
    key_file: /etc/nats-tls/tls.key
  }
  allowed_origins: [{{ .Values.board.origin | quote }}]
  user_cookie: "__Host-holdfast-user"
  pass_cookie: "__Host-holdfast-password"
}
{{ end }}

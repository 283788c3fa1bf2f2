# Runs in a pod of the broker. A node whose disk is full can lose acknowledged commits (ADR 89), so a node serves only
# while its volume has a reserve: without it the node does not start, and its liveness probe ends it.
#
#   sh node.sh start   waits for the reserve, then runs nats-server
#   sh node.sh live    is the liveness probe

reserve_kib=1048576 # 1 GiB: what is written between two probes and while the node leaves fits into it

free_kib() { df -Pk /data | awk 'NR == 2 { print $4 }'; }
room() { [ "$(free_kib)" -ge "$reserve_kib" ]; }

case $1 in
start)
	trap 'exit 0' TERM INT
	until room; do
		echo "the disk of /data is nearly full: $(free_kib) KiB free, $reserve_kib needed; waiting for room"
		sleep 5 &
		wait $!
	done
	exec nats-server --config "${NATS_CONFIG:-/etc/nats/nats.conf}"
	;;
live)
	if ! room; then
		echo "the disk of /data is nearly full: $(free_kib) KiB free, $reserve_kib needed"
		exit 1
	fi
	exec wget -q -O - "http://127.0.0.1:8222/healthz?js-enabled-only=true"
	;;
*)
	echo "usage: node.sh start|live" >&2
	exit 2
	;;
esac

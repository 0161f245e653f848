# shellcheck shell=bash
# Run by transports.sh and gpu.sh in namespaces of its own: $sifr trains by ds.json on the hosts of
# hostfile: on_hosts.sh HOSTS OPTION…
# shellcheck disable=SC2154 # tree and sifr are exported
export IN_NAMESPACES=yes
fail() { echo "$1" >&2; exit 1; }
hosts=$1
shift
# shellcheck source-path=SCRIPTDIR/../.. source=tests/support/namespaces.sh
. "$tree/tests/support/namespaces.sh"
hosts "$hosts"
on h1 timeout 120 "$sifr" train --config ds.json --threads 1 --hostfile hostfile --output out "$@"

# Sourced by tests of several hosts, after ranks.sh: network namespaces h1, h2 … on one bridge, each
# with an address and a host name of its own. All of it lies in a namespace of the test's own, and
# goes with it. Needs root.
if [ "$(id -u)" != 0 ] || ! command -v ip >/dev/null || ! unshare --net --mount true 2>/dev/null; then
    echo "skipped: several hosts: needs root, iproute2 and network namespaces"
    exit 77
fi
if [ ! "${IN_NAMESPACES:-}" ]; then
    IN_NAMESPACES=yes exec unshare --net --mount --pid --fork --mount-proc --kill-child \
        bash -eu "$0"
fi
mount -t tmpfs tmpfs /run
# Open MPI names a run's files by host and process, and another such test has the same of both.
mkdir tmp
export TMPDIR=$PWD/tmp
mount -t tmpfs tmpfs /dev/shm
mkdir -p /run/netns
ip link set lo up
ip link add bridge type bridge
ip link set bridge up

# Also resolves names: `ip netns exec` puts files of /etc/netns over those of /etc.
hosts() { # COUNT
    local i
    cp /etc/hosts hosts.all
    for i in $(seq "$1"); do echo "10.77.0.$i h$i" >>hosts.all; done
    mount --bind hosts.all /etc/hosts
    for i in $(seq "$1"); do
        ip netns add "h$i"
        ip link add "v$i" type veth peer name eth0 netns "h$i"
        ip link set "v$i" master bridge up
        ip -n "h$i" link set lo up
        ip -n "h$i" addr add "10.77.0.$i/24" dev eth0
        ip -n "h$i" link set eth0 up
    done
}

# In place of ssh: AGENT [-x] HOST WORD…
cat >agent <<'END'
#!/bin/sh
while case $1 in -*) true ;; *) false ;; esac do shift; done
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host && $*"
END
chmod +x agent
# Debian's MPICH knows a host by its kernel, of which there is but one here.
export UCX_TLS=tcp,self
export OMPI_MCA_plm_rsh_agent=$PWD/agent HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC=$PWD/agent

on() { # HOST COMMAND…: there
    local host=$1
    shift
    ip netns exec "$host" unshare --uts sh -c 'hostname "$0" && exec "$@"' "$host" "$@"
}

# Bytes that a host has received over its network since it was made.
received() { on "$1" cat /sys/class/net/eth0/statistics/rx_bytes; }

# Sourced: Debian in a folder, for what must be built or tried where nothing else is installed. Needs
# root and the package debootstrap. MIRROR is another source.
debian_mirror=${MIRROR:-http://deb.debian.org/debian}

# What is lacking for it; "" if nothing is.
debian_root_lacks() {
    [ "$(id -u)" = 0 ] || { echo "needs root, for chroot" && return; }
    command -v debootstrap >/dev/null || { echo "needs the package debootstrap" && return; }
    unshare --mount --pid --net --fork true 2>/dev/null || echo "needs namespaces"
}

debian_root() { # SUITE FOLDER [PACKAGE,PACKAGE…]: a new one; its log is FOLDER.log
    rm -rf --one-file-system "$2"
    mkdir -p "$2"
    chmod 755 "$2"
    debootstrap --variant=minbase ${3:+--include="$3"} "$1" "$2" "$debian_mirror" \
        >"$2.log" 2>&1 || return 1
    # As an installer leaves it: without, each look at "localhost" asks a name server.
    echo "127.0.0.1 localhost" >"$2/etc/hosts"
    # Where this machine goes through a proxy, so does that one.
    apt-config dump | grep -i '^Acquire::.*proxy' >"$2/etc/apt/apt.conf.d/90proxy" || :
    # No service starts there.
    printf '#!/bin/sh\nexit 101\n' >"$2/usr/sbin/policy-rc.d"
    chmod +x "$2/usr/sbin/policy-rc.d"
}

# What is mounted is in a namespace of its own, which ends with the command. $in_root_options may be
# --net: without a network. $in_root_cache: a folder of this machine for the compiler's cache, where
# the package ccache is there.
in_root() { # FOLDER COMMAND…
    # shellcheck disable=SC2016,SC2086
    unshare --mount --propagation private --pid --fork --kill-child ${in_root_options:-} sh -euc '
        cache=$1 root=$2
        shift 2
        mount --bind "$root" "$root"
        mount -t proc proc "$root/proc"
        mount -t sysfs -o ro sysfs "$root/sys" 2>/dev/null || :
        mount --bind /dev "$root/dev"
        mount --bind /dev/pts "$root/dev/pts"
        mount -t tmpfs tmpfs "$root/dev/shm"
        if [ "$cache" ]; then
            mkdir -p "$root/ccache"
            mount --bind "$cache" "$root/ccache"
            set -- CCACHE_DIR=/ccache CMAKE_C_COMPILER_LAUNCHER=ccache "$@"
        fi
        exec chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"' in_root "${in_root_cache:-}" "$@"
}

root_installs() { # FOLDER PACKAGE…: Debian's packages, or .deb files
    folder=$1
    shift
    in_root "$folder" apt-get update -qq
    in_root "$folder" apt-get install -y -qq --no-install-recommends "$@"
}

# Sourced: Debian in a folder, for what must be built or tried where nothing else is installed. Needs
# root and the package debootstrap. MIRROR is another source.
debian_mirror=${MIRROR:-http://deb.debian.org/debian}

# What is lacking for it; "" if nothing is.
debian_root_lacks() {
    [ "$(id -u)" = 0 ] || { echo "needs root, for chroot" && return; }
    command -v debootstrap >/dev/null || { echo "needs the package debootstrap" && return; }
    unshare --mount --pid --net --fork true 2>/dev/null || echo "needs namespaces"
}

# $debian_roots may be a folder where new ones are kept, packed: they are as new as the mirror's list of
# that Debian. The list is signed, and dated: it changes with the Debian.
debian_root() { # SUITE FOLDER: a new one; its log is FOLDER.log
    rm -rf --one-file-system "$2" "$2.updated"
    mkdir -p "$2"
    chmod 755 "$2"
    local kept=${debian_roots:+$debian_roots/$1}
    if [ "$kept" ]; then
        mkdir -p "$debian_roots"
        wget -q -O "$kept.list.new" "$debian_mirror/dists/$1/InRelease" || rm -f "$kept.list.new"
        if [ -e "$kept.tar" ] && cmp -s "$kept.list" "$kept.list.new"; then
            rm "$kept.list.new"
            tar -C "$2" -xf "$kept.tar"
            return
        fi
    fi
    new_debian "$1" "$2" || return 1
    if [ -e "${kept:-/none}.list.new" ]; then
        tar -C "$2" -cf "$kept.tar.new" . && mv "$kept.tar.new" "$kept.tar" &&
            mv "$kept.list.new" "$kept.list"
    fi
}

new_debian() { # SUITE FOLDER
    # No one needs what is left of it after a power cut.
    DPKG_FORCE=unsafe-io debootstrap --variant=minbase "$1" "$2" "$debian_mirror" \
        >"$2.log" 2>&1 || return 1
    echo force-unsafe-io >"$2/etc/dpkg/dpkg.cfg.d/unsafe-io"
    # As an installer leaves it: without, each look at "localhost" asks a name server.
    echo "127.0.0.1 localhost" >"$2/etc/hosts"
    # Where this machine goes through a proxy, so does that one.
    apt-config dump | grep -i '^Acquire::.*proxy' >"$2/etc/apt/apt.conf.d/90proxy" || :
    echo 'Acquire::Languages "none";' >"$2/etc/apt/apt.conf.d/90languages"
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

# Of its lists of packages it asks once: sources are named before the first call.
root_installs() { # FOLDER PACKAGE…: Debian's packages, or .deb files as they are called there
    local folder=$1
    shift
    [ -e "$folder.updated" ] || in_root "$folder" apt-get update -qq || return 1
    touch "$folder.updated"
    in_root "$folder" apt-get install -y -qq --no-install-recommends "$@"
}

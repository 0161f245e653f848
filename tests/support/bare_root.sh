# Sourced by tests of the pack for a machine with a GPU (scripts/gpu-pack.sh), in a folder of their
# own: a root in which there is nothing but a shell, its commands and glibc, where the pack, the
# loopback of the network and a host's name are unknown. Needs root.
if [ "$(id -u)" != 0 ] || ! unshare --mount --pid --net --uts --fork true 2>/dev/null; then
    echo "skipped: needs root and namespaces"
    exit 77
fi

# What every machine has: the commands with their libraries, which are those of this one.
bare_root() { # PACK: ./root, with the pack in /gpu
    local name path library of_glibc
    mkdir -p root/bin root/tmp root/proc root/dev
    tar -C root -xf "$1"
    for name in bash awk basename cat cmp cp cut date dirname env grep head id mkdir mktemp mv \
        paste readlink realpath rm sed seq sha256sum sleep sort stat tail tar tee timeout tr uname \
        wc; do
        path=$(realpath "$(command -v $name)")
        cp "$path" "root/bin/$name"
        ldd "$path" | grep -o '/[^ ]*' | while read -r library; do
            mkdir -p "root$(dirname "$library")"
            cp -L "$library" "root$library"
        done
    done
    ln -s bash root/bin/sh
    of_glibc=$(dirname "$(ldd "$SIFR" | grep -o '/[^ ]*/libc\.so\.6')")
    for name in libm.so.6 libpthread.so.0 libdl.so.2 librt.so.1 libresolv.so.2; do
        cp -L "$of_glibc/$name" "root$of_glibc"
    done
}

inside() { # COMMAND…: there, within ${INSIDE_SECONDS:-120}; its output in ./out
    unshare --mount --pid --net --uts --fork bash -eu -c '
        hostname unknown-host
        mount -t proc proc root/proc
        mount --bind /dev root/dev
        exec timeout "$1" chroot root /bin/env -i PATH=/bin HOME=/tmp "${@:2}"' inside \
        "${INSIDE_SECONDS:-120}" "$@" >out 2>&1
}

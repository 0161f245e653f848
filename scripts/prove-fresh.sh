#!/bin/sh
# Proves that the tree needs nothing but what its README names: prove-fresh.sh [TARGET]…
# A new Debian 12 with git, make and apt is put into a temporary folder (debootstrap), the last
# commit is cloned into it, and `make TARGET` runs there for each target (default: demo, test).
# Needs root and the package debootstrap. MIRROR and SUITE choose another source; KEEP=1 keeps the
# folder, and FOLDER=DIR uses a kept one again.
set -eu
mirror=${MIRROR:-http://deb.debian.org/debian}
suite=${SUITE:-bookworm}
tree=$(cd "$(dirname "$0")/.." && pwd)
[ $# -gt 0 ] || set -- demo test

[ "$(id -u)" = 0 ] || { echo "prove-fresh.sh: needs root, for chroot" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "prove-fresh.sh: install debootstrap first" >&2; exit 2; }

# A mount namespace of its own: what is mounted below is nobody else's, and ends with the script.
[ -n "${PROVE_FRESH_INNER:-}" ] ||
    PROVE_FRESH_INNER=1 exec unshare --mount --propagation private "$0" "$@"

folder=${FOLDER:-$(mktemp -d "${TMPDIR:-/tmp}/sifr-fresh.XXXXXX")}
clean() {
    for mounted in dev/pts dev/shm dev sys proc; do
        umount "$folder/$mounted" 2>/dev/null || :
    done
    if [ -z "${KEEP:-}${FOLDER:-}" ]; then
        rm -rf --one-file-system "$folder"
    else
        echo "kept: $folder"
    fi
}
trap clean EXIT
trap 'exit 130' INT TERM

if [ ! -x "$folder/usr/bin/git" ]; then
    mkdir -p "$folder"
    chmod 755 "$folder"
    echo "making a Debian $suite in $folder"
    debootstrap --variant=minbase --include=git,make "$suite" "$folder" "$mirror" \
        >"$folder.log" 2>&1 || { tail -n 20 "$folder.log" >&2; exit 1; }
    rm -f "$folder.log"
    # As an installer leaves it: without, each look at "localhost" asks a name server.
    echo "127.0.0.1 localhost" >"$folder/etc/hosts"
    # Where this machine goes through a proxy, so does that one.
    apt-config dump | grep -i '^Acquire::.*proxy' >"$folder/etc/apt/apt.conf.d/90proxy" || :
fi
mount -t proc proc "$folder/proc"
mount -t sysfs -o ro sysfs "$folder/sys"
mount --bind /dev "$folder/dev"
mount --bind /dev/pts "$folder/dev/pts" # terminals, which tests make
mount -t tmpfs tmpfs "$folder/dev/shm"
rm -rf "$folder/root/sifr"
git clone -q --no-hardlinks "$tree" "$folder/root/sifr"

code=0
for target in "$@"; do
    echo "== make $target"
    begin=$(date +%s)
    chroot "$folder" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb \
        sh -c "cd /root/sifr && exec make $target" || code=$?
    echo "== make $target: exit code $code after $(($(date +%s) - begin)) s"
    [ "$code" = 0 ] || break
done
exit "$code"

#!/bin/bash
# Makes packages for every Linux on x86-64 with glibc 2.31 or newer, of the files that
# scripts/release.sh made: make-portable.sh DIST OUT KIND…
#   tarball  one file: program, library, headers, and the libraries beside glibc
# All are of one build, in a new Debian 11: with CMake, Ninja and oneDNN 2.6 from PyPI (Debian's
# mirror did not have the source of its oneDNN 2.6.3; the bits are compared), and with liburing,
# jansson, PCRE2 and utf8proc from Debian 12's sources. What is beside glibc is packed with them, with
# its licences. scripts/portable/ is what runs inside. Needs root, debootstrap and a network. Exit
# code 77: the mirror has no Debian 11.
# KEEP=1 keeps the folder of the root; CACHE=DIR has the compiler's results kept there (ccache);
# debian_roots=DIR has new roots kept there (scripts/debian-root.sh).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/debian-root.sh"
fail() { echo "make-portable.sh: $*" >&2; exit 1; }
[ $# -ge 3 ] || fail "give DIST, OUT and at least one of: tarball"
for kind in "${@:3}"; do
    case $kind in
    tarball) ;;
    *) fail "$kind is no kind of package; there is: tarball" ;;
    esac
done
dist=$(cd "$1" && pwd) out=$2
shift 2
in_root_cache=${CACHE:-}
lacks=$(debian_root_lacks)
[ -z "$lacks" ] || fail "$lacks"
source=$(find "$dist" -name 'sifr-*.tar.gz')
version=${source##*/sifr-} && version=${version%.tar.gz}
[ -f "$source" ] || fail "there is no sifr-VERSION.tar.gz in $dist"
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/sifr-portable.XXXXXX")
root=$work/root
if [ -z "${KEEP:-}" ]; then trap 'rm -rf --one-file-system "$work"' EXIT; else echo "kept: $work"; fi
trap 'exit 130' INT TERM
quietly() { "$@" >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; fail "$* fails"; }; }
size() { stat -c %s "$1" | awk '{ printf "%.1f MiB", $1 / 1048576 }'; }

if ! debian_root bullseye "$root"; then
    tail -n 3 "$root.log"
    echo "no Debian 11 from $debian_mirror: no package for glibc 2.31"
    exit 77
fi
echo "deb-src $debian_mirror bookworm main" >"$root/etc/apt/sources.list.d/sources.list"
quietly root_installs "$root" gcc g++ libc6-dev make pkg-config patchelf dpkg-dev \
    libxxhash-dev zlib1g-dev libzstd-dev libhwloc-dev libyaml-dev liblz4-dev \
    unzip ${in_root_cache:+ccache}

# Wheels, of which nothing needs Python. oneDNN's are built against glibc 2.17.
cat >"$work/onednn.pin" <<'P'
onednn-cpu-gomp==2022.2.1 --hash=sha256:091357f4d66ebd6a391d4327e0bee2401597b30753f087222bb3559c1b4e625e
onednn-devel-cpu-gomp==2022.2.1 --hash=sha256:b263bcaf903c7910ae0aae35d495f5a87408090e32787be70b46fbc2734a159c
P
quietly python3 -m venv "$work/venv"
pip() { "$work/venv/bin/pip" "$@" --disable-pip-version-check --no-deps --only-binary :all: --platform manylinux2014_x86_64; }
quietly pip install --target "$work/tools" 'cmake==3.31.*' ninja
quietly pip download --dest "$root/root/wheels" --require-hashes -r "$work/onednn.pin" --platform manylinux1_x86_64
mkdir -p "$root/opt/cmake"
cp -r "$work"/tools/cmake/data/* "$root/opt/cmake/"
find "$work/tools" -type f -name ninja -exec cp {} "$root/opt/cmake/bin/" \;
cp "$source" "$dist"/carquet-*.tar.gz "$root/root/" || fail "there is no carquet-VERSION.tar.gz in $dist"
cp -r "$here/portable" "$root/root/"
in_root "$root" bash /root/portable/inside.sh "$version" "${JOBS:-$(nproc)}" "$@" ||
    { tail -n 40 "$root/root/log" >&2; fail "the build in Debian 11 fails"; }

pack_tarball() {
    local file=sifr-$version-linux-x86_64.tar.gz
    cp "$root/root/$file" "$out/"
    echo "$out/$file: $(size "$out/$file")"
}

for kind in "$@"; do "pack_$kind"; done

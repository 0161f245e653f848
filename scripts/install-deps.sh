#!/bin/sh
# Installs what is missing of Debian's packages, with one apt call: install-deps.sh [SET]…
#   build  what compiling the program needs (the default)
#   demo   the text that the demo trains on
#   ranks  an MPI, which sifr opens where it trains on more than one rank
#   test   what the suite needs besides: the test library, the second compiler, its sanitizers
#   bench  what measuring needs besides; the peers themselves come from PyPI
#   other-mpi  both MPIs, to test with the one that is not the system's own
#   deb    what makes Debian packages, and looks at them
#   root   what makes a Debian in a folder
#   abi    what reads and compares binary interfaces
#   cuda   nvcc: where the system has none, NVIDIA's wheels from PyPI, into build/cuda-toolkit
#   parquet  carquet's source distribution from PyPI, by its hash, into build/carquet
#   sass   where there is nvcc, but not what shows the code it makes: NVIDIA's nvdisasm from PyPI, by
#          its hash, into build/nvdisasm
# Says nothing, and takes no time to speak of, when all is there.
set -eu
toolkit=${SIFR_CUDA_TOOLKIT:-$(dirname "$0")/../build/cuda-toolkit}

build="gcc libc6-dev make cmake ninja-build pkg-config libdnnl-dev libjansson-dev libpcre2-dev
    libutf8proc-dev libxxhash-dev zlib1g-dev libzstd-dev libhwloc-dev liburing-dev libyaml-dev"
demo="bible-kjv bible-kjv-text"
ranks="openmpi-bin"
bench="python3 python3-venv python3-dev g++ fio libaio-dev libopenmpi-dev openmpi-bin"
other_mpi="libmpich-dev mpich libopenmpi-dev openmpi-bin"
test="libcmocka-dev g++ clang libclang-rt-14-dev lld shellcheck python3-yaml iproute2
    patchelf zstd libopenmpi-dev openmpi-bin"
deb="dpkg-dev debhelper lintian pkgconf liblz4-dev"
root_needs="debootstrap python3 python3-venv"
abi="abigail-tools"
cuda="g++"
cuda_wheels="nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt nvidia-cuda-runtime nvidia-cuda-cccl"
cuda_release=13.0
parquet="liblz4-dev"
carquet=${SIFR_CARQUET:-$(dirname "$0")/../build/carquet}
carquet_file=carquet-0.7.2.tar.gz
carquet_pin="carquet==0.7.2 --hash=sha256:5d57c00217906e672fe8b569d8a24c6cbd6d1ab7736d56057e9b884f1a043e7d"
nvdisasm=${SIFR_NVDISASM:-$(dirname "$0")/../build/nvdisasm}
nvdisasm_pin="nvidia-cuda-nvdisasm==13.2.51
    --hash=sha256:5a7acf77c55d6d2911ed6155d4d5bc156ffadf9df7a68a89b0c1155f4b13688c
    --hash=sha256:483c8f652c1ca006135584b4faf7ea1d2bafe4c40ec1c9ef57a04c6acfbdd57f" # x86-64, Arm

find_cuda() { # PROGRAM of a toolkit
    command -v "$1" >/dev/null || [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/$1" ] ||
        [ -x "$toolkit/nvidia/cu${cuda_release%.*}/bin/$1" ]
}

# Debian's own pip lives in environments alone. Nothing is half there if this is cut off.
fetch_toolkit() {
    echo "fetching: nvcc $cuda_release from PyPI (some 100 MB) into $toolkit"
    rm -rf "$toolkit.part" "$toolkit.pip"
    mkdir -p "$(dirname "$toolkit")"
    set -- # becomes the list of wheels, each of this release
    for wheel in $cuda_wheels; do set -- "$@" "$wheel==$cuda_release.*"; done
    if ! python3 -m venv "$toolkit.pip" || ! "$toolkit.pip/bin/pip" install --quiet --no-deps \
        --disable-pip-version-check --target "$toolkit.part" "$@"; then
        rm -rf "$toolkit.part" "$toolkit.pip"
        echo "install-deps.sh: the wheels of nvcc could not be fetched; install a CUDA toolkit of" \
            "release 12.0 or newer, so that nvcc is in PATH" >&2
        exit 1
    fi
    rm -rf "$toolkit" "$toolkit.pip"
    mv "$toolkit.part" "$toolkit"
}

# pip checks the hash; it prepares the build as well, of which nothing is kept.
fetch_carquet() {
    echo "fetching: $carquet_file from PyPI (0.4 MB) into $carquet"
    rm -rf "$carquet.part" "$carquet.pip"
    mkdir -p "$carquet.part"
    echo "$carquet_pin" >"$carquet.part/pin"
    if ! python3 -m venv "$carquet.pip" || ! "$carquet.pip/bin/pip" download --quiet --no-deps \
        --disable-pip-version-check --no-binary carquet --require-hashes -r "$carquet.part/pin" \
        --dest "$carquet.part"; then
        rm -rf "$carquet.part" "$carquet.pip"
        echo "install-deps.sh: carquet's source could not be fetched: the build is one without" \
            "Parquet; put $carquet_file into $carquet for one with it" >&2
        exit 1
    fi
    mkdir -p "$carquet"
    mv "$carquet.part/$carquet_file" "$carquet/"
    rm -rf "$carquet.part" "$carquet.pip"
}

fetch_nvdisasm() {
    echo "fetching: nvdisasm from PyPI (4.4 MB) into $nvdisasm"
    rm -rf "$nvdisasm.part" "$nvdisasm.pip" "$nvdisasm.pin"
    mkdir -p "$(dirname "$nvdisasm")"
    # shellcheck disable=SC2086 # as one line
    echo $nvdisasm_pin >"$nvdisasm.pin"
    if ! python3 -m venv "$nvdisasm.pip" || ! "$nvdisasm.pip/bin/pip" install --quiet --no-deps \
        --disable-pip-version-check --require-hashes -r "$nvdisasm.pin" \
        --target "$nvdisasm.part"; then
        rm -rf "$nvdisasm.part" "$nvdisasm.pip" "$nvdisasm.pin"
        echo "install-deps.sh: NVIDIA's nvdisasm could not be fetched: tests read the PTX of the" \
            "kernels for GPUs, not the machine code" >&2
        exit 1
    fi
    rm -rf "$nvdisasm" "$nvdisasm.pip" "$nvdisasm.pin"
    mv "$nvdisasm.part" "$nvdisasm"
}

fetch_all() {
    for what in $fetch; do "fetch_$what"; done
}

wanted=
fetch=
[ $# -gt 0 ] || set -- build
for set in "$@"; do
    case $set in
    build) wanted="$wanted $build" ;;
    demo) wanted="$wanted $demo" ;;
    ranks) wanted="$wanted $ranks" ;;
    test) wanted="$wanted $test" ;;
    bench) wanted="$wanted $bench" ;;
    other-mpi) wanted="$wanted $other_mpi" ;;
    deb) wanted="$wanted $deb" ;;
    root) wanted="$wanted $root_needs" ;;
    abi) wanted="$wanted $abi" ;;
    cuda)
        wanted="$wanted $cuda"
        if ! find_cuda nvcc; then
            fetch="$fetch toolkit"
            wanted="$wanted python3 python3-venv"
        fi
        ;;
    parquet)
        wanted="$wanted $parquet"
        if [ ! -f "$carquet/$carquet_file" ]; then
            fetch="$fetch carquet"
            wanted="$wanted python3 python3-venv"
        fi
        ;;
    sass)
        if find_cuda nvcc && ! find_cuda nvdisasm &&
            [ ! -x "$nvdisasm/nvidia/cu13/bin/nvdisasm" ]; then
            fetch="$fetch nvdisasm"
            wanted="$wanted python3 python3-venv"
        fi
        ;;
    *)
        echo "install-deps.sh: no such set: $set; there are build, demo, ranks, test, bench," \
            "other-mpi, deb, root, abi, cuda, parquet and sass" >&2
        exit 2
        ;;
    esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "install-deps.sh: this is no Debian: nothing installed; needed are the equivalents of:" \
        $wanted >&2
    fetch_all
    exit 0
fi

# shellcheck disable=SC2086 # a list of words
present=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' $wanted 2>/dev/null || :)
missing=
for package in $wanted; do
    case "
$present
" in
    *"
$package installed
"*) ;;
    *) missing="$missing $package" ;;
    esac
done
if [ -z "$missing" ]; then
    fetch_all
    exit 0
fi

root=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "install-deps.sh: missing:$missing; there is no sudo here, so as root run:" \
            "apt-get install --no-install-recommends$missing" >&2
        exit 1
    fi
    root=sudo
fi

echo "installing:$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Lists that cannot all be fetched may still do; the installation tells.
$root apt-get update -qq >"$log" 2>&1 || :
# shellcheck disable=SC2086
if ! $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    $missing >>"$log" 2>&1; then
    cat "$log" >&2
    echo "install-deps.sh: apt-get failed, see above" >&2
    exit 1
fi
fetch_all

#!/bin/bash
# Packs a build for a machine with a GPU and nothing else: no compiler, no network, no libraries but
# glibc, as new as this machine's.
#     gpu-pack.sh [--level N] [--most MIB] [--together MIB] [--only "PROGRAM…"] BUILD OUT.tar.zst
#     gpu-pack.sh --targets: names what has to be built
# There: scripts/gpu-rent.sh, or tar xf gpu.tar.zst && gpu/gpu-check (docs/gpu.md). --level: zstd's
# (19). Fails above --most (32), and where pack and tree take more than --together (64), which is
# what travels to a rented machine. --only: the program sifr, and of the others these alone.
set -eu -o pipefail
most=32 together=64 level=19 only=
# What is packed follows from the scripts that run there: programs of tests/ that they name, and
# golden data that those name.
programs() {
    local name
    grep -ohE '\b((test|gpu)_[a-z0-9_]+|sifr_on_fake_gpu)\b' "${scripts[@]}" | sort -u |
        while read -r name; do
            ! ls tests/*/"${name#sifr_}.c" >/dev/null 2>&1 || echo "$name"
        done
}
# GOLDEN…: those of which a program, or what it is linked with, has a word with their name.
golden() {
    local path name
    { cat tests/support/golden_adapters.c && for name in $tests; do cat tests/*/"${name#sifr_}.c"; done; } |
        grep -oE '[A-Za-z0-9_-]+' | sort -u >"$work/words"
    for path; do
        name=$(basename "${path%.*}")
        ! grep -qxF -- "$name" "$work/words" || echo "$path"
    done
}
usage() {
    echo "usage: gpu-pack.sh [--level N] [--most MIB] [--together MIB] [--only \"PROGRAM…\"] BUILD" \
        "OUT.tar.zst" >&2
    exit 2
}
targets=
while [ $# -gt 0 ]; do
    case $1 in
    --targets) targets=1 ;;
    --level) level=${2:?} && shift ;;
    --most) most=${2:?} && shift ;;
    --together) together=${2:?} && shift ;;
    --only) only=${2:?} && shift ;;
    -*) usage ;;
    *) break ;;
    esac
    shift
done
[ "$targets" ] || { [ $# = 2 ] && [ -x "$1/sifr" ]; } || usage
[ "$targets" ] || build=$(realpath "$1") out=$(realpath "$2")
cd "$(dirname "$0")/.."
# But this one, which does not run there.
mapfile -t scripts < <(printf '%s\n' scripts/gpu-*.sh | grep -v /gpu-pack)
tests=${only:-$(programs)}
[ -z "$targets" ] || { echo sifr "$tests" | tr -s " \n" " " && exit; }
if ! command -v patchelf >/dev/null; then
    echo "gpu-pack.sh: there is no patchelf; scripts/install-deps.sh test installs it" >&2
    exit 1
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/sifr-pack.XXXXXX")
trap 'rm -rf "$work"' EXIT
tree=$work/gpu
mkdir -p "$tree/build/tests" "$tree/lib" "$tree/bin"

strip -o "$tree/build/sifr" "$build/sifr"
for test in $tests; do strip -o "$tree/build/tests/$test" "$build/tests/$test"; done
data=tests/golden
# shellcheck disable=SC2046 # lists of words
cp -r --parents "${scripts[@]}" examples/h100.json bench/results/gpu.md bench/peers/train_gpu_torch.py \
    tests/support/*.sh $(grep -ohE '\btest_[a-z0-9_]+\b' "${scripts[@]}" | sort -u |
        while read -r name; do ls tests/*/"$name.sh" 2>/dev/null || :; done) \
    $data/models.json $data/{families,encoders}/*.json $data/lora \
    $(golden $data/{,families/,encoders/}{models,results}/*) "$tree"

# MPICH's launcher finds its proxy beside itself, and the program MPICH's library beside that
# launcher; Open MPI's needs a whole tree, and stays here.
mpich=$(SIFR_MPI=mpich "$build/sifr" doctor --json |
    sed -n '/"opened": "MPICH"/,/"library_path"/s/^ *"library_path": "\(.*\)",$/\1/p')
if [ "$mpich" ] && command -v mpiexec.hydra hydra_pmi_proxy >/dev/null; then
    cp -L "$(command -v mpiexec.hydra)" "$tree/bin/mpirun.mpich"
    cp -L "$(command -v hydra_pmi_proxy)" "$tree/bin"
    cp -L "$mpich" "$tree/lib/$(basename "$mpich")"
else
    echo "gpu-pack.sh: no MPICH here, so the pack trains on one rank; scripts/install-deps.sh" \
        "other-mpi installs it" >&2
fi

# All libraries but those of glibc, which belong to the loader of the machine.
glibc='^(ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv|mvec|anl|nsl|nss_.*|thread_db))\.so'
{ ldd "$tree/build/sifr" "$tree"/build/tests/* "$tree"/bin/* ${mpich:+"$mpich"} 2>/dev/null || :; } |
    sed -n 's/^[[:space:]]*\([^ ]*\) => \(\/[^ ]*\) .*/\1 \2/p' | sort -u >"$work/libraries"
while read -r name path; do
    [[ $name =~ $glibc ]] || cp -L "$path" "$tree/lib/$name"
done <"$work/libraries"

# Programs say where their libraries are, and not LD_LIBRARY_PATH, which would reach what they start:
# python3, NVIDIA's tools. The old DT_RPATH serves libraries of libraries, too, but not below one
# that has a path of its own.
find_in() { # PATH FILE…
    local path=$1
    shift
    for file; do
        [ ! -f "$file" ] || patchelf --force-rpath --set-rpath "\$ORIGIN/$path" "$file"
    done
}
find_in ../lib "$tree/build/sifr" "$tree"/bin/*
find_in ../../lib "$tree"/build/tests/*
for library in "$tree"/lib/*; do
    [ -z "$(patchelf --print-rpath "$library")" ] || find_in . "$library"
done

git describe --always --dirty --exclude '*' >"$tree/commit" 2>/dev/null || rm "$tree/commit"

cat >"$tree/gpu-check" <<'END'
#!/bin/bash
# Checks this machine's first GPU, with the options of scripts/gpu-check.sh:
#     gpu-check [OUT] [OPTION…]
# OUT: a folder for the results (results, beside this file).
here=$(realpath "$(dirname "$0")") out=
case ${1:--} in -*) ;; *) out=$1 && shift ;; esac
PATH=$here/bin:$PATH exec bash "$here/scripts/gpu-check.sh" "$@" "$here/build" "${out:-$here/results}"
END
chmod +x "$tree/gpu-check"

tar -C "$work" --sort=name --owner=0 --group=0 -cf - gpu |
    zstd -q -f -T0 "-$level" --long=27 -o "$out"

# What goes to a rented machine: the pack, and all of the tree that git does not ignore.
mib() { awk -v b="$1" 'BEGIN { printf "%.1f", b / 1048576 }'; }
size=$(stat -c %s "$out")
travels=$({ git ls-files -z --cached --others --exclude-standard 2>/dev/null |
    xargs -0r stat -c %s 2>/dev/null || :; } | awk '{ s += $1 } END { printf "%.0f", s }')
both=$((size + travels))
if [ "$travels" != 0 ]; then
    echo "$out: $(mib "$size") MiB; the tree: $(mib "$travels") MiB; together: $(mib $both) MiB"
else
    echo "$out: $(mib "$size") MiB; the tree: not known, since git has none here"
fi
if [ "$size" -gt $((most << 20)) ]; then
    echo "gpu-pack.sh: the pack takes more than $most MiB; build it for fewer GPUs" >&2
    exit 1
fi
if [ $both -gt $((together << 20)) ]; then
    echo "gpu-pack.sh: pack and tree take more than $together MiB together" >&2
    exit 1
fi

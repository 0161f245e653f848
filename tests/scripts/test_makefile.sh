# in check
# Every target of the Makefile on a fresh machine, alone and in pairs, with any -j: what installs,
# configures, builds and tests follows each other. All of it is played: each notes its begin and its
# end, and takes a moment.
fail() { echo "make -j4 $what:"; cat calls; echo "$1" >&2; exit 1; }
unset MAKEFLAGS MFLAGS MAKELEVEL BUILD PRESET PREFIX JOBS CUDA PARQUET TESTS WERROR GPU_TARGETS
cp "$SOURCE/Makefile" .
mkdir bin scripts bench
cat >played <<'P'
#!/bin/sh
name=${0##*/}
[ "$name $*" != "ninja --version" ] || exec echo 1.11
echo "begin $name $*" >>"$CALLS"
sleep 0.01
case "$name $*" in
"cmake --preset"*)
    while [ "$1" != -B ]; do shift; done
    mkdir -p "$2"
    echo >"$2/build.ninja"
    printf '#!/bin/sh\necho "\\"opened\\": \\"Open MPI\\""\n' >"$2/sifr"
    chmod +x "$2/sifr"
    ;;
*"--output-junit"*) echo >build/results.xml ;;
esac
echo "end $name $*" >>"$CALLS"
P
chmod +x played
for tool in cmake ninja ctest; do cp played bin/$tool; done
for script in $(grep -oE 'scripts/[a-z-]*\.(sh|py)' Makefile | sort -u) bench/run; do cp played "$script"; done
export PATH=$PWD/bin:$PATH CALLS=$PWD/calls

# What needs nothing but git, make and apt: installs first, configures, builds, and one at a time.
made() { # TARGET…
    what=$*
    rm -rf build*
    : >calls
    make -j4 "$@" >out 2>&1 || { code=$?; cat out; fail "exit code $code"; }
    awk '/^begin/ { if (open) exit 1; open = 1 } /^end/ { open = 0 }' calls || fail "two at a time"
    awk '/^begin install-deps/ { there = 1 }
        /^begin cmake --preset/ { if (!there) exit 1; made = 1 }
        /^begin ninja/ { if (!made) exit 1 }
        /^begin (ctest|cmake --install|bench|run|demo)/ { if (!built) exit 1 }
        /^end ninja/ { built = 1 }' calls || fail "not in order"
    case $what in
    deps | configure | gpu-there | dist | deb | tarball | wheel) ;;
    *) grep -q '^end ninja' calls || fail "nothing is built" ;;
    esac
}
targets=$(sed -n '/^\.PHONY:/,/[^\\]$/p' Makefile | sed 's/^\.PHONY://; s/\\$//')
count=0
for target in $targets; do
    made "$target"
    count=$((count + 1))
done
[ "$count" -ge 15 ] || fail "only $count targets are known: $targets"
made all tests
made tests all
made check test other-mpi
made demo test speed
made docs install soak
made build/build.ninja all
made test gpu-check
grep -q 'begin cmake.*SIFR_CUDA=ON' calls || fail "no kernels for the GPU"

# Without a driver a GPU's targets say so, and build nothing.
cp "$SOURCE/scripts/gpu-there.sh" scripts/
printf '#!/bin/sh\necho "$DRIVER"\n' >bin/ldconfig
chmod +x bin/ldconfig
sed -i 's,/sbin/ldconfig,ldconfig,' scripts/gpu-there.sh
DRIVER='libcuda.so.1 (libc6)' made gpu-check
if [ ! -e /usr/lib/wsl/lib/libcuda.so.1 ]; then
    : >calls
    if env -u LD_LIBRARY_PATH make gpu-check >out 2>&1; then fail "no word of a driver"; fi
    grep -q '^no GPU: .*libcuda' out && [ ! -s calls ] || fail "$(cat out)"
fi
echo "$count targets, and 7 sets of them"

# `sifr doctor`: its figures against what the system says.
# each MPI
fail() { echo "$1" >&2; exit 1; }

"$SIFR" doctor >text
grep -q '^processor ' text && grep -q '^libraries .*oneDNN [0-9]' text || fail "$(cat text)"
grep -qE '^(Nothing is missing\.|What to do:)$' text || fail "no verdict: $(cat text)"

"$SIFR" doctor --json >json
# value KEY: what stands behind "KEY": on its line
value() { sed -n "s/^ *\"$1\": \"\?\([^\",]*\)\"\?,\?$/\1/p" json; }
[ "$(value cpus)" = "$(nproc)" ] || fail "cpus: $(value cpus), nproc says $(nproc)"
[ "$(value memory_bytes)" = "$(awk '/^MemTotal/ { printf "%.0f", $2 * 1024 }' /proc/meminfo)" ] ||
    fail "memory_bytes: $(value memory_bytes)"
for set in avx2 avx512f avx512_bf16; do
    want=false
    grep -qw "$set" /proc/cpuinfo && want=true
    [ "$(value $set)" = $want ] || fail "$set: $(value $set), /proc/cpuinfo says $want"
done
version='DNNL_VERSION_MAJOR.DNNL_VERSION_MINOR.DNNL_VERSION_PATCH'
want=$(printf '#include <dnnl_version.h>\n%s\n' $version | cc -E -P - | tail -n 1 | tr -d ' ')
[ "$(value oneDNN)" = "$want" ] || fail "oneDNN: $(value oneDNN), its header says $want"
[ "$(value pcre2)" = "$(pkg-config --modversion libpcre2-8)" ] || fail "pcre2: $(value pcre2)"
[ "$(value jansson)" = "$(pkg-config --modversion jansson)" ] || fail "jansson: $(value jansson)"

# A launcher is found in PATH, and asked for its version.
mkdir bin
printf '#!/bin/sh\necho "mpirun (Open MPI) 9.9.9"\n' >bin/mpirun
chmod +x bin/mpirun
PATH=$PWD/bin:$PATH "$SIFR" doctor --json >json
[ "$(value launcher)" = "$PWD/bin/mpirun" ] || fail "launcher: $(value launcher)"
[ "$(value version)" = 'mpirun (Open MPI) 9.9.9' ] || fail "version: $(value version)"

# What ranks need: the MPI that is opened, its launcher, and ssh for other hosts.
opened=$(value opened) path=$(value library_path)
case $opened in
"Open MPI") [[ $path == /*/libmpi.so.40* ]] && grep -q '"library": "Open MPI v[0-9]' json ;;
MPICH) [[ $path == /*/libmpi*.so.12* ]] && grep -q '"library": "MPICH Version: *[0-9]' json ;;
*) [ "$opened $path" = "null null" ] ;;
esac || fail "opened: $opened, of $path"
SIFR_MPI=/nowhere/libmpi.so.40 "$SIFR" doctor >text
grep -q '^- --ranks: SIFR_MPI: /nowhere/libmpi.so.40: cannot open' text || fail "no advice: $(cat text)"
printf '#!/bin/sh\n' >bin/ssh
chmod +x bin/ssh
PATH=$PWD/bin:$PATH "$SIFR" doctor --json >json
[ "$(value ssh)" = "$PWD/bin/ssh" ] || fail "ssh: $(value ssh)"
[ "$opened" = null ] || {
    PATH=/nowhere "$SIFR" doctor >text
    grep -q '^- --ranks: there is neither mpirun nor mpiexec' text || fail "no advice: $(cat text)"
}

# What sends to MLflow's server: as the library itself says, or why there is none.
want=$(python3 -c 'import ctypes
lib = ctypes.CDLL("libcurl.so.4")
lib.curl_version.restype = ctypes.c_char_p
print(" ".join(lib.curl_version().decode().split()[:2]))' 2>/dev/null || echo null)
"$SIFR" doctor --json >json
[ "$(value libcurl)" = "$want" ] || fail "libcurl: $(value libcurl), the library says $want"
mkdir none
for name in libcurl.so.4 libcurl-gnutls.so.4 libcurl.so; do echo >none/$name; done
LD_LIBRARY_PATH=$PWD/none "$SIFR" doctor >text
grep -q '^MLflow  *none; needed only for sifr.mlflow: libcurl cannot be opened (.*none/libcurl.so.4: ' text ||
    fail "without libcurl: $(cat text)"

# Fewer processors for this process are fewer here.
[ "$(nproc)" -lt 2 ] || {
    taskset -c 0 "$SIFR" doctor --json >json
    [ "$(value cpus)" = 1 ] || fail "with one processor: $(value cpus)"
}

# label: soak
# timeout: 2400, not under sanitizers, runs alone
# The tarball for glibc 2.31 and newer: made in a Debian 11, then unpacked in a new Debian 11, 12 and
# 13 with nothing else, where it trains the same bits as the build of this machine, and with that
# Debian's Open MPI on two ranks. Needs root, debootstrap and a network; without a Debian 11 from the
# mirror it is skipped.
fail() { tail -n 40 out 2>/dev/null; echo "failed: $1" >&2; exit 1; }
. "$SOURCE/scripts/debian-root.sh"
debian_roots=$BUILD/debian-roots
lacks=$(debian_root_lacks)
[ -z "$lacks" ] || { echo "skipped: $lacks"; exit 77; }
"$SOURCE/scripts/release.sh" --trial dist >out 2>&1 || fail "release.sh: exit code $?"
code=0
CACHE=${ROOT_CACHE:-} TMPDIR=$PWD debian_roots=$debian_roots \
    "$SOURCE/scripts/make-portable.sh" dist made tarball >out 2>&1 || code=$?
[ $code != 77 ] || { echo "skipped: $(tail -n 1 out)"; exit 77; }
[ $code = 0 ] || fail "make-portable.sh: exit code $code"
cat out
"$SOURCE/scripts/small-run.sh" "$SIFR" >bits || fail "the build of this machine does not train"
tried=
for suite in bullseye bookworm trixie; do
    if ! debian_root $suite root; then
        [ $suite != bookworm ] || fail "no Debian 12: $(tail -n 3 root.log)"
        echo "skipped: no Debian $suite from $debian_mirror"
        continue
    fi
    tar -C root/opt -xf made/sifr-*-linux-x86_64.tar.gz
    in_root root sh -euc 'ln -s /opt/sifr-*/bin/sifr /usr/local/bin/sifr; sifr --version --verbose
        sh /opt/sifr-*/share/doc/sifr/small-run.sh sifr >/root/bits' >out 2>&1 || fail "$suite: exit code $?"
    grep '^runs on' out
    cmp bits root/root/bits || fail "$suite: other bits than the build of this machine"
    root_installs root openmpi-bin >out 2>&1 || fail "$suite: no Open MPI"
    in_root root env RANKS=2 sh -euc 'sh /opt/sifr-*/share/doc/sifr/small-run.sh sifr >/root/bits' >out 2>&1 ||
        fail "$suite: two ranks: exit code $?"
    cmp bits root/root/bits || fail "$suite: other bits on two ranks"
    tried="$tried $suite"
done
echo "$(wc -l <bits) runs, the same bits as this machine's build in:$tried; $SECONDS s"

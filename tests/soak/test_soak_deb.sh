# label: soak
# timeout: 2400, not under sanitizers, runs alone
# The Debian packages: built of the files of a release in a new Debian with what they name and no
# network, looked at by lintian, and installed in another new one, where the program trains the same
# bits as in the first, its manual page and completion are there, a program in C is built, and nothing
# is left when they are purged. The container file on a root of the same making, where buildah runs.
# Needs root, debootstrap and a network. ROOT_CACHE: a folder for ccache.
fail() { tail -n 40 out 2>/dev/null; echo "failed: $1"; exit 1; }
. "$SOURCE/scripts/debian-root.sh"
debian_roots=$BUILD/debian-roots
lacks=$(debian_root_lacks)
[ -z "$lacks" ] || { echo "skipped: $lacks"; exit 77; }
"$SOURCE/scripts/release.sh" --trial dist >out 2>&1 || fail "release.sh: exit code $?"
in_root_cache=${ROOT_CACHE:-}
packages=$(sed -n '/^Build-Depends:/,/^$/p' "$SOURCE/packaging/debian/control" |
    sed 's/^Build-Depends://; s/([^)]*)//g; s/debhelper-compat/debhelper/' | tr ',\n' '  ')

debian_root bookworm build-root || { tail -n 3 build-root.log; echo "skipped: no Debian 12 from $debian_mirror"; exit 77; }
root_installs build-root build-essential lintian ${in_root_cache:+ccache} $packages >out 2>&1 ||
    fail "what the build needs cannot be installed"
[ ! -e build-root/usr/bin/git ] || fail "git is there"
cp -r dist "$SOURCE/scripts/make-deb.sh" build-root/root/
in_root build-root /root/make-deb.sh /root/dist /root/deb >out 2>&1 || fail "make-deb.sh: exit code $?"
cat out
grep -q '^built without a network' out || fail "the build had a network"
grep -q '^lintian: no error, no warning' out || fail "lintian did not look"
cp -r build-root/root/deb .
grep -h '^\(llama\|gpt2\) ' deb/build.log >bits
[ -s bits ] || fail "the packages were built without their test"

in_root_cache=
debian_root bookworm user-root || fail "no second Debian: $(tail -n 3 user-root.log)"
tar -C user-root -cf build-root/root/base.tar .
cp -r deb "$SOURCE/scripts/small-run.sh" "$SOURCE/examples/own_model.c" user-root/root/
root_installs user-root $(cd user-root && printf '/%s\n' root/deb/*.deb) >out 2>&1 ||
    fail "the packages cannot be installed"
in_root user-root sifr --version --verbose >out 2>&1 || fail "the installed program does not run"
cat out
! grep -q "^Parquet  *none" out || fail "built without Parquet"
in_root user-root sh /root/small-run.sh /usr/bin/sifr >bits_there || fail "the installed program does not train"
cmp bits bits_there || fail "the installed program has other bits than the built one"
[ -s user-root/usr/share/man/man1/sifr-train.1.gz ] || fail "no manual page"
in_root user-root bash -c '. /usr/share/bash-completion/completions/sifr
    COMP_WORDS=(sifr unm) COMP_CWORD=1; _sifr; [ "${COMPREPLY[0]}" = unmerge ]' || fail "no completion"
root_installs user-root openmpi-bin >out 2>&1 || fail "no Open MPI"
in_root user-root env RANKS=2 sh /root/small-run.sh /usr/bin/sifr >bits_there || fail "no two ranks"
cmp bits bits_there || fail "two ranks have other bits"
root_installs user-root gcc libc6-dev pkg-config >out 2>&1 || fail "no compiler"
in_root user-root sh -euc 'cd /root
    gcc -std=c17 $(pkg-config --cflags sifr) own_model.c $(pkg-config --libs sifr) -lm -o own_model
    ./own_model' >out 2>&1 || fail "a program in C cannot be built"
grep -q '^step 60: loss 0\.' out || fail "the program in C has not learned"
in_root user-root dpkg --purge sifr libsifr-dev libsifr0.1 sifr-doc >out 2>&1 || fail "they cannot be purged"
left=$(find user-root/usr user-root/etc user-root/var/lib -name '*sifr*' ! -path '*/apt/*')
[ -z "$left" ] || fail "left behind: $left"

# The base of the container is the second root as it was made.
root_installs build-root buildah >out 2>&1 || fail "no buildah"
cp "$SOURCE/packaging/Containerfile" "$SOURCE/scripts/small-run.sh" build-root/root/
cat >build-root/root/container.sh <<'S'
cd /root
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
box=$(buildah from scratch) && buildah add -q "$box" base.tar / >/dev/null || {
    echo "buildah cannot run here"
    exit 77
}
buildah commit -q "$box" base >/dev/null
buildah build -q -f Containerfile --build-arg BASE=localhost/base -t sifr deb >/dev/null
box=$(buildah from localhost/sifr)
buildah copy -q "$box" small-run.sh /small-run.sh >/dev/null
buildah run "$box" sh /small-run.sh sifr
S
code=0
in_root build-root sh -eu /root/container.sh >bits_inside 2>out || code=$?
case $code in
0)
    cmp bits bits_inside || fail "the container has other bits"
    echo "the container file on a base of its own: the same bits"
    ;;
77) echo "skipped: the container: $(tail -n 1 bits_inside)" ;;
*) fail "the container: exit code $code" ;;
esac
echo "$(wc -l <bits) runs, the same bits where $(ls deb/*.deb | wc -l) packages were built and are installed; $SECONDS s"

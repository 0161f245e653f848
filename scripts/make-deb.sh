#!/bin/sh
# Makes Debian packages of the files that scripts/release.sh made: make-deb.sh DIST OUT. Of the
# source and of carquet dpkg-source gets both tarballs; the build has no network where this runs as
# root. Then lintian looks at all, where it is there: an error or a warning that no override of
# packaging/debian names ends this with 1.
set -eu
dist=$(cd "$1" && pwd) out=$2
tarball=$(find "$dist" -name 'sifr-*.tar.gz')
version=${tarball##*/sifr-} && version=${version%.tar.gz}
[ -f "$tarball" ] || { echo "make-deb.sh: there is no sifr-VERSION.tar.gz in $dist" >&2; exit 1; }
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$out/work
rm -rf "$work"
mkdir "$work"
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cp "$tarball" "$work/sifr_$version.orig.tar.gz"
tar -C "$work" -xf "$tarball"
tree=$work/sifr-$version
for file in "$dist"/carquet-*.tar.gz; do
    [ -e "$file" ] || { echo "make-deb.sh: no carquet in $dist: the packages are without Parquet" && break; }
    cp "$file" "$work/sifr_$version.orig-carquet.tar.gz"
    mkdir "$tree/carquet"
    tar -C "$tree/carquet" --strip-components=1 -xf "$file"
done
cp -r "$tree/packaging/debian" "$tree/debian"

alone=
[ "$(id -u)" != 0 ] || ! unshare --net true 2>/dev/null || alone='unshare --net'
export DEB_BUILD_OPTIONS="noautodbgsym ${DEB_BUILD_OPTIONS:-}"
(cd "$tree" && $alone dpkg-buildpackage -us -uc --jobs="${JOBS:-$(nproc)}") >"$work/log" 2>&1 || {
    tail -n 60 "$work/log" >&2
    echo "make-deb.sh: dpkg-buildpackage fails" >&2
    exit 1
}
find "$out" -maxdepth 1 -type f -exec rm {} +
find "$work" -maxdepth 1 -type f -name 'sifr*_*' -exec cp {} "$out/" \;
find "$work" -maxdepth 1 -type f -name 'lib*_*' -exec cp {} "$out/" \;
cp "$work/log" "$out/build.log"
for file in "$out"/*.deb; do
    echo "${file##*/}: $(stat -c %s "$file" | awk '{ printf "%.2f MiB", $1 / 1048576 }')"
done
echo "built${alone:+ without a network}"
if ! command -v lintian >/dev/null; then
    echo "make-deb.sh: no lintian here: the packages were not looked at"
    exit 0
fi
lintian --allow-root --fail-on error,warning --tag-display-limit 0 "$out"/*.changes || {
    echo "make-deb.sh: lintian complains, see above; mend it, or override it with a reason" >&2
    exit 1
}
echo "lintian: no error, no warning; overridden: $(grep -hv '^#' "$tree"/debian/*.lintian-overrides \
    "$tree"/debian/source/lintian-overrides 2>/dev/null | grep -c .)"

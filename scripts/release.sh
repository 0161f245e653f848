#!/bin/sh
# Makes the files of a release from the last commit: release.sh [--trial] [OUT]. In OUT (build/dist):
#   sifr-VERSION.tar.gz     the source, which builds without git
#   carquet-VERSION.tar.gz  the source of what reads Parquet, from PyPI, by its hash
#   SHA256SUMS
# Refused: changes that are in no commit, and a changelog or a Debian changelog whose newest entry is
# not of this version, with a date. --trial takes both, and packs the last commit.
# PROVE=1 unpacks the source in a folder of its own, builds it there without git, and trains with it.
set -eu
tree=$(cd "$(dirname "$0")/.." && pwd)
trial=
[ "${1:-}" != --trial ] || { trial=1 && shift; }
out=${1:-$tree/build/dist}
refuse() { echo "release.sh: $*" >&2; exit 1; }

version=$(sed -n 's/^project(sifr VERSION \([0-9.]*\).*/\1/p' "$tree/CMakeLists.txt")
[ "$version" ] || refuse "CMakeLists.txt: no line 'project(sifr VERSION …'"
entry=$(sed -n 's/^## //p' "$tree/CHANGELOG.md" | head -n 1)
case $entry in
"$version, "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]) ;;
"$version, not released yet") [ "$trial" ] ||
    refuse "CHANGELOG.md: $version is not released yet; write the date there, as '## $version, 2026-01-31', or give --trial" ;;
*) refuse "CHANGELOG.md begins with '$entry', not with '$version, DATE'; write what has changed" ;;
esac
debian=$(sed -n '1s/^sifr (\([^)]*\)-[^-)]*) \([^;]*\);.*/\1 \2/p' "$tree/packaging/debian/changelog")
case $debian in
"$version "*) ;;
*) refuse "packaging/debian/changelog begins with version '${debian% *}', not with $version" ;;
esac
changed=$(git -C "$tree" status --porcelain)
[ -z "$changed" ] || [ "$trial" ] || refuse "changes are in no commit: $(echo "$changed" | head -n 3)"

mkdir -p "$out"
out=$(cd "$out" && pwd)
rm -f "$out"/*.tar.gz "$out"/SHA256SUMS
name=sifr-$version
git -C "$tree" archive --format=tar --prefix="$name/" HEAD | gzip -n9 >"$out/$name.tar.gz"
"$tree/scripts/install-deps.sh" parquet >&2 || echo "release.sh: without the source of carquet" >&2
carquet=$(find "$tree/build/carquet" -name 'carquet-*.tar.gz' 2>/dev/null || :)
[ -z "$carquet" ] || cp "$carquet" "$out/"
(cd "$out" && sha256sum -- *.tar.gz >SHA256SUMS)
for file in "$out"/*.tar.gz; do
    echo "$file: $(stat -c %s "$file" | awk '{ printf "%.1f MiB", $1 / 1048576 }')"
done
[ "${PROVE:-}" ] || exit 0

work=$(mktemp -d "${TMPDIR:-/tmp}/sifr-release.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
mkdir "$work/bin"
printf '#!/bin/sh\necho "release.sh: the build starts git" >&2\nexit 1\n' >"$work/bin/git"
chmod +x "$work/bin/git"
tar -C "$work" -xf "$out/$name.tar.gz"
[ ! -e "$work/$name/.git" ] || refuse "there is a .git in the tarball"
options=
for file in "$out"/carquet-*.tar.gz; do
    [ ! -e "$file" ] || options="-DSIFR_PARQUET=ON -DSIFR_CARQUET=$file"
done
# shellcheck disable=SC2086 # words
PATH=$work/bin:$PATH cmake -S "$work/$name" -B "$work/build" -G Ninja -DSIFR_TESTS=OFF \
    -DCMAKE_BUILD_TYPE=Release ${CMAKE_C_COMPILER_LAUNCHER:+-DCMAKE_C_COMPILER_LAUNCHER=$CMAKE_C_COMPILER_LAUNCHER} \
    $options >"$work/log" 2>&1 || { cat "$work/log" >&2; refuse "cmake fails"; }
PATH=$work/bin:$PATH ninja -C "$work/build" >"$work/log" 2>&1 ||
    { tail -n 30 "$work/log" >&2; refuse "the build fails"; }
commit=$("$work/build/sifr" --version --verbose | sed -n 's/^commit  *//p')
[ "$commit" = "$(git -C "$tree" rev-parse --short=12 HEAD)" ] ||
    refuse "the program of the tarball says commit '$commit'"
"$work/$name/scripts/small-run.sh" "$work/build/sifr"
DESTDIR=$work/root cmake --install "$work/build" --prefix /usr >/dev/null
[ -s "$work/root/usr/share/man/man1/sifr.1" ] || refuse "no manual page is installed"
echo "built without git, of commit $commit, and trained"

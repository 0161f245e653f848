# scripts/release.sh: what it refuses, and what it packs, of a small tree of its own.
fail() { cat out; echo "$1" >&2; exit 1; }
command -v git >/dev/null || { echo "skipped: no git here"; exit 77; }
mkdir -p tree/scripts tree/cmake tree/packaging/debian tree/build/carquet
cp "$SOURCE/scripts/release.sh" tree/scripts/
cp "$SOURCE/cmake/commit.txt" tree/cmake/
cp "$SOURCE/.gitattributes" tree/
printf '#!/bin/sh\n' >tree/scripts/install-deps.sh
chmod +x tree/scripts/install-deps.sh
echo 'project(sifr VERSION 1.2.3 LANGUAGES C)' >tree/CMakeLists.txt
echo /build >tree/.gitignore
echo carquet >tree/build/carquet/carquet-9.9.tar.gz
git init -q tree
commit() { git -C tree add -A && git -C tree -c user.name=a -c user.email=a@b commit -qm "$1"; }
refused() { # TEXT [OPTION]
    if tree/scripts/release.sh ${2:-} dist >out 2>&1; then fail "not refused: $1"; fi
    grep -q "$1" out && [ "$(wc -l <out)" = 1 ] || fail "no word of: $1"
    [ ! -e dist ] || fail "a refused release left its folder"
}
printf '# Changes\n\n## 1.2.2, 2026-01-31\n- a\n' >tree/CHANGELOG.md
echo 'sifr (1.2.2-1) unstable; urgency=medium' >tree/packaging/debian/changelog
commit first
refused "begins with '1.2.2, 2026-01-31', not with '1.2.3, DATE'"
refused "begins with '1.2.2, 2026-01-31'" --trial
printf '# Changes\n\n## 1.2.3, not released yet\n- b\n' >tree/CHANGELOG.md
commit second
refused '1.2.3 is not released yet'
refused "changelog begins with version '1.2.2', not with 1.2.3" --trial
echo 'sifr (1.2.3-4) unstable; urgency=medium' >tree/packaging/debian/changelog
commit debian
tree/scripts/release.sh --trial trial >out 2>&1 || fail "a trial is refused"
printf '# Changes\n\n## 1.2.3, 2026-02-28\n- b\n' >tree/CHANGELOG.md
refused 'changes are in no commit:.*CHANGELOG.md'
commit third
tree/scripts/release.sh dist >out 2>&1 || fail "refused"
[ "$(cd dist && ls | paste -sd ' ')" = 'SHA256SUMS carquet-9.9.tar.gz sifr-1.2.3.tar.gz' ] || fail "$(ls dist)"
(cd dist && sha256sum -c SHA256SUMS >/dev/null) || fail "other sums"
tar -xf dist/sifr-1.2.3.tar.gz
[ "$(cat sifr-1.2.3/cmake/commit.txt)" = "$(git -C tree rev-parse HEAD)" ] || fail "the tarball lacks its commit"
grep -q 2026-02-28 sifr-1.2.3/CHANGELOG.md || fail "not the last commit"

# The commit of a tree: of its own git, of the archive, or not known; never that of a folder around.
says() { # FOLDER
    cmake -DSOURCE="$PWD/$1" -DOUT="$PWD/commit.h" -P "$SOURCE/cmake/commit.cmake"
    sed 's/^#define SIFR_COMMIT "\(.*\)"$/\1/' commit.h
}
short=$(git -C tree rev-parse --short=12 HEAD)
[ "$(says tree)" = "$short" ] || fail "of its git: $(says tree)"
mkdir tree/src && touch tree/src/new.c
[ "$(says tree)" = "$short, with changes" ] || fail "with changes: $(says tree)"
mv sifr-1.2.3 tree/
[ "$(says tree/sifr-1.2.3)" = "$short" ] || fail "of the archive: $(says tree/sifr-1.2.3)"
cp tree/cmake/commit.txt tree/sifr-1.2.3/cmake/
[ "$(says tree/sifr-1.2.3)" = unknown ] || fail "of the folder around: $(says tree/sifr-1.2.3)"

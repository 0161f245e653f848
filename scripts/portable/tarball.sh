# Sourced by portable/inside.sh: packs what `make install` lays down, and the libraries beside it,
# into /root/sifr-VERSION-linux-x86_64.tar.gz.
name=sifr-$version-linux-x86_64
top=/root/$name
quietly cmake --install build --prefix "$top" --strip
# The static library needs those of others; the shared one has them beside it.
rm "$top/lib/libsifr.a"
sed -i '/^Libs.private/d' "$top/lib/pkgconfig/sifr.pc"

say "what is beside glibc"
beside_glibc "$top/bin/sifr" "$top"/lib/libsifr.so.* >libraries
copy_libraries libraries "$top/lib/sifr"
patchelf --force-rpath --set-rpath '$ORIGIN/../lib/sifr' "$top/bin/sifr"
for library in "$top"/lib/libsifr.so.*; do
    [ -L "$library" ] || patchelf --force-rpath --set-rpath '$ORIGIN/sifr' "$library"
done
for library in "$top"/lib/sifr/*; do patchelf --force-rpath --set-rpath '$ORIGIN' "$library"; done

docs=$top/share/doc/sifr
copy_licences libraries "$docs/licences"
cp sifr-"$version"/{README.md,CHANGELOG.md,scripts/small-run.sh} "$docs/"
cp -r sifr-"$version"/docs sifr-"$version"/examples "$docs/"

# What is promised: nothing newer than glibc 2.31, and no library that is neither there nor glibc's.
objects() { find "$top/bin" "$top/lib" -type f -exec objdump "$1" {} + 2>/dev/null || :; } # others, too
newest=$(objects -T | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
echo "the newest glibc that it needs: ${newest#GLIBC_}"
[ "$(printf '%s\n' GLIBC_2.31 "$newest" | sort -V | tail -n 1)" = GLIBC_2.31 ] || { echo "newer than 2.31" >&2; exit 1; }
objects -p | sed -n 's/^ *NEEDED *//p' | sort -u |
    while read -r needed; do
        [[ $needed =~ $glibc || -e $top/lib/sifr/$needed || -e $top/lib/$needed ]] ||
            { echo "$needed is not packed" >&2 && exit 1; }
    done
tar --sort=name --owner=0 --group=0 -czf "$name.tar.gz" "$name"
say "packed $(find "$top/lib/sifr" -type f | wc -l) libraries, $(find "$docs/licences" -type f | wc -l) texts of licences"

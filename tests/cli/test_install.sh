# label: full
# `make install`: into a folder of its own; an outside program, the worked example of the C
# interface, is built against it by pkg-config and by CMake, shared and static.
fail() { echo "$1" >&2; exit 1; }
prefix=$PWD/root/opt/sifr
DESTDIR=$PWD/root cmake --install "$BUILD" --prefix /opt/sifr >install.log || fail "$(cat install.log)"

[ "$("$prefix/bin/sifr" --version)" = "$("$SIFR" --version)" ] || fail "the installed program differs"
for header in "$SOURCE"/include/sifr/*.h; do
    cmp "$header" "$prefix/include/sifr/$(basename "$header")"
done

# Only what is public leaves the library, and all of it has the prefix.
library=$(find "$prefix" -name 'libsifr.so')
nm -D --defined-only "$library" | awk '{ print $NF }' >symbols
grep -qx sifr_version symbols || fail "sifr_version is not exported"
if grep -v '^sifr_' symbols; then fail "the names above are exported without the prefix"; fi
# Each header's SIFR_API declarations are there.
cat "$SOURCE"/include/sifr/*.h | tr '\n' ' ' | tr ';' '\n' |
    sed -n 's/.*SIFR_API[^(]*[ *]\(sifr_[a-z0-9_]*\) *(.*/\1/p' | sort -u >declared
sort -u symbols | comm -23 declared - >absent
[ ! -s absent ] || fail "declared, not exported: $(cat absent)"

mkdir outside
cp "$SOURCE/examples/own_model.c" outside/program.c
export PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name sifr.pc)")
flags="-std=c17 -Wall -Wextra -Werror -pedantic"
cc $flags $(pkg-config --cflags sifr) outside/program.c $(pkg-config --libs sifr) -lm -o by_pkgconfig
directory=$(dirname "$library")
LD_LIBRARY_PATH=$directory ./by_pkgconfig >out || fail "the program built with pkg-config fails"
[ "$(head -n 1 out)" = "$("$SIFR" --version)" ] || fail "pkg-config: $(cat out)"
grep -q '^step 60: loss 0\.' out || fail "it has not learned: $(cat out)"

cc $flags $(pkg-config --cflags sifr) outside/program.c "$directory/libsifr.a" \
    $(pkg-config --static --libs sifr | sed 's/-lsifr//') -o by_static
./by_static >out_static || fail "the statically built program fails"
cmp out out_static

cat >outside/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(outside LANGUAGES C)
find_package(sifr 0.1 REQUIRED)
add_executable(program program.c)
target_link_libraries(program PRIVATE sifr::sifr m)
END
cmake -S outside -B outside/build -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >cmake.log 2>&1 &&
    cmake --build outside/build >>cmake.log 2>&1 || fail "$(cat cmake.log)"
outside/build/program >out_cmake || fail "the program built with CMake fails"
cmp out out_cmake

# label: full
# `make install`: into a folder of its own; outside programs, the examples of the C interface, are
# built against it by pkg-config and by CMake, shared and static. What they do is what the program
# does, to the bit, on one rank and on two.
fail() { echo "$1" >&2; exit 1; }
prefix=$PWD/root/opt/sifr
DESTDIR=$PWD/root cmake --install "$BUILD" --prefix /opt/sifr >install.log || fail "$(cat install.log)"

[ "$("$prefix/bin/sifr" --version)" = "$("$SIFR" --version)" ] || fail "the installed program differs"
for header in "$SOURCE"/include/sifr/*.h; do
    cmp "$header" "$prefix/include/sifr/$(basename "$header")"
    grep -q "^| \`sifr/$(basename "$header")\` |" "$SOURCE/docs/c-interface.md" ||
        fail "docs/c-interface.md does not list sifr/$(basename "$header")"
done

# Manual pages and completion, where man and shells look.
for file in man/man1/sifr-train.1 bash-completion/completions/sifr zsh/site-functions/_sifr \
    fish/vendor_completions.d/sifr.fish; do
    [ -s "$prefix/share/$file" ] || fail "no share/$file"
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

# Each header stands alone, in C and in C++, and is a row of the page, with an example that is there.
for header in "$prefix"/include/sifr/*.h; do
    name=sifr/$(basename "$header")
    for language in c c++; do
        echo "#include <$name>" | cc -Wall -Wextra -Werror -pedantic -I "$prefix/include" \
            -fsyntax-only -x $language - || fail "$name does not stand alone in $language"
    done
    example=$(sed -n "s,^| \`$name\` | [^|]* | \(.*\) |$,\1,p" "$SOURCE/docs/c-interface.md" | tr -d '`')
    [ "$example" = each ] || [ -f "$SOURCE/examples/$example" ] || fail "no example of $name: '$example'"
done

# MPI is opened at run time: neither is linked with one, nor says that a program must be.
if ldd "$prefix/bin/sifr" "$library" | grep -E 'libmpi|libmpich'; then fail "linked with an MPI"; fi
if grep -r -e '-lmpi' -e 'libmpi' "$prefix/lib" --include='*.pc' --include='*.cmake'; then fail "an MPI is asked for"; fi

mkdir outside
cp "$SOURCE/examples/own_model.c" outside/program.c
export PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name sifr.pc)")
flags="-std=c17 -Wall -Wextra -Werror -pedantic"
cc $flags $(pkg-config --cflags sifr) outside/program.c $(pkg-config --libs sifr) -lm -o by_pkgconfig
directory=$(dirname "$library")
LD_LIBRARY_PATH=$directory ./by_pkgconfig >out || fail "the program built with pkg-config fails"
[ "$(head -n 1 out)" = "$("$SIFR" --version)" ] || fail "pkg-config: $(cat out)"
grep -q '^step 60: loss 0\.' out || fail "it has not learned: $(cat out)"

cc $flags $(pkg-config --cflags sifr) outside/program.c \
    $(pkg-config --static --libs sifr | sed s/-lsifr/-l:libsifr.a/) -o by_static
if ldd by_static | grep libsifr; then fail "the shared library is taken"; fi
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

# --- the examples that read a config, beside the program ---
cd outside
. "$SOURCE/tests/support/small_llama.sh"
llama_model llama 32 2 false
cat >ds.json <<'J'
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 2, "gradient_clipping": 1.0,
 "zero_optimization": {"stage": 2}, "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "sifr": {"model": "llama", "data": ["text"], "seq_length": 32, "max_steps": 6, "threads": 1}}
J
example() { # NAME: built against the installed sifr
    cc $flags $(pkg-config --cflags sifr) "$SOURCE/examples/$1.c" $(pkg-config --libs sifr) -lm -o $1
}
export LD_LIBRARY_PATH=$directory
example train_config
expect 0 "$SIFR" train --config ds.json --output by_program
expect 0 ./train_config ds.json output=by_library max-steps=6 save-steps=4
grep -q '^checkpoint: by_library/checkpoint-4$' out || fail "$(cat out)"
cmp by_program/model.safetensors by_library/model.safetensors || fail "other bits"
expect 2 ./train_config ds.json output=by_library max-stepz=6
grep -q 'did you mean --max-steps?' err || fail "$(cat err)"
expect 2 ./train_config ds.json output=by_library # is there, and not to be resumed
grep -q 'by_library: ' err || fail "$(cat err)"

# --- README's first steps, with fewer training steps ---
ln -s "$SOURCE/examples" examples
ln -s llama MODEL_DIR
mkdir texts
cp text texts
sed -n '/^## From C/,/^What/s/^    \(cc\|\.\/train_config\) /\1 /p' "$SOURCE/README.md" |
    sed 's/max-steps=1000/max-steps=2 threads=1/' >first_steps
[ "$(wc -l <first_steps)" = 2 ] || fail "README has other first steps: $(cat first_steps)"
expect 0 sh -e first_steps
grep -q '^done after step 2' out || fail "$(cat out)"

example plan_only
expect 0 ./plan_only ds.json llama 2 1e9
for stage in 0 2; do # of which the table's row "in all" has the peaks
    sed "s/\"stage\": 2/\"stage\": $stage/" ds.json >staged.json
    expect 0 "$SIFR" plan --config staged.json --world-size 2 --json
    planned=$(sed -n 's/^  "peak_bytes": \([0-9]*\),$/\1/p' out)
    ./plan_only ds.json llama 2 1e9 >table
    awk -v at=$((stage + 3)) -v want="$planned" \
        '/^in all/ { found = sprintf("%.3f", want / 1e6) == $at } END { exit !found }' table ||
        fail "stage $stage: not $planned bytes: $(cat table)"
done

example own_data # with a checkpoint between
expect 0 ./own_data ds.json own 2
expect 0 ./own_data ds.json own 6
grep -q '^goes on after step 2: {"last_loss":' out || fail "$(cat out)"
cmp by_program/model.safetensors own/model/model.safetensors || fail "other bits"
expect 0 "$SIFR" export own/checkpoint-6 exported
cmp own/model/model.safetensors exported/model.safetensors || fail "exported: other bits"

example show_runs # as the program shows them
expect 0 ./show_runs shown.html by_program by_library
grep -q '^shown.html: 2 runs, ' out || fail "$(cat out)"
expect 0 "$SIFR" report by_program by_library --output by_program.html
cmp shown.html by_program.html || fail "another page"
expect 1 ./show_runs shown.html nowhere
grep -q '^show_runs: nowhere: ' err || fail "$(cat err)"
example push_run
expect 1 ./push_run by_program http://127.0.0.1:1
grep -q '^push_run: by_program: no spool.jsonl; ' err || fail "$(cat err)"

example watch_run
expect 0 ./watch_run by_program
last=$(tail -n 1 by_program/metrics.jsonl | sed 's/.*"step":\([0-9]*\).*/\1/')
head -n 1 out | grep -q "^by_program  step $last/$last  100 %  done" || fail "$(cat out)"
expect 2 ./watch_run ds.json
grep -q '^watch_run: ds.json: no folder; ' err || fail "$(cat err)"

# Nothing spread is the labels' own loss, within rounding; a tenth of it is another.
example own_loss
losses() { sed -n 's/^step [0-9]*: loss \([0-9.]*\)$/\1/p' out | tr '\n' ' '; }
expect 0 ./own_loss ds.json 0 unsmoothed
losses >own_losses
"$SIFR" train --config ds.json --output again --logging-steps 1 >log 2>&1 || fail "$(cat log)"
awk -F '[:,]' '{ for (i = 1; i < NF; i++) if ($i ~ /"loss"/) printf "%.4f ", $(i + 1) }' \
    again/metrics.jsonl >program_losses
awk '{ getline other < "program_losses"; split(other, b, " ")
       for (i = 1; i <= NF; i++) if (($i - b[i]) ^ 2 > 4.1e-8) exit 1; exit NF != 6 }' own_losses ||
    fail "$(cat own_losses program_losses)"
expect 0 ./own_loss ds.json 0.1 smoothed
[ "$(losses)" != "$(cat own_losses)" ] || fail "the same losses"

. "$SOURCE/tests/support/find_mpi.sh"
expect 0 "$launcher" -n 2 $options ./own_loss ds.json 0.1 smoothed_on_two
cmp smoothed/model.safetensors smoothed_on_two/model.safetensors || fail "other bits on two ranks"
expect 0 "$launcher" -n 2 $options ./train_config ds.json output=on_two
cmp by_program/model.safetensors on_two/model.safetensors || fail "other bits on two ranks"
[ "$(grep -c '^done after step 6' out)" = 1 ] || fail "not one rank says it: $(cat out)"
expect 0 "$launcher" -n 2 $options ./own_data ds.json own_two 6
cmp by_program/model.safetensors own_two/model/model.safetensors || fail "other bits on two ranks"
cc $flags $(pkg-config --cflags sifr) "$SOURCE/tests/api/two_runs.c" $(pkg-config --libs sifr) -o program
expect 0 "$launcher" -n 2 $options ./program
for rank in 0 1; do
    grep -q "^rank $rank: stopped by 9 after step 2$" out || fail "$(cat out)"
    grep -q "^rank $rank: 6 steps, ranks 0 1$" out || fail "$(cat out)"
    grep -q "^rank $rank: rank 1: unknown flag \"nothing\"" out || fail "$(cat out)"
done
cmp by_program/model.safetensors two_runs/model.safetensors || fail "other bits after a stop"

# --- the examples that continue a text, in C and in C++ ---
example generate
c++ -std=c++17 -Wall -Wextra -Werror -pedantic $(pkg-config --cflags sifr) \
    "$SOURCE/examples/complete.cpp" $(pkg-config --libs sifr) -o complete
gpt2=$SOURCE/tests/golden/models/gpt2
expect 0 "$SIFR" generate --model "$gpt2" --prompt 'The sea' --max-new-tokens 12
mv out by_program.txt
for program in generate complete; do
    expect 0 ./$program "$gpt2" 'The sea' 12
    cmp by_program.txt out || fail "$program: another text"
    ! ./$program nowhere 'The sea' 12 2>err || fail "$program: no model"
    grep -q "^$program: nowhere: " err || fail "$program: no reason: $(cat err)"
done

# --- the examples that classify and evaluate, and that merge, export and score ---
example classify
printf 'label\ttext\nyes\ta day\nno\tthe food\nyes\ta red day\nno\tbad food\n' >rows.tsv
printf 'a day\nthe bad food\n' >lines
expect 0 "$SIFR" train --model llama --data rows.tsv --task sequence_classification --max-steps 2 \
    --seq-length 32 --threads 1 --output classes
expect 0 "$SIFR" classify --model classes <lines
mv out by_program.txt
expect 0 ./classify classes <lines
cmp by_program.txt out || fail "classify: other answers"
expect 0 "$SIFR" eval --model classes --data rows.tsv --seq-length 128 --json
accuracy=$(sed -n 's/^ *"accuracy": \([0-9.]*\),*$/\1/p' out)
expect 0 ./classify classes rows.tsv
grep -q "^accuracy $accuracy" out || fail "not $accuracy: $(cat out)"

example prepare_teacher
base=$SOURCE/tests/golden/models/llama3 adapter=$SOURCE/tests/golden/lora/llama3
expect 0 ./prepare_teacher "$base" "$adapter" text merged
expect 0 "$SIFR" merge "$base" "$adapter" same
cmp same/model.safetensors merged/model.safetensors || fail "another model"
expect 0 "$SIFR" export merged again.gguf --format gguf --type q8_0
cmp again.gguf merged.gguf || fail "another GGUF file"
expect 0 "$SIFR" score --model same --data text --seq-length 16 --top-k 4 --output same.safetensors
cmp same.safetensors merged.safetensors || fail "other scores"

# --- examples/README.md: what is printed is what its page shows, but for numbers ---
mkdir page
for program in train_config watch_run plan_only own_data own_loss show_runs push_run generate classify \
    prepare_teacher; do
    cp $program page
done
cp ../by_pkgconfig page/own_model
cd page
ln -s "$SOURCE/examples" "$SOURCE/docs" .
export PATH=$prefix/bin:$PATH
masked() { sed 's/[0-9][0-9.,]*/N/g'; }
sed -n 's/^    //p' examples/README.md >shown
sed -n 's/^\$ //p' shown >commands
[ "$(wc -l <commands)" -ge 20 ] || fail "examples/README.md has no commands"
while IFS= read -r command; do
    echo "\$ $command"
    sh -c "$command" 2>err </dev/null || fail "examples/README.md: $command: $(cat err)"
done <commands >came
masked <shown >shown.masked
masked <came | diff shown.masked - || fail "examples/README.md shows something else"
for example in examples/*; do
    name=$(basename "$example")
    [ "$name" = README.md ] || grep -qF "$name" examples/README.md || fail "examples/README.md lacks $name"
done

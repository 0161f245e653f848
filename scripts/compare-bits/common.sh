# shellcheck shell=bash
# Sourced by compare-bits.sh: both builds; `compare`, which does a run with each program; and what
# runs record. A run is a function. It works in a folder of its own, which has links to all that
# made.sh made, with $sifr and $gpu (the same program on a GPU that a fake driver plays; "" where
# none was built). Its standard output is its bits, descriptor 3 its messages.
# shellcheck disable=SC2154 # tree, work, builds and base are compare-bits.sh's

build() { # SOURCE BUILD
    local targets=(sifr)
    if pkg-config --exists cmocka && command -v c++ >/dev/null && [ "$(uname -m)" = x86_64 ]; then
        targets+=(sifr_on_fake_gpu) # it is one of the tests' programs
    fi
    if ! { cmake -S "$1" -B "$2" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DCMAKE_C_FLAGS_RELWITHDEBINFO="-O3 -g -DNDEBUG" &&
        ninja -C "$2" "${targets[@]}"; } >"$work/log" 2>&1; then
        tail -n 20 "$work/log" >&2
        exit 1
    fi
}
build_both() { # sets $old, $new, $old_gpu and $new_gpu
    mkdir -p "$builds"
    if [ -e "$builds/tree" ]; then
        git -C "$builds/tree" checkout --quiet --detach "$base"
    else
        git -C "$tree" worktree add --quiet --detach "$builds/tree" "$base"
    fi
    if [ ${#built[@]} = 0 ]; then
        built=("$builds/tree/build" "$builds/this")
        [ ! "$keep" ] || built[1]=$tree/build-bits # beside other builds of a tree, for ccache
        build "$builds/tree" "${built[0]}"
        build "$tree" "${built[1]}"
    fi
    old=${built[0]}/sifr new=${built[1]}/sifr old_gpu='' new_gpu=''
    if [ -x "${built[0]}/tests/sifr_on_fake_gpu" ] && [ -x "${built[1]}/tests/sifr_on_fake_gpu" ]; then
        old_gpu=${built[0]}/tests/sifr_on_fake_gpu new_gpu=${built[1]}/tests/sifr_on_fake_gpu
    fi
    echo "builds: $SECONDS s"
}

same=0 different=0 spoken=0 skipped=0
skip() { # WHY: the whole topic
    echo "$topic: skipped: $1"
    skipped=$((skipped + 1))
}
one() { # NAME PROGRAM PROGRAM_ON_GPU FUNCTION ARG…
    local at=$work/run/$1
    sifr=$2 gpu=$3
    shift 3
    mkdir -p "$at/here"
    cd "$at/here" || exit
    ln -s "$work"/made/* .
    "$@" >../bits 3>../said 2>../trouble </dev/null
}
compare() { # WHAT FUNCTION ARG…
    local what="$topic: $1" run=$work/run
    shift
    rm -rf "$run"
    (one base "$old" "$old_gpu" "$@") &
    (one this "$new" "$new_gpu" "$@") || :
    wait $! || :
    if [ ! -s "$run/base/bits" ] || grep -q '^failed: ' "$run"/*/bits ||
        ! cmp -s "$run/base/bits" "$run/this/bits"; then
        different=$((different + 1))
        echo "different: $what"
        show bits
    elif ! cmp -s "$run/base/said" "$run/this/said"; then
        spoken=$((spoken + 1))
        echo "message differs: $what"
        show said
    else
        same=$((same + 1))
    fi
}
show() { # bits|said: the first lines of both that differ, or that say how a program failed
    if grep -q '^failed: ' "$run"/*/bits; then
        (cd "$run" && grep -H '^failed: ' ./*/bits | sed 's#^./#    #; s#/bits:#: #' | cut -c1-400)
    else
        diff "$run/base/$1" "$run/this/$1" | grep '^[<>]' | head -n 8 |
            sed 's/^</    base:/; s/^>/    this:/' || :
    fi
    sed 's/^/    /' "$run/this/trouble" | head -n 3
}

# --- what a run records ---
# What was measured, and where it ran.
steady() {
    sed -E "s#$work/run/(base|this)/here#HERE#g; s#${built[0]}/#BUILD/#g
        s#${built[1]}/#BUILD/#g; s#$work#WORK#g
        s/\"(tokens_per_second|seconds|memory_bytes|limit_share|[a-z_]*_seconds|measured_bytes|process_bytes|rest|gaps)\": *[0-9.e+-]+/\"\1\":0/g
        s/[0-9.]+[kMG]? tok\/s.*$/SPEED/
        s/ in [0-9.:]+ s, [0-9,.]+k? tokens\/s/ in T/; s/[0-9.,]+k? tokens\/s/SPEED/
        s/[0-9.]+ [KMG]?i?B measured/M measured/; s/[0-9.]+ [kMG]?B\/s/SPEED/
        s/[0-9.]+ [KMG]?i?B (more|that the program)/M \1/; s/itself takes [0-9.]+ [KMG]?i?B/itself takes M/
        s/may take [0-9.]+ [KMG]?i?B/may take M/; s/[0-9,]+ fits, one more/N fits, one more/
        s/\"(baseline|room)_bytes\": [0-9]+/\"\1_bytes\": M/; s/\"(largest_[a-z_]+)\": [0-9]+/\"\1\": N/
        s/0x[0-9a-f]{6,}/ADDRESS/g; s/ in [0-9.]+ m?s\b/ in T/"
}
digest() { # PATH…: a line for each file
    local file
    find "$@" -type f | LC_ALL=C sort | while read -r file; do
        case $file in
        *.csv) awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) measured[i] = $i ~ /second|memory|limit/ }
            { for (i = 1; i <= NF; i++) printf "%s,", measured[i] ? "" : $i; print "" }' "$file" ;;
        *.json | *.jsonl) steady <"$file" ;;
        *) cat "$file" ;;
        esac | sha256sum | sed "s#-\$#$file#"
    done
}
run() { # COMMAND…: has to succeed; its output is in the files printed and errors
    "$@" >printed 2>errors || {
        echo "failed: exit code $?: $(grep '^sifr ' errors | grep -v ' ranks on ' || tail -n 3 errors)"
        exit 1
    }
}
text() { # COMMAND…: records what it prints
    run "$@"
    steady <printed
}
says() { # COMMAND…: records its exit code, and what it says as a message
    local code=0
    "$@" >printed 2>errors || code=$?
    echo "exit code $code"
    grep -v '^step [0-9]' printed | steady >&3 # how many of them depends on the time
    steady <errors >&3
}
adam='{"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0.01}}'
ds() { # [MEMBERS [MEMBERS OF sifr [OPTIMIZER]]]: ds.json of a small run; members end with a comma
    cat >ds.json <<J
{"train_batch_size": ${batch:-4}, "train_micro_batch_size_per_gpu": 1, ${1:-}
 "gradient_clipping": 1.0, "optimizer": ${3:-$adam},
 "sifr": {${2:-} "seq_length": ${length:-32}, "max_steps": ${steps:-3}}}
J
}
train() { # OUTPUT OPTION…: by ds.json; records all that it leaves
    run "$sifr" train --config ds.json --threads 1 --output "$@"
    digest "$1"
}

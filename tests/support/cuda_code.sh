# Sourced by tests of what nvcc makes of the kernels for GPUs, which say for which $targets.
fail() { echo "$1" >&2; exit 1; }
[ -f "$BUILD/cuda/nvcc.flags" ] || { echo "no nvcc here (cmake/cuda.cmake)"; exit 77; }
read -r nvcc <"$BUILD/cuda/nvcc.flags"
limits=$SOURCE/tests/device/cuda_limits.txt
columns="80 86 89 90a 100a 120a" # of that table

# compile FILE.cu FOLDER: its code, the compiler's report and the PTX of each target
compile() {
    rm -rf "$2"
    mkdir -p "$2"
    local target flags=
    for target in $targets; do
        flags+=" -gencode arch=compute_$target,code=sm_$target"
    done
    # shellcheck disable=SC2086 # several words
    $nvcc $flags -Xptxas -v -MD -MF "$2/files" -MT code --keep --keep-dir "$2" -fatbin \
        -o "$2/code.fatbin" "$1" >"$2/report" 2>&1 || fail "nvcc $1: $(cat "$2/report")"
    find "$2" -type f ! -name '*.ptx' ! -name '*.fatbin' ! -name report ! -name files -delete
}

# The same in the build folder: a file is compiled again only if what it is made of has changed.
compile_kept() {
    [ "$(cat "$2/compiler" 2>/dev/null)" = "$nvcc $targets" ] && sha256sum --status -c "$2/sums" && return 0
    compile "$1" "$2"
    tr ' \\' '\n\n' <"$2/files" | grep -F "$SOURCE/" | sort -u | xargs sha256sum >"$2/sums"
    echo "$nvcc $targets" >"$2/compiler"
}

# "KERNEL TARGET REGISTERS STACK SPILLED" of the compiler's reports
figures() {
    awk '
        /Compiling entry function/ { split($0, part, "\047"); name = part[2]; target = part[4] }
        /bytes stack frame/ { stack = $1; spilled = $5 + $9 }
        /Used [0-9]+ registers/ {
            sub(/.*Used /, ""); sub("^sifr_", "", name)
            print name, target, $1, stack, spilled
        }' "$@"
}

# "KERNEL TARGET WHAT" of each 16-byte access and each atomic operation on floats in PTX
accesses() {
    for file in "$@"; do
        case $file in # of one target alone the name does not say it
        *compute_*) target=$(echo "$file" | sed 's/.*compute_\([0-9a-z]*\)\.ptx/sm_\1/') ;;
        *) target=sm_$targets ;;
        esac
        awk -v target="$target" '
            function found(what) { print name, target, what }
            /\.entry / {
                name = $0
                sub(/.*\.entry +(sifr_)?/, "", name)
                sub(/[^A-Za-z0-9_].*/, "", name)
            }
            /(^|[ \t])(atom|red)\.[^;]*\.(f16|f16x2|bf16|bf16x2|f32|f64)[ \t]/ { found("atomic") }
            /cp\.async\.[^;]*, 16[,;]/ { found("load16") }
            /(ld|st)\.(shared|local|param)/ { next }
            /ld\.[^;]*(v4\.[usbf]32|v2\.[usbf]64)[ \t]/ { found("load16") }
            /st\.[^;]*(v4\.[usbf]32|v2\.[usbf]64)[ \t]/ { found("store16") }
        ' "$file"
    done | sort -u
}

# judge FIGURES ACCESSES LIMITS: compares them with the table, which has a column for each of $columns
judge() {
    awk -v figures="$1" -v accesses="$2" -v order="$columns" '
        BEGIN {
            count = split(order, part, " ")
            for (i = 1; i <= count; i++) column["sm_" part[i]] = 1 + i
        }
        FILENAME == accesses { has[$1, $2, $3] = 1; if ($3 == "atomic") atomic[$1] = 1; next }
        FILENAME == figures {
            kernels[$1] = 1
            targets[$2] = 1
            registers[$1, $2] = $3
            stack[$1, $2] = $4
            spilled[$1, $2] = $5
            next
        }
        /^#/ || !NF { next }
        {
            listed[$1] = 1
            if (!($1 in kernels)) { print $1 ": listed, but there is no such kernel"; bad = 1; next }
            for (target in targets) {
                limit = $column[target]
                allowed = 0
                for (i = 2 + count; i <= NF; i++) {
                    if ($i ~ "^stack@" target "=") allowed = substr($i, length(target) + 8) + 0
                }
                if (registers[$1, target] > limit) {
                    print $1 ": " registers[$1, target] " registers on " target ", limit " limit
                    bad = 1
                }
                for (i = 2 + count; i <= NF; i++) {
                    if ($i ~ /=/) continue
                    if (!has[$1, target, $i]) { print $1 ": no " $i " on " target; bad = 1 }
                }
                if (stack[$1, target] > allowed || spilled[$1, target] > 3 * allowed) {
                    print $1 ": " stack[$1, target] " bytes of stack and " spilled[$1, target] \
                        " of spills on " target
                    bad = 1
                }
            }
        }
        END {
            for (name in atomic) { print name ": an atomic operation on floats"; bad = 1 }
            for (name in kernels)
                if (!(name in listed)) {
                    line = name
                    for (i = 1; i <= count; i++)
                        line = line " " int((registers[name, "sm_" part[i]] + 7) / 8) * 8
                    for (target in targets) one = target
                    if (has[name, one, "load16"]) line = line " load16"
                    if (has[name, one, "store16"]) line = line " store16"
                    print "no limits for (0: not compiled here): " line
                    for (target in targets)
                        if (stack[name, target] + spilled[name, target] > 0) {
                            print name ": stack or spills on " target
                            bad = 1
                        }
                }
            exit bad
        }' "$2" "$1" "$3"
}

# check_sass CODE: the machine's own code, where there is a tool that shows it
check_sass() {
    local disassembler
    disassembler=$(command -v cuobjdump) || {
        echo "no cuobjdump: the PTX was checked, not the SASS"
        return 0
    }
    for fatbin in "$1"/*/code.fatbin; do
        "$disassembler" -sass "$fatbin" >sass 2>&1 || { echo "cuobjdump: $(head -1 sass)"; return 0; }
        if grep -E '(ATOMG?|ATOMS|REDG?)\.[A-Z0-9.]*F(16|32|64)' sass; then
            fail "$fatbin: atomics of floats"
        fi
        awk -v limits="$limits" '
            BEGIN {
                while ((getline line <limits) > 0)
                    if (line ~ /load16/) { split(line, part, " "); wanted[part[1]] = 1 }
            }
            /arch = / { target = $3 }
            /Function : / {
                name = $3
                sub("^sifr_", "", name)
                if (name in wanted) open[name, target] = 1
            }
            /LDG[A-Z0-9.]*\.128|LDGSTS[A-Z0-9.]*\.128|UBLKCP|UTMA/ { delete open[name, target] }
            END {
                for (k in open) {
                    split(k, part, SUBSEP)
                    print part[1] ": no LDG.128 on " part[2]
                    bad = 1
                }
                exit bad
            }
        ' sass || exit 1
    done
}

# check_kernels: of all files, for $targets, compiled into $code
check_kernels() {
    local files file
    files=$(find "$SOURCE/src/device/cuda" -name '*.cu' | sort)
    export -f compile compile_kept fail
    export nvcc SOURCE code targets
    echo "$files" |
        xargs -P 2 -I{} bash -euc 'compile_kept "$1" "$code/$(basename "$1" .cu)"' bash {} || exit 1
    mkdir code
    for file in $files; do ln -s "$code/$(basename "$file" .cu)" code/; done
    figures code/*/report >all.figures
    accesses code/*/*.ptx >all.accesses
    [ "$(wc -l <all.figures)" -ge $(($(echo $targets | wc -w) * $(echo "$files" | wc -l))) ] ||
        fail "only $(wc -l <all.figures) kernels in the compiler's report"
    judge all.figures all.accesses "$limits" || exit 1
    check_sass code
}

# Sourced by tests of what nvcc makes of the kernels for GPUs, which say for which $targets.
fail() { echo "$1" >&2; exit 1; }
[ -f "$BUILD/cuda/nvcc.flags" ] || { echo "no nvcc here (cmake/cuda.cmake)"; exit 77; }
read -r nvcc <"$BUILD/cuda/nvcc.flags"
limits=$SOURCE/tests/device/cuda_limits.txt
columns="80 86 89 90a 100a 120a" # of that table
# What shows the machine's code: of scripts/install-deps.sh, of nvcc's toolkit, or of the system.
disassembler=
for file in "$SOURCE/build/nvdisasm/nvidia/cu13/bin/nvdisasm" "$(dirname "${nvcc%% *}")/nvdisasm" \
    "$(command -v nvdisasm || :)"; do
    if [ -x "$file" ]; then
        disassembler=$file
        break
    fi
done

# compile FILE.cu FOLDER: the code, the PTX of each target, and the compiler's report
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
    find "$2" -type f ! -name '*.ptx' ! -name '*.cubin' ! -name report ! -name files -delete
}

# The same in the build folder: a file is compiled again only if what it is made of has changed, and
# then its code is read again.
compile_kept() {
    if [ "$(cat "$2/compiler" 2>/dev/null)" != "$nvcc, cubins of $targets" ] ||
        ! sha256sum --status -c "$2/sums"; then
        compile "$1" "$2"
        tr ' \\' '\n\n' <"$2/files" | grep -F "$SOURCE/" | sort -u | xargs sha256sum >"$2/sums"
        echo "$nvcc, cubins of $targets" >"$2/compiler"
    fi
    [ -n "$disassembler" ] || return 0
    [ "$2/sass" -nt "$2/compiler" ] && [ "$2/sass" -nt "$SOURCE/tests/support/cuda_code.sh" ] && return 0
    sass_accesses "$2"/*.cubin >"$2/sass.part"
    mv "$2/sass.part" "$2/sass"
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

# The same of machine code, with "KERNEL TARGET code" of each kernel. Of floats in shared memory, which
# have no such operation, the compiler makes a loop of CAST.SPIN; CAST.SPIN.64 adds integers as well.
sass_accesses() {
    for file in "$@"; do
        "$disassembler" -c -ndf "$file" >"$file.text" || fail "$disassembler: $file is not read"
        awk '
            function found(what) { if (!seen[name, what]++) print name, target, what }
            $1 == ".target" { target = $2 }
            /^\.text\./ {
                name = $1
                sub(/^\.text\.(sifr_)?/, "", name)
                sub(/:.*/, "", name)
                found("code")
            }
            /[ \t](ATOM[GS]?|REDG?)\.[A-Z0-9.]*(F(16|32|64)|CAST\.SPIN[ \t])/ { found("atomic") }
            /[ \t](LDG?|LDGSTS)\.[A-Z0-9.]*128|[ \t](UBLKCP|UTMALDG)/ { found("load16") }
            /[ \t]STG?\.[A-Z0-9.]*128|[ \t](UBLKCP|UTMASTG)/ { found("store16") }
        ' "$file.text"
        rm "$file.text"
    done
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

# judge_sass FIGURES ACCESSES LIMITS: judge of machine code, of which each kernel must have been seen
judge_sass() {
    awk '$3 == "code" { seen[$1, $2] = 1; next }
        FILENAME == ARGV[2] && !(($1, $2) in seen) { print $1 ": no machine code on " $2; bad = 1 }
        END { exit bad }' "$2" "$1" && judge "$@"
}

# check_kernels: of all files, for $targets, compiled into $code
check_kernels() {
    local files file
    files=$(find "$SOURCE/src/device/cuda" -name '*.cu' | sort)
    export -f compile compile_kept sass_accesses fail
    export nvcc disassembler SOURCE code targets
    echo "$files" |
        xargs -P 2 -I{} bash -euc 'compile_kept "$1" "$code/$(basename "$1" .cu)"' bash {} || exit 1
    mkdir code
    for file in $files; do ln -s "$code/$(basename "$file" .cu)" code/; done
    figures code/*/report >all.figures
    accesses code/*/*.ptx >all.accesses
    [ "$(wc -l <all.figures)" -ge $(($(echo $targets | wc -w) * $(echo "$files" | wc -l))) ] ||
        fail "only $(wc -l <all.figures) kernels in the compiler's report"
    judge all.figures all.accesses "$limits" || exit 1
    if [ -z "$disassembler" ]; then
        echo "no nvdisasm: the PTX was checked, not the machine code"
        return 0
    fi
    cat code/*/sass >all.sass
    judge_sass all.figures all.sass "$limits" || fail "... in the machine code"
}

# What nvcc makes of the kernels for GPUs: no stack and no spilled registers, no more registers than
# cuda_limits.txt says, no atomic additions of floats (their order changes from run to run), and
# 16-byte accesses in kernels that stream. Kernels without limits are printed as lines to add, and
# must have no stack and no spills. Skipped where there is no nvcc.
# label: full, timeout: 600, not under sanitizers
fail() { echo "$1" >&2; exit 1; }
[ -f "$BUILD/cuda/nvcc.flags" ] || { echo "no nvcc here (cmake/cuda.cmake)"; exit 77; }
read -r nvcc <"$BUILD/cuda/nvcc.flags"
limits=$SOURCE/tests/device/cuda_limits.txt

# compile FILE.cu FOLDER: its code, the compiler's report and the PTX of each target
compile() {
    rm -rf "$2"
    mkdir -p "$2"
    # shellcheck disable=SC2086 # the compiler and its flags
    $nvcc -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90a,code=sm_90a \
        -Xptxas -v -MD -MF "$2/files" -MT code --keep --keep-dir "$2" -fatbin \
        -o "$2/code.fatbin" "$1" >"$2/report" 2>&1 || fail "nvcc $1: $(cat "$2/report")"
    find "$2" -type f ! -name '*.ptx' ! -name '*.fatbin' ! -name report ! -name files -delete
}

# The same in the build folder: a file is compiled again only if what it is made of has changed.
compile_kept() {
    [ "$(cat "$2/compiler" 2>/dev/null)" = "$nvcc" ] && sha256sum --status -c "$2/sums" && return 0
    compile "$1" "$2"
    tr ' \\' '\n\n' <"$2/files" | grep -F "$SOURCE/" | sort -u | xargs sha256sum >"$2/sums"
    echo "$nvcc" >"$2/compiler"
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
        target=$(echo "$file" | sed 's/.*compute_\([0-9a-z]*\)\.ptx/sm_\1/')
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

# judge FIGURES ACCESSES: compares them with the table
judge() {
    awk -v figures="$1" -v accesses="$2" '
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
            limit["sm_80"] = $2; limit["sm_90a"] = $3
            for (target in limit) {
                if (registers[$1, target] > limit[target]) {
                    print $1 ": " registers[$1, target] " registers on " target ", limit " \
                        limit[target]
                    bad = 1
                }
                allowed = 0
                for (i = 4; i <= NF; i++) {
                    if ($i ~ /^stack=/) { allowed = substr($i, 7) + 0; continue }
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
                    printf "no limits for: %s %d %d%s%s\n", name,
                        int((registers[name, "sm_80"] + 7) / 8) * 8,
                        int((registers[name, "sm_90a"] + 7) / 8) * 8,
                        has[name, "sm_80", "load16"] ? " load16" : "",
                        has[name, "sm_80", "store16"] ? " store16" : ""
                    for (target in targets)
                        if (stack[name, target] + spilled[name, target] > 0) {
                            print name ": stack or spills on " target
                            bad = 1
                        }
                }
            exit bad
        }' "$2" "$1" "$3"
}

# That it can fail: a kernel with each fault.
cat >bad.cu <<'CU'
extern "C" __global__ void sifr_bad(float *y, const int *x) {
    float kept[64];
    for (int i = 0; i < 64; i++) kept[i] = (float)x[i];
    atomicAdd(y, kept[x[64] & 63]);
}
CU
compile bad.cu bad
figures bad/report >bad.figures
accesses bad/*.ptx >bad.accesses
printf 'bad 2 255 load16\n' >bad.limits
if judge bad.figures bad.accesses bad.limits >bad.out; then fail "faults are not found"; fi
for want in 'bad: 256 bytes of stack and 0 of spills on sm_80' 'bad: .* registers on sm_80, limit 2' \
    'bad: no load16 on sm_90a' 'bad: an atomic operation on floats'; do
    grep -q "$want" bad.out || fail "not found: $want; but: $(cat bad.out)"
done

files=$(find "$SOURCE/src/device/cuda" -name '*.cu' | sort)
code=$BUILD/cuda/code
export -f compile compile_kept fail
export nvcc SOURCE code
echo "$files" |
    xargs -P 2 -I{} bash -euc 'compile_kept "$1" "$code/$(basename "$1" .cu)"' bash {} || exit 1
mkdir code
for file in $files; do ln -s "$code/$(basename "$file" .cu)" code/; done
figures code/*/report >all.figures
accesses code/*/*.ptx >all.accesses
[ "$(wc -l <all.figures)" -ge $((2 * $(echo "$files" | wc -l))) ] ||
    fail "only $(wc -l <all.figures) kernels in the compiler's report"
judge all.figures all.accesses "$limits" || exit 1

# The machine's own code, where there is a tool that shows it.
disassembler=$(command -v cuobjdump) || {
    echo "no cuobjdump: the PTX was checked, not the SASS"
    exit 0
}
for fatbin in code/*/code.fatbin; do
    "$disassembler" -sass "$fatbin" >sass 2>&1 || { echo "cuobjdump: $(head -1 sass)"; exit 0; }
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

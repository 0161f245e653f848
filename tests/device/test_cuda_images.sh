# Which image of a program with CUDA has which kernel (cmake/cuda.cmake): the build takes it from what
# nvcc compiled. Here an nvcc is played that leaves the names in the sources and no code. A kernel in
# no image, in two or in none of the list ends the build, and so do targets that differ.
# timeout: 300, not under sanitizers
fail() { echo "$1" >&2; exit 1; }
command -v ninja >/dev/null || { echo "no ninja here"; exit 77; }
compiler=$(command -v c++ || command -v g++ || command -v clang++) || { echo "no C++ compiler"; exit 77; }

# The script `plant`, where there is one, changes what it leaves.
cat >nvcc <<END
#!/bin/bash
set -e
[ "\$1" != --version ] || { echo "Cuda compilation tools, release 13.0, V13.0.48"; exit 0; }
flags=()
for ((i = 1; i <= \$#; i++)); do
    next=\$((i + 1))
    case \${!i} in
    -I*) flags+=("\${!i}") ;;
    -keep-dir) kept=\${!next} ;;
    -MF) depends=\${!next} ;;
    -MT) target=\${!next} ;;
    -o) out=\${!next} ;;
    *.cu) source=\${!i} ;;
    esac
done
name=\$(basename "\$source" .cu)
"$compiler" -x c++ -std=c++17 -D__CUDACC__ -E "\${flags[@]}" -MD -MF "\$depends" -MT "\$target" "\$source" |
    tr ';{' '\n\n' | sed -n 's/.*__global__.* sifr_\([a-z0-9_]*\)(const .*/.visible .entry sifr_\1(/p' \
    >"\$kept/\$name.compute_80.ptx"
cat "\$kept/\$name.compute_80.ptx" >"\$kept/\$name.compute_90a.ptx"
[ ! -e "$PWD/plant" ] || NAME=\$name KEPT=\$kept bash "$PWD/plant"
printf '\x50\xed\x55\xba' >"\$out"
END
chmod +x nvcc

cmake -S "$SOURCE" -B b -G Ninja -DSIFR_CUDA=ON -DSIFR_NVCC="$PWD/nvcc" -DSIFR_TESTS=OFF \
    -DSIFR_KERNEL_SETS=plain >configured 2>&1 || fail "$(cat configured)"
object=CMakeFiles/sifr_objects.dir/cuda/cuda_images.c.o
ninja -C b "$object" >built 2>&1 || fail "$(tail -n 20 built)"
listed=$(cat b/cuda/*.kernels | wc -l)
[ "$listed" -gt 200 ] || fail "$listed kernels in the images"
if find b/cuda -name '*.kept' | grep .; then fail "nvcc's files are left"; fi
ninja -C b "$object" | grep -q 'no work' || fail "built again without a change"

# planted WANTED SCRIPT: the build ends, and says so
planted() {
    echo "$2" >plant
    rm -f b/cuda/moves.kernels
    if ninja -C b "$object" >built 2>&1; then fail "not seen: $2"; fi
    tr -s ' \n' ' ' <built | grep -q "$1" || fail "no \"$1\": $(tail -n 20 built)"
}
both="\$KEPT/moves.compute_80.ptx \$KEPT/moves.compute_90a.ptx"
planted 'in_an_image_gather_4.* undeclared\|undeclared.*in_an_image_gather_4' \
    "[ \$NAME != moves ] || sed -i /gather_4/d $both"
planted 'redeclaration of .*in_an_image_adam\|redefinition of .*in_an_image_adam' \
    "[ \$NAME != moves ] || for f in $both; do echo '.visible .entry sifr_adam(' >>\$f; done"
planted 'cuda_kernel_unknown' \
    "[ \$NAME != moves ] || for f in $both; do echo '.visible .entry sifr_unknown(' >>\$f; done"
planted 'have different kernels' "[ \$NAME != moves ] || sed -i /gather_4/d \$KEPT/moves.compute_90a.ptx"
planted 'does not begin with sifr_' "[ \$NAME != moves ] || sed -i s/sifr_gather_4/other/ $both"
planted 'no PTX with kernels' "[ \$NAME != moves ] || rm \$KEPT/moves.*.ptx"
rm plant
ninja -C b "$object" >built 2>&1 || fail "$(tail -n 20 built)"
echo "$listed kernels in $(ls b/cuda/*.kernels | wc -l) images"

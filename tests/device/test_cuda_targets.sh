# label: soak
# As test_cuda_code.sh, for the other targets that the kernels are built for: it takes minutes.
# timeout: 2400, not under sanitizers
targets="80 86 89 100a 120a"
code=$BUILD/cuda/targets
. "$SOURCE/tests/support/cuda_code.sh"
check_kernels
echo "$(wc -l <all.figures) kernels of $(echo $targets | wc -w) targets"

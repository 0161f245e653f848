#!/bin/sh
# The kernels that a build for tests needs: the plain ones, and those of the best instruction set of
# this machine, as SIFR_KERNEL_SETS takes them: kernel-sets.sh SIFR
set -eu
machine=$("$1" doctor)
best=
case $machine in
*"avx512_bf16 yes"*) best=";avx512_bf16" ;;
*"avx512f yes"*) best=";avx512" ;;
*"avx2 yes"*) best=";avx2" ;;
esac
echo "plain$best"

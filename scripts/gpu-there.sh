#!/bin/sh
# Says so where there is no driver of NVIDIA, so that nobody waits for a build before hearing it. With
# a driver the program itself says whether it can use the GPU.
set -u
name=libcuda.so.1
! ldconfig -p 2>/dev/null | grep -q "$name" || exit 0
! /sbin/ldconfig -p 2>/dev/null | grep -q "$name" || exit 0
for folder in $(echo "${LD_LIBRARY_PATH:-}" | tr : ' ') /usr/lib/wsl/lib; do
    [ ! -e "$folder/$name" ] || exit 0
done
echo "no GPU: NVIDIA's driver ($name) is not here, so nothing is built; install it first" >&2
exit 1

# Sourced by portable/inside.sh: what a wheel is packed of, in /root/wheel: the extension, the libraries
# that it needs and that the manylinux rules do not count on everywhere, their licences.
say "the wheel's parts"
mkdir wheel
cp build/python/sifr/_sifr.abi3.so wheel/
strip --strip-unneeded wheel/_sifr.abi3.so
beside_glibc wheel/_sifr.abi3.so | grep -vE '^lib(z|gcc_s|stdc\+\+)\.so' >wheel-libraries
copy_libraries wheel-libraries wheel/libraries
copy_licences wheel-libraries wheel/licences

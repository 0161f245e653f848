# Runs in a Debian 11 with a compiler, whose CPython is too old: builds that of Debian 12's source into
# /opt/python, as far as pip and numpy need it.
set -eu
cd /root
apt-get source -qq --download-only --tar-only --only-source python3.11/bookworm
mkdir cpython
tar -C cpython --strip-components=1 -xf python3.11_*.orig.tar.gz
cd cpython
./configure --prefix=/opt/python --disable-test-modules CFLAGS=-O1
make -j"$(nproc)"
make install
rm -rf /root/cpython /opt/python/lib/python3.11/test /opt/python/lib/python3.11/config-* \
    /opt/python/lib/libpython*.a

# Installing what is missing, with dpkg, apt, sudo and the user's number played by scripts.
fail() { echo "$1" >&2; exit 1; }
mkdir bin
cat >bin/dpkg-query <<'END'
#!/bin/sh
for package in $PRESENT; do echo "$package installed"; done
END
printf '#!/bin/sh\necho "apt-get $*" >>calls\n[ "$FAILS" != "$1" ]\n' >bin/apt-get
printf '#!/bin/sh\necho "sudo $*" >>calls\nexec "$@"\n' >bin/sudo
printf '#!/bin/sh\necho $USER_NUMBER\n' >bin/id
chmod +x bin/*
export PATH=$PWD/bin:$PATH PRESENT= FAILS= USER_NUMBER=0
run() { : >calls; code=0; "$SOURCE/scripts/install-deps.sh" "$@" >out 2>&1 || code=$?; }

run demo
[ "$code" = 0 ] || fail "exit code $code: $(cat out)"
[ "$(cat out)" = "installing: bible-kjv bible-kjv-text" ] || fail "it says: $(cat out)"
[ "$(grep -c '^apt-get install' calls)" = 1 ] || fail "not one installation: $(cat calls)"
grep -q -- '-y .*--no-install-recommends bible-kjv bible-kjv-text$' calls || fail "$(cat calls)"
if grep -q sudo calls; then fail "root needs no sudo"; fi

# What is there is not asked for; all there: silence, and apt is left alone.
PRESENT="bible-kjv" run demo
[ "$(cat out)" = "installing: bible-kjv-text" ] || fail "it says: $(cat out)"
PRESENT="bible-kjv bible-kjv-text" run demo
[ "$code" = 0 ] && [ ! -s out ] && [ ! -s calls ] || fail "not silent: $(cat out calls)"

# Two sets are one call.
run build test
[ "$(grep -c '^apt-get install' calls)" = 1 ] || fail "$(cat calls)"
grep '^apt-get install' calls | grep libdnnl-dev | grep -q libcmocka-dev || fail "$(cat calls)"

USER_NUMBER=1000 run demo
grep -q '^sudo env .*apt-get install' calls || fail "no sudo for a user: $(cat calls)"

# Lists that cannot be fetched are no failure yet; an installation that fails is one.
FAILS=update run demo
[ "$code" = 0 ] || fail "gave up on the lists: $(cat out)"
FAILS=install run demo
[ "$code" = 1 ] && grep -q 'apt-get failed' out || fail "exit code $code: $(cat out)"
run everything
[ "$code" = 2 ] || fail "an unknown set: exit code $code"

# Without an nvcc its wheels are fetched, once, by an environment of python3's; with one they are not.
cat >bin/python3 <<'END'
#!/bin/sh
[ "$1 $2" = "-m venv" ] || exit 1
mkdir -p "$3/bin"
cat >"$3/bin/pip" <<'PIP'
#!/bin/sh
echo "pip $*" >>calls
[ "$FAILS" != pip ] || exit 1
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/nvidia/cu13/bin"
printf '#!/bin/sh\n' >"$2/nvidia/cu13/bin/nvcc"
chmod +x "$2/nvidia/cu13/bin/nvcc"
PIP
chmod +x "$3/bin/pip"
END
chmod +x bin/python3
[ -x /usr/bin/nvcc ] || [ -x /bin/nvcc ] || {
    export PATH=$PWD/bin:/usr/bin:/bin CUDA_HOME=/nowhere SIFR_CUDA_TOOLKIT=$PWD/toolkit
    PRESENT="g++ python3 python3-venv"
    FAILS=pip run cuda
    [ "$code" = 1 ] && grep -q 'install a CUDA toolkit' out || fail "exit code $code: $(cat out)"
    [ ! -e toolkit ] || fail "a toolkit that was not fetched is there"
    run cuda
    [ "$code" = 0 ] && [ -x toolkit/nvidia/cu13/bin/nvcc ] || fail "no nvcc: $(cat out)"
    grep -q '^pip install .* nvidia-cuda-nvcc==13\.0\.\* nvidia-nvvm==13\.0\.\* ' calls || fail "$(cat calls)"
    run cuda
    [ "$code" = 0 ] && [ ! -s out ] && [ ! -s calls ] || fail "fetched again: $(cat out calls)"
    rm -r toolkit
    printf '#!/bin/sh\n' >bin/nvcc
    chmod +x bin/nvcc
    run cuda
    [ ! -e toolkit ] && [ ! -s calls ] || fail "an nvcc in PATH is not taken: $(cat out calls)"
}

# A pip that takes pins with hashes and puts a file into the folder of its OPTION:
# pip_with_pins OPTION FILE
pip_with_pins() {
    cat >bin/python3 <<END
#!/bin/sh
[ "\$1 \$2" = "-m venv" ] || exit 1
mkdir -p "\$3/bin"
cp "$PWD/pip" "\$3/bin/pip"
END
    cat >pip <<END
#!/bin/sh
echo "pip \$*" >>calls
[ "\$FAILS" != pip ] || exit 1
while [ "\$1" != -r ]; do shift; done
cat "\$2" >>calls
while [ "\$1" != $1 ]; do shift; done
mkdir -p "\$2/$(dirname "$2")"
printf '#!/bin/sh\n' >"\$2/$2"
chmod +x "\$2/$2"
END
    chmod +x bin/python3 pip
}

# The source of carquet is fetched by its hash, once; one that cannot be had is one line.
pip_with_pins --dest carquet-0.7.2.tar.gz
export SIFR_CARQUET=$PWD/carquet PRESENT="liblz4-dev python3 python3-venv"
FAILS=pip run parquet
[ "$code" = 1 ] && grep -q 'the build is one without Parquet' out || fail "exit code $code: $(cat out)"
[ ! -e carquet ] && [ ! -e carquet.part ] || fail "a source that was not fetched is there"
run parquet
[ "$code" = 0 ] && [ -f carquet/carquet-0.7.2.tar.gz ] || fail "no source: $(cat out)"
grep -q 'require-hashes' calls && grep -q '^carquet==.* --hash=sha256:5d57c002' calls || fail "$(cat calls)"
hash=$(sed -n 's/^carquet==.*sha256:\([0-9a-f]*\)$/\1/p' calls)
grep -q "SIFR_CARQUET_SHA256 $hash)" "$SOURCE/cmake/parquet.cmake" || fail "two hashes are pinned"
run parquet
[ "$code" = 0 ] && [ ! -s out ] && [ ! -s calls ] || fail "fetched again: $(cat out calls)"

# nvdisasm is fetched by its hash, once, where there is an nvcc and no nvdisasm.
pip_with_pins --target nvidia/cu13/bin/nvdisasm
export SIFR_NVDISASM=$PWD/nvdisasm CUDA_HOME=/nowhere SIFR_CUDA_TOOLKIT=$PWD/toolkit
PRESENT="python3 python3-venv"
rm -f bin/nvcc
[ -x /usr/bin/nvcc ] || [ -x /bin/nvcc ] || {
    export PATH=$PWD/bin:/usr/bin:/bin
    run sass
    [ "$code" = 0 ] && [ ! -s out ] && [ ! -s calls ] || fail "without an nvcc: $(cat out calls)"
    printf '#!/bin/sh\n' >bin/nvcc
    chmod +x bin/nvcc
    FAILS=pip run sass
    [ "$code" = 1 ] && grep -q 'not the machine code' out || fail "exit code $code: $(cat out)"
    [ "$(echo nvdisasm*)" = 'nvdisasm*' ] || fail "left: $(echo nvdisasm*)"
    run sass
    [ "$code" = 0 ] && [ -x nvdisasm/nvidia/cu13/bin/nvdisasm ] || fail "no nvdisasm: $(cat out)"
    [ "$(echo nvdisasm*)" = nvdisasm ] || fail "left: $(echo nvdisasm*)"
    grep -q 'require-hashes' calls && grep -q '^nvidia-cuda-nvdisasm==.* --hash=sha256:5a7acf77' calls ||
        fail "$(cat calls)"
    run sass
    [ "$code" = 0 ] && [ ! -s out ] && [ ! -s calls ] || fail "fetched again: $(cat out calls)"
    rm -r nvdisasm
    cp bin/nvcc bin/nvdisasm
    run sass
    [ ! -e nvdisasm ] && [ ! -s calls ] || fail "an nvdisasm in PATH is not taken: $(cat out calls)"
}

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

/* A program outside of sifr's tree: test_install.sh builds it against the installed library. */
#include <sifr/status.h>
#include <sifr/version.h>
#include <stdio.h>

int main(void) {
    printf("%s\n", sifr_version());
    return SIFR_OK;
}

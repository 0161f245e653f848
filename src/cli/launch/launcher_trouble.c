#include "cli/launch/launcher_trouble.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* What a launcher tells its ranks: a launcher that finds it takes itself for a rank. */
static const char *left_over(void) {
    static const char *const beginnings[] = {"OMPI_MCA_ess", "OMPI_COMM_WORLD_", "PMIX_", "PMI_"};
    for (char **i = environ; i && *i; i++)
        for (size_t j = 0; j < sizeof beginnings / sizeof *beginnings; j++)
            if (strncmp(*i, beginnings[j], strlen(beginnings[j])) == 0) return *i;
    return NULL;
}

static bool has_loopback(void) {
    struct ifaddrs *list;
    bool found = false;
    if (getifaddrs(&list) != 0) return true; /* not known */
    for (struct ifaddrs *i = list; i; i = i->ifa_next)
        found = found || ((i->ifa_flags & IFF_LOOPBACK) && (i->ifa_flags & IFF_UP) && i->ifa_addr);
    freeifaddrs(list);
    return found;
}

void cli_launcher_trouble(char *out, size_t capacity) {
    const char *folder = getenv("TMPDIR"), *variable = left_over();
    char host[256] = "";
    size_t longest = 63; /* Open MPI's room for a name ends the process behind that */
    gethostname(host, sizeof host - 1);
    if (!folder || !*folder) folder = "/tmp";
    out[0] = '\0';
    if (access(folder, W_OK | X_OK) != 0)
        snprintf(out, capacity, "; %s cannot be written: set TMPDIR to a folder that can", folder);
    else if (!has_loopback())
        snprintf(out, capacity, "; no loopback interface is up: `ip link set lo up`");
    else if (variable)
        snprintf(out, capacity, "; %.*s is set, as in a rank of another launcher: unset it",
                 (int)strcspn(variable, "="), variable);
    else if (strlen(host) > longest)
        snprintf(out, capacity, "; this host's name has %zu characters: give it one of at most %zu",
                 strlen(host), longest);
}

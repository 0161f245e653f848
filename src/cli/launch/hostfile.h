/* Hosts to start ranks on, in the words of DeepSpeed's launcher: a hostfile with lines `HOST
 * slots=N`, and the filters of --include and --exclude, "HOST@HOST:0,2". */
#ifndef CLI_HOSTFILE_H
#define CLI_HOSTFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

enum { CLI_SLOT_LIMIT = 4096 }; /* of one host, and of all together */

typedef struct cli_host {
    char *name;
    int32_t slots; /* as the file has them; slot numbers are 0 to slots - 1 */
    int32_t used;  /* slots that are left after filtering */
    bool *taken;   /* of each slot: is it left? */
} cli_host;

typedef struct cli_hosts {
    cli_host *hosts; /* in the file's order */
    size_t count;
} cli_hosts;

/* SIFR_USAGE with the line's number where a line is none of `HOST slots=N`, a comment or blank. */
sifr_status cli_hosts_read(const char *path, cli_hosts *out, sifr_error *error) SIFR_MUST_CHECK;

/* Leaves the slots that `include` names (NULL: all) and `exclude` (NULL: none) does not; one of the
 * two at most. Hosts without a slot stay in the list with used == 0. */
sifr_status cli_hosts_filter(cli_hosts *hosts, const char *include, const char *exclude,
                             sifr_error *error) SIFR_MUST_CHECK;

int32_t cli_hosts_slots(const cli_hosts *hosts); /* left in all */

/* Leaves the first `ranks` of the slots that are left; there must be as many. */
void cli_hosts_keep(cli_hosts *hosts, int32_t ranks);

/* "a:2,b:1" of what is left, as mpirun's host options take it. Free with free(). */
sifr_status cli_hosts_list(const cli_hosts *hosts, char **out, sifr_error *error) SIFR_MUST_CHECK;

/* Are all that are left slots of this machine ("localhost", or the name that it calls itself)? */
bool cli_hosts_are_here(const cli_hosts *hosts);

void cli_hosts_free(cli_hosts *hosts); /* harmless on a zeroed one */

#endif

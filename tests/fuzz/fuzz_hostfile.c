/* Hostfiles and their filters on any bytes: no crash, one line of message, and what is accepted are
 * names that a launcher's list can hold, once each, with slots within the limit. Input: the
 * hostfile, and behind a byte 0 the filter; behind two, the filter excludes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/launch/hostfile.h"
#include "support/fuzz_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth) {
    if (!truth) abort();
}

static void check_said(sifr_status status, const sifr_error *error) {
    must(status == SIFR_USAGE && error->message[0] && !strpbrk(error->message, "\n\r"));
}

static const char *write_input(const uint8_t *data, size_t size) {
    static char path[256];
    snprintf(path, sizeof path, "%s/hostfile", fuzz_folder());
    FILE *file = fopen(path, "wb");
    must(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
    return path;
}

static void check_hosts(const cli_hosts *hosts) {
    int64_t left = 0;
    for (size_t i = 0; i < hosts->count; i++) {
        const cli_host *host = &hosts->hosts[i];
        int32_t used = 0;
        must(host->name[0] && host->name[0] != '-' && !strpbrk(host->name, ",:@# \t\n"));
        must(host->slots >= 1 && host->slots <= CLI_SLOT_LIMIT);
        for (int32_t s = 0; s < host->slots; s++) used += host->taken[s];
        must(used == host->used);
        for (size_t j = 0; j < i; j++) must(strcmp(host->name, hosts->hosts[j].name) != 0);
        left += used;
    }
    must(left >= 1 && left <= CLI_SLOT_LIMIT && left == cli_hosts_slots(hosts));
}

/* "a:2,b:1" has as many hosts as have slots left. */
static void check_list(const cli_hosts *hosts) {
    char *list;
    size_t hosts_left = 0, listed = 1;
    must(cli_hosts_list(hosts, &list, NULL) == SIFR_OK);
    for (size_t i = 0; i < hosts->count; i++) hosts_left += hosts->hosts[i].used > 0;
    for (const char *c = list; *c; c++) listed += *c == ',';
    must(listed == hosts_left);
    free(list);
    (void)cli_hosts_are_here(hosts);
}

static sifr_status filter(cli_hosts *hosts, const uint8_t *at, size_t size, sifr_error *error) {
    bool excludes = size > 0 && at[0] == 0;
    char *text = malloc(size + 1);
    must(text != NULL);
    memcpy(text, at, size);
    text[size] = '\0';
    sifr_status status =
        cli_hosts_filter(hosts, excludes ? NULL : text, excludes ? text + 1 : NULL, error);
    free(text);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    size_t length = end ? (size_t)(end - data) : size;
    cli_hosts hosts;
    sifr_error error = {0};
    /* A file may hold zeros too: every other input keeps them. */
    bool filtered = end && size % 2;
    sifr_status status =
        cli_hosts_read(write_input(data, filtered ? length : size), &hosts, &error);
    if (status != SIFR_OK) {
        check_said(status, &error);
        return 0;
    }
    check_hosts(&hosts);
    if (filtered) status = filter(&hosts, end + 1, size - length - 1, &error);
    if (status == SIFR_OK) {
        check_hosts(&hosts);
        check_list(&hosts);
        int32_t ranks = cli_hosts_slots(&hosts) / 2 + 1;
        cli_hosts_keep(&hosts, ranks);
        must(cli_hosts_slots(&hosts) == ranks);
        check_list(&hosts);
    } else {
        check_said(status, &error);
    }
    cli_hosts_free(&hosts);
    return 0;
}

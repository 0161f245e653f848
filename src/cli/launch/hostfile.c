#include "cli/launch/hostfile.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/heap.h"

enum { FILE_LIMIT = 1 << 20 };

static cli_host *find(const cli_hosts *hosts, const char *name, size_t length) {
    for (size_t i = 0; i < hosts->count; i++) {
        const char *other = hosts->hosts[i].name;
        if (strlen(other) == length && memcmp(other, name, length) == 0) return &hosts->hosts[i];
    }
    return NULL;
}

/* Digits up to `end`, or -1; more than any limit here counts as too many, never wraps. */
static int32_t number(const char *text, const char *end) {
    int32_t value = 0;
    if (text == end) return -1;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9') return -1;
        value = value > CLI_SLOT_LIMIT ? value : 10 * value + (*text - '0');
    }
    return value;
}

/* Names go to a launcher in a list: nothing that has a meaning there. */
static bool is_name(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && !memchr("._-", text[i], 3)) return false;
    return length > 0 && text[0] != '-';
}

static sifr_status add(cli_hosts *hosts, size_t *capacity, const char *name, size_t length,
                       int32_t slots, sifr_error *error) {
    BASE_TRY(base_grow(&hosts->hosts, capacity, hosts->count + 1, sizeof *hosts->hosts, error));
    cli_host *host = &hosts->hosts[hosts->count];
    *host = (cli_host){.slots = slots, .used = slots};
    BASE_TRY(base_copy_text(name, length, &host->name, error));
    hosts->count++;
    BASE_TRY(base_alloc((size_t)slots, sizeof *host->taken, &host->taken, error));
    memset(host->taken, true, (size_t)slots);
    return SIFR_OK;
}

static sifr_status read_line(cli_hosts *hosts, size_t *capacity, const char *path, int line,
                             const char *text, const char *end, sifr_error *error) {
    static const char key[] = "slots=";
    const char *comment = memchr(text, '#', (size_t)(end - text));
    if (comment) end = comment;
    while (text < end && isspace((unsigned char)*text)) text++;
    while (end > text && isspace((unsigned char)end[-1])) end--;
    if (text == end) return SIFR_OK;
    const char *name_end = text;
    while (name_end < end && !isspace((unsigned char)*name_end)) name_end++;
    size_t length = (size_t)(name_end - text);
    const char *word = name_end;
    while (word < end && isspace((unsigned char)*word)) word++;
    int32_t slots = -1;
    if ((size_t)(end - word) > strlen(key) && memcmp(word, key, strlen(key)) == 0)
        slots = number(word + strlen(key), end);
    if (slots < 0 || !is_name(text, length))
        return base_fail(error, SIFR_USAGE, "%s: line %d: '%.*s' is not HOST slots=N", path, line,
                         (int)(end - text > 80 ? 80 : end - text), text);
    if (slots < 1 || slots > CLI_SLOT_LIMIT)
        return base_fail(error, SIFR_USAGE, "%s: line %d: slots must be 1 to %d", path, line,
                         (int)CLI_SLOT_LIMIT);
    if (find(hosts, text, length))
        return base_fail(error, SIFR_USAGE,
                         "%s: line %d: the host %.*s is there twice: give it one line", path, line,
                         (int)length, text);
    return add(hosts, capacity, text, length, slots, error);
}

sifr_status cli_hosts_read(const char *path, cli_hosts *out, sifr_error *error) {
    char *data;
    size_t size, capacity = 0;
    int line = 1;
    sifr_status status = SIFR_OK;
    *out = (cli_hosts){0};
    BASE_TRY(base_read_file(path, FILE_LIMIT, &data, &size, error));
    for (const char *at = data, *stop = data + size; status == SIFR_OK && at < stop; line++) {
        const char *end = memchr(at, '\n', (size_t)(stop - at));
        if (!end) end = stop;
        status = read_line(out, &capacity, path, line, at, end, error);
        at = end + 1;
    }
    free(data);
    if (status == SIFR_OK && out->count == 0)
        status = base_fail(error, SIFR_USAGE, "%s: no host in it: give lines HOST slots=N", path);
    if (status == SIFR_OK && cli_hosts_slots(out) > CLI_SLOT_LIMIT)
        status = base_fail(error, SIFR_USAGE, "%s: more than %d slots in all", path,
                           (int)CLI_SLOT_LIMIT);
    if (status != SIFR_OK) cli_hosts_free(out);
    return status;
}

/* The slots that a term "HOST" or "HOST:0,2" names become `left`. */
static sifr_status apply_term(cli_hosts *hosts, const char *option, const char *term,
                              const char *end, bool left, sifr_error *error) {
    const char *colon = memchr(term, ':', (size_t)(end - term));
    const char *name_end = colon ? colon : end;
    cli_host *host = find(hosts, term, (size_t)(name_end - term));
    if (!host)
        return base_fail(error, SIFR_USAGE, "%s: '%.*s' is no host of the hostfile", option,
                         (int)(name_end - term), term);
    if (!colon) memset(host->taken, left, (size_t)host->slots);
    for (const char *at = colon ? colon + 1 : NULL; at;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        int32_t slot = number(at, stop);
        if (slot < 0)
            return base_fail(error, SIFR_USAGE, "%s: '%.*s': '%.*s' is no slot number", option,
                             (int)(end - term), term, (int)(stop - at), at);
        if (slot >= host->slots)
            return base_fail(error, SIFR_USAGE, "%s: %s has no slot %d: it has slots 0 to %d",
                             option, host->name, (int)slot, (int)host->slots - 1);
        host->taken[slot] = left;
        at = comma ? comma + 1 : NULL;
    }
    return SIFR_OK;
}

sifr_status cli_hosts_filter(cli_hosts *hosts, const char *include, const char *exclude,
                             sifr_error *error) {
    const char *option = include ? "--include" : "--exclude", *text = include ? include : exclude;
    if (include && exclude)
        return base_fail(error, SIFR_USAGE, "--include and --exclude: give one of them, not both");
    if (!text) return SIFR_OK;
    for (size_t i = 0; i < hosts->count; i++)
        memset(hosts->hosts[i].taken, !include, (size_t)hosts->hosts[i].slots);
    for (const char *at = text; at;) {
        const char *next = strchr(at, '@'), *end = next ? next : at + strlen(at);
        BASE_TRY(apply_term(hosts, option, at, end, include != NULL, error));
        at = next ? next + 1 : NULL;
    }
    for (size_t i = 0; i < hosts->count; i++) {
        cli_host *host = &hosts->hosts[i];
        host->used = 0;
        for (int32_t slot = 0; slot < host->slots; slot++) host->used += host->taken[slot];
    }
    if (cli_hosts_slots(hosts) == 0)
        return base_fail(error, SIFR_USAGE, "%s: no slot is left of the hostfile's", option);
    return SIFR_OK;
}

int32_t cli_hosts_slots(const cli_hosts *hosts) {
    int64_t slots = 0;
    for (size_t i = 0; i < hosts->count; i++) slots += hosts->hosts[i].used;
    return slots > CLI_SLOT_LIMIT ? CLI_SLOT_LIMIT + 1 : (int32_t)slots;
}

void cli_hosts_keep(cli_hosts *hosts, int32_t ranks) {
    for (size_t i = 0; i < hosts->count; i++) {
        cli_host *host = &hosts->hosts[i];
        if (host->used > ranks) host->used = ranks;
        ranks -= host->used;
    }
}

sifr_status cli_hosts_list(const cli_hosts *hosts, char **out, sifr_error *error) {
    size_t capacity = 1, used = 0;
    for (size_t i = 0; i < hosts->count; i++) capacity += strlen(hosts->hosts[i].name) + 8;
    BASE_TRY(base_alloc(capacity, 1, out, error));
    for (size_t i = 0; i < hosts->count; i++) {
        const cli_host *host = &hosts->hosts[i];
        if (!host->used) continue;
        used += (size_t)snprintf(*out + used, capacity - used, "%s%s:%d", used ? "," : "",
                                 host->name, (int)host->used);
    }
    return SIFR_OK;
}

static bool is_here(const char *name, const char *own) {
    size_t length = strcspn(own, ".");
    if (strcmp(name, "localhost") == 0 || strcmp(name, "127.0.0.1") == 0) return true;
    if (strcmp(name, own) == 0) return true;
    return strlen(name) == length && memcmp(name, own, length) == 0;
}

bool cli_hosts_are_here(const cli_hosts *hosts) {
    char own[256] = "";
    if (gethostname(own, sizeof own - 1) != 0) own[0] = '\0';
    for (size_t i = 0; i < hosts->count; i++)
        if (hosts->hosts[i].used && !is_here(hosts->hosts[i].name, own)) return false;
    return true;
}

void cli_hosts_free(cli_hosts *hosts) {
    for (size_t i = 0; i < hosts->count; i++) {
        free(hosts->hosts[i].name);
        free(hosts->hosts[i].taken);
    }
    free(hosts->hosts);
    *hosts = (cli_hosts){0};
}

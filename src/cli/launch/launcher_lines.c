#include "cli/launch/launcher_lines.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { RULE = 20 }; /* a line of so many dashes, and of nothing else, is an edge of a box */

static void write_all(cli_launcher_lines *lines, const char *text, size_t length) {
    while (length > 0) {
        ssize_t done = write(lines->out, text, length);
        if (done < 0 && errno != EINTR) { /* a terminal that is gone, a full disk */
            lines->lost = true;
            return;
        }
        if (done < 0) continue;
        text += done;
        length -= (size_t)done;
    }
}

static bool is_rule(const char *line, size_t length) {
    size_t dashes = 0;
    while (dashes < length && line[dashes] == '-') dashes++;
    return dashes >= RULE && dashes == length;
}

/* Lines outside boxes: "mpirun: Forwarding signal 10 to job", "[host:1234] 1 more process has sent
 * ..."; MPICH's boxes have an '=' before each line, and three lines below. */
static bool is_launchers(const char *line, size_t length) {
    static const char *const beginnings[] = {"mpirun",
                                             "mpiexec",
                                             "prterun",
                                             "orterun",
                                             "[",
                                             "=",
                                             "YOUR APPLICATION TERMINATED WITH",
                                             "This typically refers to a problem",
                                             "Please see the FAQ page"};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
        size_t size = strlen(beginnings[i]);
        if (length >= size && memcmp(line, beginnings[i], size) == 0) return true;
    }
    return length == 0;
}

static void pass_line(cli_launcher_lines *lines, size_t length) {
    size_t bare = length;
    while (bare > 0 && (lines->line[bare - 1] == '\n' || lines->line[bare - 1] == '\r')) bare--;
    bool rule = is_rule(lines->line, bare);
    bool drop = rule || lines->box || is_launchers(lines->line, bare);
    lines->box ^= rule;
    if (!drop) write_all(lines, lines->line, length);
}

static void add(cli_launcher_lines *lines, const char *text, size_t length) {
    bool ended = text[length - 1] == '\n';
    if (lines->middle || length > sizeof lines->line - lines->used) {
        write_all(lines, lines->line, lines->used);
        write_all(lines, text, length);
        lines->used = 0;
        lines->middle = !ended;
        return;
    }
    memcpy(lines->line + lines->used, text, length);
    lines->used += length;
    if (!ended) return;
    pass_line(lines, lines->used);
    lines->used = 0;
}

/* The beginning of a line: "sifr NAME: why", and no warning; "stopped by", after what clears the
 * live line. */
static void look_at_head(cli_launcher_lines *lines) {
    static const char clear[] = "\033[K", stopped[] = "stopped by ";
    lines->head[lines->place] = '\0';
    const char *head = lines->head, *colon = strstr(head, ": ");
    if (strncmp(head, "sifr ", 5) == 0 && colon && strncmp(colon, ": warning", 9) != 0)
        lines->reason = true;
    if (strncmp(head, clear, sizeof clear - 1) == 0) head += sizeof clear - 1;
    if (strncmp(head, stopped, sizeof stopped - 1) == 0) lines->stopped = true;
}

/* The text may begin and end in the middle of a line. A live line begins anew at each '\r'. */
static void look_at_lines(cli_launcher_lines *lines, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\n' || text[i] == '\r') {
            look_at_head(lines);
            lines->place = 0;
        } else if (lines->place < sizeof lines->head - 1) {
            lines->head[lines->place++] = text[i];
            if (lines->place == sizeof lines->head - 1) look_at_head(lines);
        }
    }
}

void cli_launcher_lines_pass(cli_launcher_lines *lines, const char *text, size_t length) {
    if (length == 0) return;
    look_at_lines(lines, text, length);
    if (!lines->asked) {
        write_all(lines, text, length);
        lines->middle = text[length - 1] != '\n';
        return;
    }
    while (length > 0) {
        const char *end = memchr(text, '\n', length);
        size_t part = end ? (size_t)(end - text) + 1 : length;
        add(lines, text, part);
        text += part;
        length -= part;
    }
}

void cli_launcher_lines_end(cli_launcher_lines *lines) {
    if (lines->used) pass_line(lines, lines->used);
    lines->used = 0;
}

#include "cli/notes.h"

#include <stdio.h>

#include "cli/keep_notice.h"

static void keep_note(void *user, sifr_log_level level, const char *line) {
    cli_notes *notes = user;
    size_t capacity = sizeof notes->text - notes->used;
    const char *kind = level == SIFR_LOG_WARNING ? "warning: " : "";
    if (level == SIFR_LOG_DEBUG) return;
    cli_keep_notice(notes->warnings, level, line);
    if (level == SIFR_LOG_WARNING && !notes->keeps_warnings) {
        fprintf(stderr, "sifr %s: %s%s\n", notes->name, kind, line);
        return;
    }
    int more =
        snprintf(notes->text + notes->used, capacity, "sifr %s: %s%s\n", notes->name, kind, line);
    if (more > 0 && (size_t)more < capacity)
        notes->used += (size_t)more;
    else
        notes->text[notes->used] = '\0';
}

sifr_log cli_notes_log(cli_notes *notes) {
    return (sifr_log){.write = keep_note, .user = notes};
}

void cli_notes_show(cli_notes *notes) {
    fflush(stdout);
    fwrite(notes->text, 1, notes->used, stderr);
    notes->used = 0;
}

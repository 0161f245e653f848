#include "cli/notes.h"

#include <stdio.h>

static void keep_note(void *user, sifr_log_level level, const char *line) {
    cli_notes *notes = user;
    size_t room = sizeof notes->text - notes->used;
    if (level == SIFR_LOG_DEBUG) return;
    if (level == SIFR_LOG_WARNING) {
        fprintf(stderr, "sifr %s: warning: %s\n", notes->name, line);
        return;
    }
    int more = snprintf(notes->text + notes->used, room, "sifr %s: %s\n", notes->name, line);
    if (more > 0 && (size_t)more < room)
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

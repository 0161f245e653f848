#include "cli/terminal_kind.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool cli_shows_utf8(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);
        if (value && *value) return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

bool cli_is_dumb(void) {
    const char *kind = getenv("TERM");
    return kind && strcmp(kind, "dumb") == 0;
}

bool cli_draws(FILE *stream) {
    const char *kind = getenv("TERM");
    return isatty(fileno(stream)) && kind && *kind && !cli_is_dumb();
}

bool cli_wants_styles(void) {
    const char *never = getenv("NO_COLOR");
    return !never || !*never;
}

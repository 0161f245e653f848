#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/columns.h"
#include "cli/quickstart/quickstart.h"
#include "cli/terminal_kind.h"

const char *quickstart_shown(const char *text, char out[QUICKSTART_SHOWN]) {
    return base_show_text(text, cli_shows_utf8(), out, QUICKSTART_SHOWN);
}

const char *quickstart_keep(quickstart_answers *answers, const char *text, size_t length,
                            const char *ending, sifr_error *error) {
    size_t more = strlen(ending) + 1;
    quickstart_kept *kept = malloc(sizeof *kept + length + more);
    if (!kept) {
        base_set_error(error, SIFR_NO_MEMORY, "out of memory");
        return NULL;
    }
    memcpy(kept->text, text, length);
    memcpy(kept->text + length, ending, more);
    kept->next = answers->kept;
    answers->kept = kept;
    return kept->text;
}

void quickstart_free(quickstart_answers *answers) {
    cli_list_free(&answers->data);
    cli_list_free(&answers->fields);
    cli_list_free(&answers->ignored);
    while (answers->kept) {
        quickstart_kept *next = answers->kept->next;
        free(answers->kept);
        answers->kept = next;
    }
}

static sifr_status ask_once(quickstart_answers *answers, const char *question, const char *fallback,
                            const char **answer, sifr_error *error) {
    char *line = NULL, shown[QUICKSTART_SHOWN];
    size_t capacity = 0;
    if (fallback)
        printf("%s [%s]: ", question, quickstart_shown(fallback, shown));
    else
        printf("%s: ", question);
    fflush(stdout);
    ssize_t length = getline(&line, &capacity, stdin);
    if (length < 0) {
        free(line);
        putchar('\n');
        return base_fail(error, SIFR_USAGE,
                         "the answers ended before the questions; nothing was written");
    }
    while (length > 0 && strchr(" \t\r\n", line[length - 1])) length--;
    *answer = length ? quickstart_keep(answers, line, (size_t)length, "", error) : fallback;
    free(line);
    return length && !*answer ? SIFR_NO_MEMORY : SIFR_OK;
}

sifr_status quickstart_ask(quickstart_answers *answers, const char *question, const char *fallback,
                           const char **answer, sifr_error *error) {
    do {
        BASE_TRY(ask_once(answers, question, fallback, answer, error));
        if (!*answer) puts("This has no default: give one, or Ctrl-C to end.");
    } while (!*answer);
    return SIFR_OK;
}

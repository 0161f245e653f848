/* Makes a checkpoint one of an older version: older_manifest CHECKPOINT FIELD... takes the fields,
 * as "agree.seed" or "notes.machine", out of its manifest. */
#include <stdio.h>
#include <string.h>

#include "checkpoint/manifest.h"

static int take_out(json_t *object, const char *field) {
    char name[64];
    size_t length = strcspn(field, ".");
    if (length >= sizeof name) return -1;
    memcpy(name, field, length);
    name[length] = 0;
    return field[length] ? take_out(json_object_get(object, name), field + length + 1)
                         : json_object_del(object, name);
}

int main(int count, char **arguments) {
    checkpoint_opened opened;
    sifr_error error = {0};
    if (count < 3) return 2;
    int code = checkpoint_open(arguments[1], &opened, &error) != SIFR_OK;
    for (int i = 2; i < count && !code; i++) {
        code = take_out(opened.json, arguments[i]) != 0;
        if (code) snprintf(error.message, sizeof error.message, "no field %s", arguments[i]);
    }
    if (!code) code = checkpoint_write_manifest(opened.json, arguments[1], &error) != SIFR_OK;
    if (code) fprintf(stderr, "%s: %s\n", arguments[1], error.message);
    checkpoint_close(&opened);
    return code;
}

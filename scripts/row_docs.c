/* Prints docs/rows.md from the table of forms that rows are read by: `make docs`. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "data/records/row_forms.h"

static const char *const intro =
    "# Forms of rows\n"
    "\n"
    "<!-- Made by `make docs` from src/data/records/row_forms.c. Edit that table, not this "
    "page. "
    "-->\n"
    "\n"
    "A file of rows to fine-tune on is of the first form below whose fields its first row has, "
    "where\n"
    "`null` counts as absent. The run says the type and, where the form has another name, the "
    "form and\n"
    "its fields. `--data-type` takes the first form of a type. `--data-fields prompt=body` gives a "
    "field\n"
    "the name that it has here. `sifr data inspect` shows the text.\n"
    "\n"
    "## How the fields are put together\n"
    "| type | text |\n"
    "|---|---|\n"
    "| `messages` | the messages by the model's chat template; a system field is the first turn, "
    "unless the messages begin with one; an answer beside them is the assistant's |\n"
    "| `sharegpt` | the same with ShareGPT's turns, with texts that the user and the assistant say "
    "in turn, or with pairs of both |\n"
    "| `alpaca` | by the chat template: the system's turn, earlier turns (`history`), the user's "
    "turn (the prompt and, in a line below it, what it is about), the assistant's answer. Without "
    "a "
    "template Stanford Alpaca's text |\n"
    "| `prompt_completion` | two texts, end to end; or two lists of messages by the chat template "
    "|\n"
    "| `preference` | a prompt with a chosen and a rejected answer, as pairs of `alpaca` or of "
    "`prompt_completion`; without a prompt, it is what both answers begin with; beside lists of "
    "messages a prompt that is a text must be written out of what those say |\n"
    "| `text` | the text |\n"
    "\n"
    "## Fields that are not read\n"
    "Fields that the form does not read are named, in one line a file. The last column has those "
    "that\n"
    "would change the text if they were read. Such a field ends the run where it holds text, "
    "unless "
    "the\n"
    "text equals a part of what is read, or has all of that in it. `null`, an empty text and a "
    "blank\n"
    "one are no text. Name the field (`--data-fields`), or leave it out: `--ignore-fields NAME`, "
    "also\n"
    "`\"sifr\": {\"ignore_fields\": [NAME]}` and a key of a source. Fields that are left out are "
    "taken\n"
    "out of each row before its form is found. Members of messages that neither sifr nor the chat\n"
    "template reads are named in a line of their own. A field whose name `--data-fields` gives to "
    "another\n"
    "is not read either.\n"
    "\n"
    "`kto_tag` and `label` mark an answer as good or bad, where they are true or false, 1 or 0. A\n"
    "file with one that is marked as bad is refused, since it would be learned as a good one. A "
    "file\n"
    "with any other `label`, such as 3, has labels of classes, and so have rows of text: they are "
    "not\n"
    "read.\n"
    "\n"
    "## The forms\n"
    "| form | type | fields | whose | not lost |\n"
    "|---|---|---|---|---|\n";

/* "`output` or `response`". */
static void print_names(const char *const *names) {
    for (size_t i = 0; i < DATA_FIELD_NAMES && names[i]; i++)
        printf("%s`%s`", i ? " or " : "", names[i]);
}

static const char *kind_words(data_field_kind kind) {
    static const char *const words[] = {
        [DATA_FIELD_TURNS] = " (turns with `from` and `value`)",
        [DATA_FIELD_OTHERS] = " (messages with `role` and `content`)",
        [DATA_FIELD_TEXTS] = " (a list of texts)",
        [DATA_FIELD_PAIRS] = " (a list of `input` and `output`)",
        [DATA_FIELD_TEXT] = " (a text)",
        [DATA_FIELD_LIST] = " (messages)",
        [DATA_FIELD_WHOLE] = "",
        [DATA_FIELD_ONE] = " (a text, a turn, or a list of the assistant's)",
        [DATA_FIELD_CALLS] = " (a list of calls)",
    };
    return kind == DATA_FIELD_ANY ? "" : words[kind];
}

static void print_fields(const data_form *form, bool optional) {
    const char *before = optional ? "; at will " : "";
    for (int part = 0; part < DATA_PARTS; part++) {
        const data_field *field = &form->fields[part];
        if (!field->names[0] || field->optional != optional) continue;
        printf("%s", before);
        print_names(field->names);
        printf("%s", kind_words(field->kind));
        before = ", ";
    }
}

int main(void) {
    const data_form *form;
    fputs(intro, stdout);
    for (size_t i = 0; (form = data_form_at(i)) != NULL; i++) {
        printf("| `%s` | `%s` | ", form->name, data_row_type_name(form->type));
        print_fields(form, false);
        print_fields(form, true);
        if (form->refused) printf(". Refused: %s", form->refused);
        printf(" | %s | ", form->source);
        for (size_t k = 0; k < DATA_FORM_UNREAD && form->unread[k]; k++)
            printf("%s`%s`", k ? ", " : "", form->unread[k]);
        puts(" |");
    }
    return 0;
}

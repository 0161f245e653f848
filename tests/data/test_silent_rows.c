/* What rows hold and nothing reads is named or refused, wherever in the row it stands: marks of bad
 * answers in any spelling, members of messages, prompts beside whole answers, variables of the
 * template, and names that no row has. */
#include "data/finetune_case.h"

static void refuse(const char *name, const char *rows, const char *message) {
    data_chat_source source = source_of(scratch_text(name, rows));
    data_chat_options options = options_for(&source, 1);
    data_chat *chat;
    sifr_error error = {0};
    if (data_chat_open(&options, &chat, &error) != SIFR_FAILED) fail_msg("%s is read", rows);
    assert_message(&error, message);
}

/* Trains, leaves out what is `ignored` (NULL: nothing), and says the line; NULL: none of fields,
 * members or variables. */
static void say(const char *name, const char *rows, json_t *ignored, const char *line) {
    data_chat_source source = source_of(scratch_text(name, rows));
    data_chat_options options = options_for(&source, 1);
    source.ignored[1] = ignored;
    data_chat_close(open_rows(&options));
    json_decref(ignored);
    if (line ? !strstr(said, line) : strstr(said, "not read") || strstr(said, "no row"))
        fail_msg("%s: says %s, not %s", rows, said, line ? line : "nothing");
}

/* A mark is true or false, or 1 or 0, in JSON as in CSV. */
static void reads_marks(void **state) {
    (void)state;
    static const char *const bad[] = {"0", "0.0", "false", "\"false\"", "\"0\"", "\"FALSE\""};
    static const char *const good[] = {"1", "true", "\"True\"", "1.0"};
    char rows[128];
    set_template(plain_template);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(rows, sizeof rows, "{\"prompt\": \"a\", \"completion\": \"b\", \"label\": %s}\n",
                 bad[i]);
        refuse("m.jsonl", rows, "'label' is false or 0 in 1 of 1 rows: an answer that is marked");
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(rows, sizeof rows, "{\"instruction\": \"a\", \"output\": \"b\", \"kto_tag\": %s}",
                 good[i]);
        say("m.jsonl", rows, NULL, NULL);
    }
    refuse("m.csv", "prompt,completion,label\na,b,1\nc,d,0\n",
           "'label' is false or 0 in 1 of 2 rows");
    say("m.csv", "prompt,completion,label\na,b,3\nc,d,4\n", NULL, "field not read: label");
    say("m.csv", "prompt,completion,label\na,b,yes\nc,d,no\n", NULL, "field not read: label");
}

/* Rows of every form may be marked; pairs are by their names, and a text's label is a class. */
static void marks_forms(void **state) {
    (void)state;
    static const char *const forms[] = {
        "\"INSTRUCTION\": \"a\", \"RESPONSE\": \"b\"",
        "\"question\": \"a\", \"context\": \"c\", \"answers\": {\"text\": [\"b\"]}",
        ("\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
         "\"content\": \"b\"}]")};
    static const char *const bad[] = {"\"label\": false", "\"label\": 0", "\"kto_tag\": \"False\""};
    const data_form *form;
    char rows[256];
    set_template(plain_template);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
            snprintf(rows, sizeof rows, "{%s, %s}", forms[i], bad[k]);
            refuse("f.jsonl", rows, "is false or 0 in 1 of 1 rows");
        }
        snprintf(rows, sizeof rows, "{%s, \"label\": true}", forms[i]);
        say("f.jsonl", rows, NULL, NULL);
        snprintf(rows, sizeof rows, "{%s, \"label\": false}", forms[i]);
        say("f.jsonl", rows, json_pack("[s]", "label"), NULL);
    }
    say("f.jsonl", "{\"text\": \"p\", \"label\": 0}", NULL, "field not read: label");
    refuse("f.jsonl", "{\"text\": \"p\", \"kto_tag\": false}", "is false or 0 in 1 of 1 rows");
    for (size_t i = 0; (form = data_form_at(i)) != NULL; i++)
        if (form->type != DATA_ROW_PREFERENCE && form->type != DATA_ROW_TEXT && !form->refused &&
            !form->fields[DATA_PART_MARK].names[1])
            fail_msg("the form %s has no mark", form->name);
}

/* A label is of a class in all rows of a file where it is so in one. */
static void tells_classes(void **state) {
    (void)state;
    static const char *const classes[][2] = {
        {"0", "3"}, {"3", "0"}, {"\"0\"", "\"2\""}, {"\"FALSE\"", "\"maybe\""}, {"0", "0.5"}};
    static const char *const marks[][2] = {
        {"0", "null"}, {"\" \"", "0"}, {"false", "\"TRUE\""}, {"0", "1"}};
    static const char form[] = "{\"question\": \"a\", \"answer\": \"b\", \"label\": %s}\n"
                               "{\"question\": \"a\", \"answer\": \"b\", \"label\": %s}\n";
    char rows[256];
    set_template(plain_template);
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        snprintf(rows, sizeof rows, form, classes[i][0], classes[i][1]);
        say("c.jsonl", rows, NULL, "c.jsonl: field not read: label\n");
    }
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        snprintf(rows, sizeof rows, form, marks[i][0], marks[i][1]);
        refuse("c.jsonl", rows, "'label' is false or 0 in 1 of 2 rows");
    }
    refuse("c.jsonl",
           "{\"prompt\": \"a\", \"completion\": \"b\", \"kto_tag\": false}\n"
           "{\"prompt\": \"a\", \"completion\": \"b\", \"label\": 3}\n",
           "'kto_tag' is false or 0 in 1 of 2 rows");
}

#define USER "{\"role\": \"user\", \"content\": \"ask me\"}"
#define SAYS(more) "{\"role\": \"assistant\", \"content\": \"say\"" more "}"
#define TURNS(more) "[" USER ", " SAYS(more) "]"

/* A prompt that is a text beside whole conversations repeats what they begin with, or is lost. */
static void keeps_prompts(void **state) {
    (void)state;
    static const char *const bad[] = {"\"You are a pirate.\"", "\"ask\\nme\""};
    static const char *const good[] = {"\"ask me\"", "\" ask \"", "\"\"", "null",
                                       "\"<ask me><say>, no\""};
    char rows[512];
    set_template(plain_template);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(rows, sizeof rows,
                 "{\"prompt\": %s, \"chosen\": " TURNS("") ", \"rejected\": [" USER "]}", bad[i]);
        refuse("p.jsonl", rows, "row 1, line 1: 'prompt' is a text that the answers do not have");
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(rows, sizeof rows,
                 "{\"prompt\": %s, \"chosen\": " TURNS(
                     "") ", \"rejected\": [" USER
                         ", {\"role\": \"assistant\", \"content\": \"no\"}]}",
                 good[i]);
        say("p.jsonl", rows, NULL, NULL);
    }
    refuse("p.jsonl", "{\"prompt\": 5, \"chosen\": " TURNS("") ", \"rejected\": [" USER "]}",
           "'prompt' is a number; it must be a text or a list of messages");
}

#define SAID(who, text) "{\"role\": \"" who "\", \"content\": \"" text "\"}, "
#define TALK                                                                                       \
    SAID("system", "sys\\nof two")                                                                 \
    SAID("user", "Hi there") SAID("assistant", "yo") SAID("user", "q")

/* A prompt may be written out of the messages, whoever joined them; some other text is lost. */
static void finds_written_prompts(void **state) {
    (void)state;
    static const char *const good[] = {
        "sys\\nof two\\nHi there",
        "sys\\r\\nHi there",
        "Hi there q",
        "Hi there\\nq",
        "Human: Hi there\\n\\nAssistant: yo\\n\\nHuman: q\\n\\nAssistant:",
        "\\n\\nHuman: q\\n\\nASSISTANT: "};
    static const char *const bad[] = {"sys\\nbe kind",
                                      "Hi there and q",
                                      "Hi thereq",
                                      "Human:",
                                      "Human: Hi",
                                      "of\\nHi there",
                                      "Human: Hi there\\n\\nRobot: yo"};
    char rows[1024];
    set_template(plain_template);
    for (size_t i = 0; i < sizeof good / sizeof *good + sizeof bad / sizeof *bad; i++) {
        bool fits = i < sizeof good / sizeof *good;
        snprintf(rows, sizeof rows,
                 "{\"prompt\": \"%s\", \"chosen\": [" TALK
                 "{\"role\": \"assistant\", \"content\": \"c\"}], \"rejected\": [" TALK
                 "{\"role\": \"assistant\", \"content\": \"r\"}]}",
                 fits ? good[i] : bad[i - sizeof good / sizeof *good]);
        if (fits)
            say("w.jsonl", rows, NULL, NULL);
        else
            refuse("w.jsonl", rows, "'prompt' is a text that the answers do not have");
    }
}

/* A system field is a text, whatever it stands beside. */
static void reads_systems(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"[\"be kind\"]", "'system' is a list; it must be a string"},
        {"{\"text\": \"x\"}", "'system' is an object; it must"},
        {"5", "'system' is a number; it must be a string"}};
    static const char *const beside[] = {
        "\"messages\": " TURNS(""), "\"instruction\": \"a\", \"output\": \"b\"",
        "\"conversations\": [{\"from\": \"human\", \"value\": \"a\"}, {\"from\": \"gpt\", "
        "\"value\": "
        "\"b\"}]",
        "\"messages\": [" USER "], \"chosen\": \"a\", \"rejected\": \"b\"",
        "\"question\": \"q\", \"chosen\": \"a\", \"rejected\": \"b\""};
    char rows[512];
    set_template(plain_template);
    for (size_t b = 0; b < sizeof beside / sizeof *beside; b++)
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            snprintf(rows, sizeof rows, "{\"system\": %s, %s}", bad[i][0], beside[b]);
            refuse("s.jsonl", rows, bad[i][1]);
        }
    say("s.jsonl", "{\"system\": null, \"messages\": " TURNS("") "}", NULL, NULL);
}

/* What a message says of being learned, it says alike in all flags. */
static void compares_flags(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"\"train\": true, \"training\": false",
         "has 'train' true and 'training' false; leave one"},
        {"\"training\": false, \"loss\": 1", "has 'training' false and 'loss' true; leave one out"},
        {"\"train\": true, \"loss\": false", "has 'train' true and 'loss' false; leave one out"},
        {"\"train\": true, \"training\": \"x\"", "has 'training', which must be true or false"},
        {"\"weight\": 1, \"loss\": false", "has 'weight' 1 and 'loss' false; leave one out"},
        {"\"weight\": 1, \"train\": false", "has 'weight' 1 and 'train' false; leave one out"}};
    char rows[256];
    set_template(plain_template);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(rows, sizeof rows,
                 "{\"messages\": [" USER ", {\"role\": \"assistant\", \"content\": \"a\", %s}]}",
                 bad[i][0]);
        refuse("f.jsonl", rows, bad[i][1]);
    }
    say("f.jsonl",
        "{\"messages\": " TURNS(
            ", \"train\": true, \"training\": true, \"weight\": 1, \"loss\": true") "}",
        NULL, NULL);
    say("f.jsonl", "{\"messages\": " TURNS(", \"train\": null, \"training\": true") "}", NULL,
        NULL);
}

/* Members of messages that neither sifr nor the template reads are named once a file. */
static void names_members(void **state) {
    (void)state;
    static const char turns[] =
        "{\"conversations\": [{\"from\": \"human\", \"value\": \"a\", \"markdown\": null}, "
        "{\"from\": "
        "\"gpt\", \"value\": \"b\", \"reasoning_content\": \"so\", \"weight\": 1}]}\n";
    set_template(plain_template);
    say("n.jsonl",
        "{\"messages\": " TURNS(
            ", \"images\": [\"a.png\"], \"prefix\": true") "}\n"
                                                           "{\"messages\": " TURNS(
                                                               ", \"images\": [\"b.png\"], "
                                                               "\"refusal\": null, \"id\": 1") "}",
        NULL, "n.jsonl: fields of messages not read: images, prefix, id\n");
    say("n.jsonl", "{\"prompt\": [" USER "], \"completion\": [" SAYS(", \"audio\": \"x\"") "]}",
        NULL, "field of messages not read: audio\n");
    say("n.jsonl",
        "{\"chosen\": " TURNS(
            ", \"score\": 5") ", \"rejected\": [" USER
                              ", {\"role\": \"assistant\", \"content\": \"no\"}]}",
        NULL, "field of messages not read: score\n");
    say("n.csv",
        "messages\n\"[{\"\"role\"\": \"\"user\"\", \"\"content\"\": \"\"a\"\"}, {\"\"role\"\": "
        "\"\"assistant\"\", \"\"content\"\": \"\"b\"\", \"\"refusal\"\": \"\"no\"\"}]\"\n",
        NULL, "field of messages not read: refusal\n");
    say("n.jsonl", turns, NULL, "field of messages not read: reasoning_content\n");
    say("n.jsonl",
        "{\"messages\": " TURNS(", \"loss\": true, \"weight\": 1, \"thinking\": \"x\"") "}", NULL,
        NULL);
    say("n.jsonl", "{\"instruction\": \"a\", \"output\": \"[{\\\"role\\\": 1, \\\"id\\\": 2}]\"}",
        NULL, NULL);
    set_template("{% for m in messages %}{{ m.role }}{% if m['prefix'] %}+{% endif %}{{ "
                 "m.get('images') }}{{ m.content }}{% endfor %}");
    data_chat_source source = source_of(scratch_text(
        "n.jsonl", "{\"messages\": " TURNS(", \"images\": [\"a\"], \"prefix\": true") "}"));
    data_chat_options options = options_for(&source, 1);
    options.mask = DATA_ON_ALL;
    data_chat_close(open_rows(&options));
    assert_null(strstr(said, "not read"));
}

/* All variables that the template does not have, and what no row has of what is left out. */
static void names_all(void **state) {
    (void)state;
    static const char rows[] = "{\"messages\": " TURNS(
        "") ", \"chat_template_kwargs\": {\"custom\": \"\", \"think\": true}}\n"
            "{\"messages\": " TURNS(
                "") ", \"chat_template_kwargs\": {\"think\": 1, \"tools_of\": [1]}}\n";
    set_template(plain_template);
    say("v.jsonl", rows, NULL,
        "the chat template has no variables 'custom', 'think', 'tools_of' of chat_template_kwargs, "
        "which change nothing\n");
    say("v.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\", \"odd\": 1}",
        json_pack("[s, s, s]", "nosuch", "odd", "history"),
        "v.jsonl: no row has the field 'nosuch', which ignore_fields leaves out\n");
    assert_null(strstr(said, "'odd'"));
    assert_null(strstr(said, "'history'")); /* of a form; another program's list names it */
}

/* Opens a row whose fields are named otherwise; the status, with what it says in *error. */
static sifr_status name_fields(const char *row, json_t *names, json_t *ignored, sifr_error *error) {
    data_chat_source source = source_of(scratch_text("r.jsonl", row));
    data_chat_options options = options_for(&source, 1);
    data_chat *chat = NULL;
    source.fields = names, source.ignored[1] = ignored;
    said[0] = '\0';
    sifr_status status = data_chat_open(&options, &chat, error);
    data_chat_close(chat);
    json_decref(names);
    json_decref(ignored);
    return status;
}

/* A field whose name another one takes is not read: it is named. */
static void names_replaced_fields(void **state) {
    (void)state;
    static const char row[] =
        "{\"prompt\": \"ORIG\", \"q\": \"p\", \"completion\": \"c\", \"a\": \"xx\"}";
    sifr_error error = {0};
    set_template(plain_template);
    assert_int_equal(name_fields(row, json_pack("{s:s}", "prompt", "q"), NULL, &error), SIFR_OK);
    assert_non_null(strstr(said, "fields not read: a, prompt\n"));
    assert_int_equal(
        name_fields(row, json_pack("{s:s}", "prompt", "q"), json_pack("[s]", "prompt"), &error),
        SIFR_OK);
    assert_null(strstr(said, "prompt,"));
    assert_int_equal(name_fields("{\"prompt\": 5, \"q\": \"p\", \"completion\": \"c\"}",
                                 json_pack("{s:s}", "prompt", "q"), NULL, &error),
                     SIFR_OK);
    assert_non_null(strstr(said, "r.jsonl: field not read: prompt\n"));
    assert_int_equal(name_fields("{\"prompt\": \"say\", \"q\": \"say it\", \"completion\": \"c\"}",
                                 json_pack("{s:s}", "prompt", "q"), NULL, &error),
                     SIFR_OK);
    assert_non_null(strstr(said, "r.jsonl: field not read: prompt\n"));
    /* Names that change places lose nothing. */
    assert_int_equal(
        name_fields("{\"prompt\": \"c\", \"completion\": \"p\"}",
                    json_pack("{s:s, s:s}", "prompt", "completion", "completion", "prompt"), NULL,
                    &error),
        SIFR_OK);
    assert_null(strstr(said, "not read"));
}

/* What is for the chat template is not read where none writes the row: each of a file by itself. */
static void names_variables_of_texts(void **state) {
    (void)state;
    static const char kwargs[] = "\"chat_template_kwargs\": {\"think\": true}";
    static const char line[] = "v.jsonl: field not read: chat_template_kwargs\n";
    static const char *const texts[] = {"\"prompt\": \"a\", \"completion\": \"b\"",
                                        "\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"",
                                        "\"text\": \"a\""};
    char rows[512];
    set_template("{% for m in messages %}{{ m.role }}{{ think }}{{ m.content }}{% endfor %}");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        snprintf(rows, sizeof rows, "{%s}\n{%s, %s}\n{%s, %s}\n", texts[i], texts[i], kwargs,
                 texts[i], kwargs);
        say("v.jsonl", rows, NULL, line);
    }
    snprintf(rows, sizeof rows,
             "{\"prompt\": [" USER "], \"completion\": [" SAYS("") "], %s}\n{%s}\n", kwargs,
             texts[0]);
    say("v.jsonl", rows, NULL, NULL);
    snprintf(rows, sizeof rows,
             "{\"prompt\": [" USER "], \"completion\": [" SAYS("") "], %s}\n{%s, %s}\n", kwargs,
             texts[0], kwargs);
    say("v.jsonl", rows, NULL, line);
}

/* A question without an answer is of SQuAD's form, wherever in the file it stands, and a call in
 * OpenAI's older form is named. */
static void names_answers_that_lack(void **state) {
    (void)state;
    static const char none[] = "{\"question\": \"q\", \"context\": \"c\", \"answers\": {\"text\": "
                               "[], \"answer_start\": []}}\n";
    static const char one[] =
        "{\"question\": \"q\", \"context\": \"c\", \"answers\": {\"text\": [\"a\"]}}\n";
    char rows[512];
    set_template(plain_template);
    for (int first = 0; first < 2; first++) {
        snprintf(rows, sizeof rows, "%s%s", first ? none : one, first ? one : none);
        refuse(
            "q.jsonl", rows,
            "'answers.text' is an empty list, so there is nothing to learn; take the row out, or "
            "give --skip-bad-rows");
        data_chat_source source = source_of(scratch_path("q.jsonl"));
        data_chat_options options = options_for(&source, 1);
        options.skip_bad_rows = true;
        data_chat *chat = open_rows(&options);
        assert_int_equal(data_chat_count(chat)->rows, 1);
        data_chat_close(chat);
    }
    refuse(
        "q.jsonl",
        "{\"messages\": [" USER ", {\"role\": \"assistant\", \"content\": null, \"function_call\": "
        "{\"name\": \"f\", \"arguments\": \"{}\"}}]}",
        "'messages[1]' has 'function_call', OpenAI's older form, which is not read; write it as");
    refuse("q.jsonl", "{\"instruction\": \"a\", \"output\": 5}",
           "'output' is a number; it must be a string; mend the row, or give --skip-bad-rows");
}

/* The warning of a row that is skipped names no flag that is given. */
static void names_no_given_flag(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"{\"messages\": [" USER ", {\"role\": \"assistant\", \"content\": null, "
         "\"function_call\": {\"name\": \"f\"}}]}",
         "[1]' has 'function_call', OpenAI's older form, which is not read"},
        {"{\"messages\": [" USER ", {\"role\": \"assistant\", \"content\": \"\", "
         "\"reasoning_content\": \"so\"}]}",
         "message 2 of the assistant has nothing but 'reasoning_content'"},
        {"{\"instruction\": \"a\", \"output\": 5}", "'output' is a number; it must be a string\n"},
        {"{\"question\": \"q\", \"context\": \"c\", \"answers\": {\"text\": []}}",
         "'answers.text' is an empty list, so there is nothing to learn\n"},
        {"{\"instruction\": \"\\ud800\", \"output\": \"a\"}", "is no text\n"}};
    static const char *const good[] = {
        "{\"messages\": " TURNS("") "}", "{\"messages\": " TURNS("") "}",
        "{\"instruction\": \"a\", \"output\": \"b\"}",
        "{\"question\": \"q\", \"context\": \"c\", \"answers\": {\"text\": [\"a\"]}}",
        "{\"instruction\": \"a\", \"output\": \"b\"}"};
    char rows[512];
    set_template(plain_template);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(rows, sizeof rows, "%s\n%s\n", good[i], bad[i][0]);
        data_chat_source source = source_of(scratch_text("g.jsonl", rows));
        data_chat_options options = options_for(&source, 1);
        options.skip_bad_rows = true;
        data_chat_close(open_rows(&options));
        if (!strstr(said, bad[i][1]) || strstr(said, "--skip-bad-rows"))
            fail_msg("%s: says %s", bad[i][0], said);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_marks, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(marks_forms, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(tells_classes, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(keeps_prompts, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(finds_written_prompts, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(reads_systems, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(compares_flags, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(names_members, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(names_all, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(names_variables_of_texts, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(names_replaced_fields, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(names_answers_that_lack, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(names_no_given_flag, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

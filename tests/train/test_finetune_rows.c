/* Rows to fine-tune on: forms, what is learned, what is cut, left out, skipped and refused; sources
 * with weights, the order of an epoch, the split.
 * in test_asan */
#include "support/scratch.h"

#include "base/heap.h"
#include "formats/tokenizer/tokenizer.h"
#include "train/data/chat/chat_rows.h"

enum { LENGTH = 64, VOCAB = 400, EOS = 1 };

static char said[8192];

static void keep_line(void *user, sifr_log_level level, const char *line) {
    (void)user, (void)level;
    strncat(said, line, sizeof said - strlen(said) - 2);
    strcat(said, "\n");
}

static const sifr_log log_lines = {keep_line, NULL};

static void copy_golden(const char *name, const char *as) {
    char path[BASE_PATH_LENGTH];
    const char *source = getenv("SOURCE");
    sifr_error error = {0};
    snprintf(path, sizeof path, "%s/tests/golden/finetune/%s", source ? source : ".", name);
    if (base_copy_file(path, scratch_path(as), &error) != SIFR_OK) fail_msg("%s", error.message);
}

/* A folder with a tokenizer and, unless it is NULL, a template. */
static void set_template(const char *template) {
    copy_golden("byte.json", "tokenizer.json");
    scratch_text("tokenizer_config.json", "{\"bos_token\": \"<s>\", \"eos_token\": \"</s>\"}");
    if (template) scratch_text("chat_template.jinja", template);
}

static const char plain_template[] =
    "{% for m in messages %}{% if m.role == 'robot' %}{{ raise_exception('no robots') }}{% endif %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

static train_chat_options options_for(const train_chat_source *sources, size_t count) {
    return (train_chat_options){.sources = sources,
                                .count = count,
                                .tokenizer = scratch,
                                .vocab_size = VOCAB,
                                .length = LENGTH,
                                .separator = EOS,
                                .special = true,
                                .threads = 2,
                                .log = &log_lines};
}

static train_chat_source source_of(const char *path) {
    return (train_chat_source){.path = path, .weight = 1};
}

static train_chat *open_rows(const train_chat_options *options) {
    train_chat *chat;
    sifr_error error = {0};
    said[0] = 0;
    if (train_chat_open(options, &chat, &error) != SIFR_OK) fail_msg("%s", error.message);
    return chat;
}

static void refuse(const char *name, const char *rows, const char *message) {
    train_chat_source source = source_of(scratch_text(name, rows));
    train_chat_options options = options_for(&source, 1);
    train_chat *chat;
    sifr_error error = {0};
    assert_int_equal(train_chat_open(&options, &chat, &error), SIFR_FAILED);
    assert_message(&error, message);
    assert_message(&error, name);
}

/* The learned tokens of a row as text, parts between bars. */
static void assert_learned(const train_chat *chat, int64_t index, const char *expected) {
    const int32_t *ids;
    const bool *learned;
    int64_t whole, count = train_chat_row_at(chat, index, &ids, &learned, &whole);
    formats_tokenizer *tokenizer;
    formats_tokenizer_text text = {0};
    char bar = '|';
    assert_int_equal(formats_tokenizer_load(scratch, &tokenizer, NULL), SIFR_OK);
    for (int64_t i = 0; i < count; i++) {
        if (!learned[i]) continue;
        assert_int_equal(formats_tokenizer_decode(tokenizer, ids + i, 1, false, &text, NULL),
                         SIFR_OK);
        if (i + 1 < count && learned[i + 1]) continue;
        assert_int_equal(base_grow(&text.bytes, &text.room, text.count + 2, 1, NULL), SIFR_OK);
        text.bytes[text.count++] = bar;
    }
    assert_int_equal(base_grow(&text.bytes, &text.room, text.count + 1, 1, NULL), SIFR_OK);
    text.bytes[text.count] = 0;
    assert_string_equal(text.bytes, expected);
    formats_tokenizer_text_free(&text);
    formats_tokenizer_free(tokenizer);
}

static const char turns[] =
    "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
    "\"content\": \"b\"}, {\"role\": \"user\", \"content\": \"c\"}, {\"role\": \"assistant\", "
    "\"content\": \"d\"}]}\n";

static void learns_parts(void **state) {
    (void)state;
    set_template(plain_template);
    train_chat_source source = source_of(scratch_text("turns.jsonl", turns));
    train_chat_options options = options_for(&source, 1);
    train_chat *chat = open_rows(&options);
    assert_non_null(strstr(said, "turns.jsonl: rows of type messages"));
    assert_learned(chat, 0, "b<|im_end|>\n|d<|im_end|>\n|");
    train_rows rows;
    assert_int_equal(train_rows_make(1, LENGTH, TRAIN_ROWS_PLAIN, 0, &rows, NULL), SIFR_OK);
    train_chat_read(chat, 0, &rows, 0);
    int64_t labels = 0;
    for (int64_t i = 0; i < LENGTH; i++) {
        labels += rows.labels[i] != -100;
        if (rows.labels[i] != -100) assert_int_equal(rows.labels[i], rows.tokens[i + 1]);
    }
    assert_int_equal(labels, train_chat_count(chat)->learned);
    assert_int_equal(labels, 6);
    train_rows_free(&rows);
    train_chat_close(chat);
    options.mask = TRAIN_ON_LAST;
    chat = open_rows(&options);
    assert_learned(chat, 0, "d<|im_end|>\n|");
    train_chat_close(chat);
    options.mask = TRAIN_ON_ALL;
    chat = open_rows(&options);
    assert_learned(chat, 0,
                   "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n"
                   "<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\nd<|im_end|>\n|");
    train_chat_close(chat);
}

static void reads_forms(void **state) {
    (void)state;
    set_template(plain_template);
    static const struct {
        const char *name, *rows, *type, *learned;
    } cases[] = {
        {"t.jsonl", "{\"text\": \"a b\"}", "text", "a b</s>|"},
        {"p.jsonl", "{\"prompt\": \"a:\", \"completion\": \"b\"}", "prompt_completion", "b</s>|"},
        {"p.csv", "prompt,completion\n\"a\n\",b\n", "prompt_completion", "b</s>|"},
        {"m.csv",
         "messages\n\"[{\"\"role\"\": \"\"user\"\", \"\"content\"\": \"\"a\"\"}, {\"\"role\"\": "
         "\"\"assistant\"\", \"\"content\"\": \"\"b\"\"}]\"\n",
         "messages", "b<|im_end|>\n|"},
        {"l.csv",
         "prompt,completion\n\"[{\"\"role\"\": \"\"user\"\", \"\"content\"\": \"\"a\"\"}]\","
         "\"[{\"\"role\"\": \"\"assistant\"\", \"\"content\"\": \"\"b\"\"}]\"\n",
         "prompt_completion", "b<|im_end|>\n|"},
        {"j.jsonl", "{\"prompt\": \"[{\\\"role\\\": 1}]\", \"completion\": \"b\"}",
         "prompt_completion", "b</s>|"},
        {"a.json", "[{\"instruction\": \"a\", \"output\": \"b\"}]", "alpaca", "b<|im_end|>\n|"},
        {"s.json",
         "[{\"conversations\": [{\"from\": \"human\", \"value\": \"a\"}, {\"from\": "
         "\"gpt\", \"value\": \"b\"}]}]",
         "sharegpt", "b<|im_end|>\n|"},
        {"w.json",
         "[{\"conversations\": [{\"from\": \"human\", \"value\": \"a\"}, {\"from\": \"gpt\", "
         "\"value\": \"b\", \"weight\": 0}, {\"from\": \"gpt\", \"value\": \"c\", \"weight\": "
         "1}]}]",
         "sharegpt", "c<|im_end|>\n|"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[64];
        train_chat_source source = source_of(scratch_text(cases[i].name, cases[i].rows));
        train_chat_options options = options_for(&source, 1);
        train_chat *chat = open_rows(&options);
        snprintf(line, sizeof line, "rows of type %s\n", cases[i].type);
        assert_non_null(strstr(said, line));
        assert_learned(chat, 0, cases[i].learned);
        train_chat_close(chat);
    }
}

static train_chat *open_names(const char *name, const char *rows, const char *ignored[2]) {
    train_chat_source source = source_of(scratch_text(name, rows));
    json_t *lists[2];
    for (int i = 0; i < 2; i++) {
        lists[i] = ignored[i] ? json_pack("[s]", ignored[i]) : NULL;
        source.ignored[i] = lists[i];
    }
    train_chat_options options = options_for(&source, 1);
    train_chat *chat = open_rows(&options);
    json_decref(lists[0]);
    json_decref(lists[1]);
    return chat;
}

/* Fields that are not read are named in one line a file, whichever row has them; those that are
 * left out are not there, by the source's list and the run's. */
static void names_unread_fields(void **state) {
    (void)state;
    set_template(plain_template);
    static const char rows[] =
        "{\"question\": \"a\", \"answer\": \"b\", \"id\": 1, \"note\": \"\", \"tags\": []}\n"
        "{\"question\": \"a\", \"answer\": \"b\", \"id\": 2, \"note\": \"x\", \"context\": "
        "\"c\"}\n";
    const char *none[2] = {NULL, NULL}, *both[2] = {"context", "note"};
    train_chat *chat = open_names("q.jsonl", rows, none);
    assert_non_null(
        strstr(said, "q.jsonl: rows of type alpaca (question_answer: question, answer)\n"));
    assert_non_null(strstr(said, "q.jsonl: fields not read: id, note\n"));
    assert_int_equal(train_chat_count(chat)->tokens, 38);
    train_chat_close(chat);
    chat = open_names("q.jsonl", rows, both);
    assert_non_null(strstr(said, "q.jsonl: field not read: id\n"));
    assert_int_equal(train_chat_count(chat)->tokens, 36);
    train_chat_close(chat);
    const char *system[2] = {"system", NULL};
    chat = open_names("s.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\", \"system\": \"c\"}",
                      system);
    assert_learned(chat, 0, "b</s>|");
    train_chat_close(chat);
    refuse(
        "s.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\", \"system\": \"c\"}",
        "row 1, line 1: 'system' holds text that rows of the form prompt_completion do not read");
}

/* Answers marked as good are learned; a file that marks one as bad is refused, with counts. */
static void refuses_bad_answers(void **state) {
    (void)state;
    set_template(plain_template);
    const char *none[2] = {NULL, NULL}, *label[2] = {"label", NULL};
    static const char good[] = "{\"prompt\": \"a\", \"completion\": \"b\", \"label\": true}\n";
    static const char mixed[] = "{\"prompt\": \"a\", \"completion\": \"b\", \"label\": true}\n"
                                "{\"prompt\": \"a\", \"completion\": \"c\", \"label\": false}\n"
                                "{\"prompt\": \"a\", \"completion\": \"d\", \"label\": false}\n";
    train_chat_close(open_names("g.jsonl", good, none));
    refuse("k.jsonl", mixed, "k.jsonl: 'label' is false in 2 of 3 rows: an answer that is marked");
    train_chat_close(open_names("k.jsonl", mixed, label));
    refuse("t.jsonl", "{\"instruction\": \"a\", \"output\": \"b\", \"kto_tag\": false}",
           "'kto_tag' is false in 1 of 1 rows");
    refuse("t.csv", "prompt,completion,label\na,b,False\n", "'label' is false in 1 of 1 rows");
    /* Of a class, not of an answer. */
    train_chat_close(open_names("c.jsonl", "{\"text\": \"a\", \"label\": false}", none));
}

/* Pairs: their prompts and answers, given or found; the draws of an epoch; whole pairs are split
 * and left out. */
static void reads_pairs(void **state) {
    (void)state;
    set_template(plain_template);
    static const char rows[] =
        "{\"prompt\": \"a:\", \"chosen\": \"b\", \"rejected\": \"cc\"}\n"
        "{\"chosen\": \"a b c\", \"rejected\": \"a b dd\"}\n"
        "{\"prompt\": [{\"role\": \"user\", \"content\": \"q\"}], \"chosen\": [{\"role\": "
        "\"assistant\", \"content\": \"x\"}], \"rejected\": [{\"role\": \"assistant\", "
        "\"content\": "
        "\"y\"}]}\n"
        "{\"prompt\": \"q\", \"chosen\": [{\"role\": \"user\", \"content\": \"q\"}, {\"role\": "
        "\"assistant\", \"content\": \"x\"}], \"rejected\": [{\"role\": \"user\", \"content\": "
        "\"q\"}, {\"role\": \"assistant\", \"content\": \"y\"}]}\n";
    train_chat_source source = source_of(scratch_text("p.jsonl", rows));
    train_chat_options options = options_for(&source, 1);
    train_chat *chat = open_rows(&options), *held_out;
    assert_true(train_chat_is_paired(chat));
    assert_non_null(strstr(said, "rows of type preference"));
    assert_non_null(strstr(said, "data: 4 pairs"));
    assert_int_equal(train_chat_count(chat)->rows, 8);
    assert_int_equal(train_chat_windows(chat), 8);
    assert_learned(chat, 0, "b</s>|");
    assert_learned(chat, 1, "cc</s>|");
    assert_learned(chat, 2, " c</s>|");
    assert_learned(chat, 3, " dd</s>|");
    for (int64_t i = 4; i < 8; i++)
        assert_learned(chat, i, i % 2 ? "y<|im_end|>\n|" : "x<|im_end|>\n|");
    bool seen[8] = {0};
    for (int64_t place = 0; place < 8; place++) {
        int64_t row = train_chat_draw(chat, 5, 1, place);
        assert_int_equal(row % 2, place % 2);
        if (place % 2) assert_int_equal(row, train_chat_draw(chat, 5, 1, place - 1) + 1);
        assert_false(seen[row]);
        seen[row] = true;
    }
    assert_int_equal(train_chat_split(chat, 0.25, 1, &held_out, NULL), SIFR_OK);
    assert_int_equal(train_chat_count(held_out)->rows, 2);
    assert_int_equal(train_chat_count(chat)->rows, 6);
    assert_int_equal(train_chat_member(held_out, 0, 0) % 2, 0);
    assert_int_equal(train_chat_rows_before_split(held_out), 8);
    train_chat_close(held_out);
    train_chat_close(chat);
    options.length = 3; /* only the first answer of the first pair fits */
    source = source_of(
        scratch_text("p.jsonl", "{\"prompt\": \"abc\", \"chosen\": \"b\", \"rejected\": \"cc\"}\n"
                                "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}\n"));
    chat = open_rows(&options);
    assert_int_equal(train_chat_count(chat)->rows, 2);
    assert_int_equal(train_chat_count(chat)->dropped, 1);
    train_chat_close(chat);
}

/* As TRL 1.16 (test_trl_rows.c): a completion begins at the first token that differs. */
static void says_merges(void **state) {
    (void)state;
    set_template(plain_template);
    train_chat_source source =
        source_of(scratch_text("p.jsonl", "{\"prompt\": \"a \", \"completion\": \"b\"}"));
    train_chat_options options = options_for(&source, 1);
    train_chat *chat = open_rows(&options);
    assert_int_equal(train_chat_count(chat)->merged, 1);
    assert_non_null(strstr(said, "in 1 row the prompt by itself has other tokens"));
    assert_learned(chat, 0, " b</s>|");
    train_chat_close(chat);
}

/* All of a completion but what has a weight of 0, with marks and without; of --train-on last the
 * last turn alone. */
static void learns_completions(void **state) {
    (void)state;
    static const char marked[] =
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}"
        "{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}"
        "{% else %}{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
    for (int i = 0; i < 2; i++) {
        set_template(i ? marked : plain_template);
        train_chat_source source = source_of(scratch_text(
            "w.jsonl", "{\"prompt\": [{\"role\": \"user\", \"content\": \"p\"}], \"completion\": ["
                       "{\"role\": \"assistant\", \"content\": \"a\", \"weight\": 0}, "
                       "{\"role\": \"user\", \"content\": \"q\"}, "
                       "{\"role\": \"assistant\", \"content\": \"b\"}]}"));
        train_chat_options options = options_for(&source, 1);
        train_chat *chat = open_rows(&options);
        assert_learned(chat, 0,
                       i ? "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\nb<|im_end|>|"
                         : "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n|");
        train_chat_close(chat);
        options.mask = TRAIN_ON_LAST;
        chat = open_rows(&options);
        assert_learned(chat, 0, i ? "b<|im_end|>|" : "b<|im_end|>\n|");
        train_chat_close(chat);
    }
}

/* Without a chat template. */
static void reads_plain_alpaca(void **state) {
    (void)state;
    set_template(NULL);
    train_chat_source source = source_of(
        scratch_text("a.jsonl", "{\"instruction\": \"a\", \"input\": \"x\", \"output\": \"b\"}"));
    train_chat_options options = options_for(&source, 1);
    options.mask = TRAIN_ON_ALL;
    options.length = 400;
    train_chat *chat = open_rows(&options);
    assert_learned(chat, 0,
                   "Below is an instruction that describes a task, paired with an input that "
                   "provides further context. Write a response that appropriately completes the "
                   "request.\n\n### Instruction:\na\n\n### Input:\nx\n\n### Response:b</s>|");
    train_chat_close(chat);
    source = source_of(scratch_text("m.jsonl", turns));
    sifr_error error = {0};
    assert_int_equal(train_chat_open(&options, &chat, &error), SIFR_USAGE);
    assert_message(&error, "need the chat template of the model");
}

static void refuses_rows(void **state) {
    (void)state;
    set_template(plain_template);
    refuse("x.jsonl", "", "all of them empty");
    refuse("x.jsonl", "\n\n", "no rows");
    refuse("x.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}",
           "1 have nothing to learn (0 of them within seq_length 64), 0 are bad; look at them with "
           "`sifr data inspect --train-on all`");
    refuse("x.jsonl", "{\"a\": 1, \"b\": 2}", "row 1, line 1: no known form: its fields are a, b");
    refuse("x.jsonl", "{\"a\": 1, \"b\": 2}", "say which these are with --data-fields");
    refuse("x.jsonl", "{\"chosen\": 1, \"rejected\": 2}", "row 1, line 1: 'chosen' must be a text");
    refuse("x.jsonl", "{\"chosen\": \"a\", \"rejected\": [1]}", "must be of one kind");
    refuse("x.jsonl", "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": null}",
           "'rejected' must be a text");
    refuse("x.jsonl", "\n{\"text\": 1}", "row 1, line 2: 'text' is a number");
    refuse("x.jsonl", "{\"text\": \"a\"}\n{\"txt\": \"a\"}", "row 2, line 2: 'text' is missing");
    refuse("x.jsonl", "{\"text\": \"a\"}\n{\"text\": ", "line 2");
    refuse("x.jsonl", "{\"messages\": []}", "'messages' is empty");
    refuse("x.jsonl", "{\"messages\": 1}", "'messages' is a number; it must be a list");
    refuse("x.jsonl", "{\"messages\": \"[\"}", "'messages' is a string that does not hold a list");
    refuse("x.jsonl", "{\"messages\": [1]}", "'messages[0]' is a number");
    refuse("x.jsonl", "{\"messages\": [{\"role\": \"robot\", \"content\": \"a\"}]}",
           "'messages[0]' has the role \"robot\"");
    refuse("x.jsonl", "{\"messages\": [{\"role\": \"user\"}]}",
           "'messages[0]' has no content: 'content' is missing");
    refuse("x.jsonl", "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\"}]}",
           "the assistant speaks first");
    refuse("x.jsonl", "{\"conversations\": [{\"from\": \"me\", \"value\": \"a\"}]}",
           "'conversations[0]' is from \"me\"");
    refuse("x.jsonl", "{\"conversations\": [{\"from\": \"function_call\", \"value\": \"{\"}]}",
           "'conversations[0]' does not hold a call");
    refuse("x.jsonl", "{\"instruction\": \"a\", \"output\": null}", "'output' is null");
    refuse("x.jsonl", "{\"prompt\": [], \"completion\": []}", "'prompt' is empty");
    refuse("x.csv", "prompt,completion\na\n", "line 2 has 1 field");
    set_template("{% for m in messages %}{{ raise_exception('never') }}{% endfor %}");
    refuse("x.jsonl", turns, "row 1, line 1: ");
    set_template("{{ messages | length }}{% for m in messages %}{{ m.content }}{% endfor %}");
    refuse("x.jsonl", turns, "cannot be told apart");
    refuse("x.jsonl", turns, "marks, or give --train-on last or all");
}

static const char flagged[] =
    "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
    "\"content\": \"b\", %s}, {\"role\": \"user\", \"content\": \"c\"}, {\"role\": "
    "\"assistant\", \"content\": \"d\"}]}\n";

static void assert_flagged(const char *flag, train_chat_mask mask, const char *learned) {
    char row[512];
    snprintf(row, sizeof row, flagged, flag);
    train_chat_source source = source_of(scratch_text("f.jsonl", row));
    train_chat_options options = options_for(&source, 1);
    options.mask = mask;
    train_chat *chat = open_rows(&options);
    assert_learned(chat, 0, learned);
    train_chat_close(chat);
}

static const char marked_template[] =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}{% generation "
    "%}"
    "{{ m.content }}<|im_end|>\n{% endgeneration %}{% else %}{{ m.content }}<|im_end|>\n{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/* A turn that says that it is not to learn, whatever else is learned. */
static void keeps_flags(void **state) {
    (void)state;
    static const char *const none[] = {"\"weight\": 0", "\"weight\": 0.0", "\"train\": false",
                                       "\"training\": false", "\"weight\": 0, \"train\": false"};
    static const char *const one[] = {"\"weight\": 1", "\"train\": true", "\"train\": null"};
    for (int marks = 0; marks < 2; marks++) {
        set_template(marks ? marked_template : plain_template);
        for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
            assert_flagged(none[i], TRAIN_ON_ASSISTANT, "d<|im_end|>\n|");
            assert_flagged(none[i], TRAIN_ON_ALL,
                           "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n|"
                           "<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\nd<|im_end|>\n|");
        }
        for (size_t i = 0; i < sizeof one / sizeof *one; i++)
            assert_flagged(one[i], TRAIN_ON_ASSISTANT, "b<|im_end|>\n|d<|im_end|>\n|");
    }
    static const char *const bad[][2] = {
        {"\"weight\": 0.5", "'messages[1]' has a weight that is neither 0, not learned, nor 1"},
        {"\"weight\": true", "'messages[1]' has a weight that is neither 0"},
        {"\"train\": 0", "'messages[1]' has 'train', which must be true or false"},
        {"\"weight\": 1, \"train\": false", "has 'weight' 1 and 'train' false; leave one out"},
        {"\"train_detail\": []", "has 'train_detail', which is not supported yet"}};
    char row[512];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(row, sizeof row, flagged, bad[i][0]);
        refuse("f.jsonl", row, bad[i][1]);
    }
    refuse("f.jsonl",
           "{\"messages\": [{\"role\": \"user\", \"content\": \"a\", \"train\": true}, {\"role\": "
           "\"assistant\", \"content\": \"b\"}]}\n",
           "'messages[0]' has 'train' true, but only what the assistant writes is learned");
    refuse("f.jsonl",
           "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
           "\"content\": [{\"type\": \"text\", \"text\": \"b\", \"train\": false}]}]}\n",
           "'messages[1]' has 'train of a part', which is not supported yet");
    refuse("f.jsonl",
           "{\"conversations\": [{\"from\": \"human\", \"value\": \"a\"}, {\"from\": \"gpt\", "
           "\"value\": \"b\", \"weight\": 0.5}]}\n",
           "'conversations[1]' has a weight that is neither 0");
}

/* A system prompt in a field beside a system turn: the turn counts, which is said once a file. */
static void keeps_system_turns(void **state) {
    (void)state;
    static const char *const rows[] = {
        "{\"system\": \"F\", \"conversations\": [{\"from\": \"system\", \"value\": \"T\"}, "
        "{\"from\": "
        "\"human\", \"value\": \"a\"}, {\"from\": \"gpt\", \"value\": \"b\"}]}\n",
        "{\"system\": \"F\", \"messages\": [{\"role\": \"system\", \"content\": \"T\"}, {\"role\": "
        "\"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"b\"}]}\n"};
    static const char line[] = "s.jsonl: rows have a system prompt in a field and another one as "
                               "the first turn; the turn counts\n";
    set_template(plain_template);
    for (size_t i = 0; i < 2; i++) {
        char two[1024];
        snprintf(two, sizeof two, "%s%s", rows[i], rows[i]);
        train_chat_source source = source_of(scratch_text("s.jsonl", two));
        train_chat_options options = options_for(&source, 1);
        options.mask = TRAIN_ON_ALL;
        train_chat *chat = open_rows(&options);
        assert_learned(chat, 1,
                       "<|im_start|>system\nT<|im_end|>\n<|im_start|>user\na<|im_end|>\n"
                       "<|im_start|>assistant\nb<|im_end|>\n|");
        train_chat_close(chat);
        const char *at = strstr(said, line);
        assert_non_null(at);
        assert_null(strstr(at + 1, line));
    }
}

/* What Python's json reads and JSON is not: trained where the field is not read, else one line. */
static void reads_odd_json(void **state) {
    (void)state;
    static const char *const odd[][2] = {
        {"NaN", "holds NaN or Infinity"},
        {"-Infinity", "holds NaN or Infinity"},
        {"\"x\\u0000\"", "holds \\u0000"},
        {"[\"\\ud800\"]", "holds half of a surrogate pair"},
        {"{\"b\": 1, \"b\": 2}", "holds an object with the same key"},
        {"1e999", "holds a number that is too large"}};
    static const char *const forms[][2] = {
        {"{\"text\": %s}\n", "'text' "},
        {"{\"prompt\": \"a\", \"completion\": %s}\n", "'completion' "},
        {"{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": %s}\n", "'rejected' "},
        {"{\"instruction\": \"a\", \"input\": %s, \"output\": \"b\"}\n", "'input' "},
        {"{\"messages\": [{\"role\": \"user\", \"content\": \"a\", \"x\": %s}]}\n", "'messages' "},
        {"{\"conversations\": [{\"from\": \"gpt\", \"value\": %s}]}\n", "'conversations' "},
        {"{\"id\": %s}\n", "'id' "}};
    char row[256], said_of[128];
    set_template(plain_template);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        snprintf(row, sizeof row, "{\"text\": \"a\", \"id\": %s}\n", odd[i][0]);
        train_chat_source source = source_of(scratch_text("o.jsonl", row));
        train_chat_options options = options_for(&source, 1);
        train_chat_close(open_rows(&options));
        for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
            snprintf(row, sizeof row, forms[k][0], odd[i][0]);
            snprintf(said_of, sizeof said_of, "row 1, line 1: %s%s", forms[k][1], odd[i][1]);
            refuse("o.jsonl", row, said_of);
            refuse("o.jsonl", row, "mend the row, or give --skip-bad-rows");
        }
    }
    refuse("o.jsonl", "{\"text\": \"a\", \"text\": \"a\"}\n", "'text' stands twice in the row");
}

/* Skipped rows are counted; a failure of the file is none of a row. */
static void skips_rows(void **state) {
    (void)state;
    set_template(plain_template);
    static const char rows[] = "{\"text\": \"one\"}\n{\"text\": 1}\n{\n{\"text\": \"two\"}\n7\n";
    train_chat_source source = source_of(scratch_text("x.jsonl", rows));
    train_chat_options options = options_for(&source, 1);
    options.skip_bad_rows = true;
    train_chat *chat = open_rows(&options);
    assert_int_equal(train_chat_count(chat)->rows, 2);
    assert_int_equal(train_chat_count(chat)->bad, 3);
    assert_non_null(strstr(said, "data: 3 bad rows skipped\n"));
    assert_non_null(strstr(said, "skipped: "));
    train_chat_close(chat);
    /* Of many writers: each with its own mistake of encoding, format or form. */
    static const char mixed[] =
        "{\"text\": \"one\"}\n{\"text\": \"caf\xe9\"}\n"
        "{\"text\": \"\\ud800\"}\n{\"text\": NaN}\n{\"txt\": \"a\"}\n"
        "{\"text\": \"a\", \"text\": \"b\"}\n\xef\xbb\xbf{\"text\": \"a\"}\n"
        "{\"text\": [\"a\"]}\n{\"text\": \"two\"}\n";
    source = source_of(scratch_text("z.jsonl", mixed));
    chat = open_rows(&options);
    assert_int_equal(train_chat_count(chat)->rows, 2);
    assert_int_equal(train_chat_count(chat)->bad, 7);
    assert_non_null(strstr(said, "z.jsonl: line 2 is not valid UTF-8; convert the file\n"));
    train_chat_close(chat);
    sifr_error error = {0};
    source = source_of(scratch_text("y.json", "[{\"text\": \"a\"} {\"text\": \"b\"}]"));
    assert_int_equal(train_chat_open(&options, &chat, &error), SIFR_FAILED);
    assert_message(&error, "a comma must stand between rows");
}

static void cuts_rows(void **state) {
    (void)state;
    set_template(plain_template);
    static const char rows[] = "{\"prompt\": \"x\", \"completion\": \"0123456789\"}\n"
                               "{\"prompt\": \"0123456789\", \"completion\": \"y\"}\n"
                               "{\"prompt\": \"x\", \"completion\": \"y\"}\n";
    train_chat_source source = source_of(scratch_text("x.jsonl", rows));
    train_chat_options options = options_for(&source, 1);
    options.length = 5;
    train_chat *chat = open_rows(&options);
    const train_chat_counts *c = train_chat_count(chat);
    assert_int_equal(c->rows, 2);
    assert_int_equal(c->truncated, 1);
    assert_int_equal(c->cut_tokens, c->longest - 5);
    assert_int_equal(c->dropped, 1);
    assert_int_equal(c->dropped_cut, 1);
    assert_true(c->longest > 5);
    assert_non_null(strstr(said, "1 row is longer than seq_length 5 and cut at the end, by "));
    assert_non_null(strstr(said, "1 row is left out: nothing in it is learned within seq_length"));
    train_chat_close(chat);
    sifr_error error = {0};
    options.vocab_size = 50;
    assert_int_equal(train_chat_open(&options, &chat, &error), SIFR_FAILED);
    assert_message(&error, "use the tokenizer that belongs to the model");
}

/* Rows of one character each, from `first` on. */
static const char *write_rows(const char *name, int first, int count) {
    char text[2048];
    size_t used = 0;
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "{\"text\": \"%c%c\"}\n",
                                 'A' + first, 'a' + i);
    return scratch_text(name, text);
}

static void count_draws(const train_chat *chat, uint64_t seed, int64_t epoch, int *counts) {
    int64_t windows = train_chat_windows(chat);
    memset(counts, 0, 64 * sizeof *counts);
    for (int64_t i = 0; i < windows; i++) counts[train_chat_draw(chat, seed, epoch, i)]++;
}

static void draws_by_weight(void **state) {
    (void)state;
    int counts[64], more[64], total[64] = {0};
    set_template(plain_template);
    train_chat_source sources[2] = {source_of(write_rows("x.jsonl", 0, 10)),
                                    source_of(write_rows("y.jsonl", 1, 8))};
    train_chat_options options = options_for(sources, 2);
    train_chat *chat = open_rows(&options);
    uint64_t hash = train_chat_hash(chat);
    assert_int_equal(train_chat_windows(chat), 18);
    count_draws(chat, 42, 0, counts);
    for (int i = 0; i < 18; i++) assert_int_equal(counts[i], 1);
    assert_true(train_chat_draw(chat, 42, 0, 0) != train_chat_draw(chat, 42, 1, 0) ||
                train_chat_draw(chat, 42, 0, 1) != train_chat_draw(chat, 42, 1, 1));
    train_chat_close(chat);
    sources[0].weight = 0.5, sources[1].weight = 2;
    chat = open_rows(&options);
    assert_int_not_equal(train_chat_hash(chat), hash);
    assert_int_equal(train_chat_windows(chat), 5 + 16);
    for (int e = 0; e < 4; e++) {
        count_draws(chat, 42, e, counts);
        count_draws(chat, 42, e, more);
        assert_memory_equal(counts, more, sizeof counts);
        for (int i = 0; i < 18; i++) total[i] += counts[i];
    }
    /* Two epochs of a half draw each row once; each epoch draws the others twice. */
    for (int i = 0; i < 18; i++) assert_int_equal(total[i], i < 10 ? 2 : 8);
    train_chat_close(chat);
}

static void splits(void **state) {
    (void)state;
    set_template(plain_template);
    train_chat_source sources[2] = {source_of(write_rows("x.jsonl", 0, 10)),
                                    source_of(write_rows("y.jsonl", 1, 10))};
    train_chat_options options = options_for(sources, 2);
    train_chat *whole = open_rows(&options), *chat = open_rows(&options), *held, *other;
    assert_int_equal(train_chat_split(chat, 0.25, 42, &held, NULL), SIFR_OK);
    assert_int_equal(train_chat_count(chat)->rows, 15);
    assert_int_equal(train_chat_count(held)->rows, 5);
    assert_int_equal(train_chat_count(chat)->tokens + train_chat_count(held)->tokens,
                     train_chat_count(whole)->tokens);
    int seen[512] = {0};
    const train_chat *sides[2] = {chat, held};
    for (int s = 0; s < 2; s++)
        for (int64_t i = 0; i < train_chat_count(sides[s])->rows; i++) {
            const int32_t *ids;
            const bool *learned;
            int64_t length;
            train_chat_row_at(sides[s], i, &ids, &learned, &length);
            seen[(ids[0] * 31 + ids[1]) % 512]++;
        }
    int rows = 0;
    for (int i = 0; i < 512; i++) rows += seen[i];
    assert_int_equal(rows, 20);
    train_chat *again = open_rows(&options);
    assert_int_equal(train_chat_split(again, 0.25, 43, &other, NULL), SIFR_OK);
    assert_int_not_equal(train_chat_hash(other), train_chat_hash(held));
    train_chat_close(again);
    train_chat_close(other);
    train_chat_close(held);
    train_chat_close(chat);
    train_chat_close(whole);
}

/* Checks a sequence of packed rows: each is a segment that begins at position 0, its first token is
 * no label of what stands before it, and padding is a segment of its own. Returns the tokens of
 * rows, and adds each to `seen` by its second one. */
/* So many rows of each source, or held out. */
static void counts_rows(void **state) {
    (void)state;
    set_template(plain_template);
    train_chat_source sources[2] = {source_of(write_rows("x.jsonl", 0, 10)),
                                    source_of(write_rows("y.jsonl", 1, 3))};
    train_chat_options options = options_for(sources, 2);
    options.max_rows = 4;
    train_chat *chat = open_rows(&options), *held;
    sifr_error error = {0};
    assert_int_equal(train_chat_count(chat)->rows, 4 + 3);
    assert_int_equal(train_chat_split(chat, 7, 42, &held, &error), SIFR_USAGE);
    assert_message(&error, "validation_split: 7 rows cannot be held out of 7");
    assert_int_equal(train_chat_split(chat, 2.5, 42, &held, &error), SIFR_USAGE);
    assert_int_equal(train_chat_split(chat, 2, 42, &held, &error), SIFR_OK);
    assert_int_equal(train_chat_count(chat)->rows, 5);
    assert_int_equal(train_chat_count(held)->rows, 2);
    train_chat_close(held);
    train_chat_close(chat);
    options.length = 2; /* all are longer */
    options.drop_long = true;
    assert_int_equal(train_chat_open(&options, &chat, &error), SIFR_FAILED);
    assert_message(&error, "0 are bad, 7 are longer than seq_length 2 and left out; look");
    options.length = 8;
    sources[1] = source_of(scratch_text("z.jsonl", "{\"text\": \"much longer than eight\"}\n"));
    chat = open_rows(&options);
    assert_int_equal(train_chat_count(chat)->rows, 4);
    assert_non_null(strstr(said, "data: 1 row is left out: longer than seq_length 8"));
    train_chat_close(chat);
}

/* As TRL's default: of a prompt and its completion the completion, of messages all. */
static void learns_all_of_messages(void **state) {
    (void)state;
    set_template(plain_template);
    train_chat_source sources[2] = {
        source_of(scratch_text("p.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\"}")),
        source_of(scratch_text("m.jsonl",
                               "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}, "
                               "{\"role\": \"assistant\", \"content\": \"y\"}]}"))};
    train_chat_options options = options_for(sources, 2);
    options.mask = TRAIN_ON_COMPLETION;
    train_chat *chat = open_rows(&options);
    const int32_t *ids;
    const bool *learned;
    int64_t whole;
    assert_learned(chat, 0, "b</s>|");
    int64_t count = train_chat_row_at(chat, 1, &ids, &learned, &whole);
    for (int64_t i = 0; i < count; i++) assert_true(learned[i]);
    train_chat_close(chat);
}

static int64_t check_sequence(const train_rows *rows, int64_t at, int *seen) {
    const int32_t *tokens = rows->tokens + at * LENGTH, *labels = rows->labels + at * LENGTH;
    const int32_t *segments = rows->segments + at * LENGTH;
    const int32_t *positions = rows->positions + at * LENGTH;
    int64_t filled = 0;
    for (int64_t i = 0; i < LENGTH; i++) {
        bool begins = i == 0 || segments[i] != segments[i - 1];
        assert_int_equal(positions[i], begins ? 0 : positions[i - 1] + 1);
        if (i) assert_int_equal(segments[i], segments[i - 1] + begins);
        if (i && begins) assert_int_equal(labels[i - 1], -100);
        if (labels[i] != -100) assert_int_equal(labels[i], tokens[i + 1]);
        if (tokens[i]) filled = i + 1;
        if (positions[i] == 1 && tokens[i]) seen[tokens[i] % 512]++;
    }
    for (int64_t i = filled; i < LENGTH; i++) assert_int_equal(positions[i], i - filled);
    return filled;
}

static void packs_rows(void **state) {
    (void)state;
    set_template(plain_template);
    train_chat_source sources[2] = {source_of(write_rows("x.jsonl", 0, 26)),
                                    source_of(write_rows("y.jsonl", 1, 20))};
    train_chat_options options = options_for(sources, 2);
    train_chat *chat = open_rows(&options), *held;
    sources[1].weight = 2;
    train_chat *twice = open_rows(&options);
    uint64_t hash = train_chat_hash(chat);
    assert_int_equal(train_chat_split(chat, 0.1, 42, &held, NULL), SIFR_OK);
    int64_t tokens = 0, rows_there = train_chat_count(chat)->rows;
    assert_int_equal(train_chat_sequences(chat), rows_there);
    assert_false(train_chat_is_packed(chat));
    assert_int_equal(train_chat_pack(chat, NULL), SIFR_OK);
    assert_true(train_chat_is_packed(chat));
    assert_int_not_equal(train_chat_hash(chat), hash);
    assert_int_equal(train_chat_count(chat)->rows, rows_there);
    int64_t sequences = train_chat_sequences(chat);
    assert_int_equal(train_chat_windows(chat), sequences);
    assert_true(sequences > 2 && sequences < 10);
    train_rows rows;
    int seen[512] = {0}, total = 0;
    assert_int_equal(train_rows_make(2, LENGTH, TRAIN_ROWS_PACKED, 0, &rows, NULL), SIFR_OK);
    for (int64_t i = 0; i < sequences; i++) {
        train_chat_read(chat, train_chat_draw(chat, 42, 0, i), &rows, 1);
        tokens += check_sequence(&rows, 1, seen);
    }
    for (int i = 0; i < 512; i++) total += seen[i];
    assert_int_equal(total, rows_there);
    assert_int_equal(tokens, train_chat_count(chat)->tokens);
    /* A source's weight counts its sequences. */
    assert_int_equal(train_chat_pack(twice, NULL), SIFR_OK);
    options.count = 1;
    train_chat *first = open_rows(&options);
    assert_int_equal(train_chat_pack(first, NULL), SIFR_OK);
    int64_t draws[2] = {0}, of_first = train_chat_sequences(first);
    for (int64_t i = 0; i < train_chat_windows(twice); i++)
        draws[train_chat_draw(twice, 42, 0, i) >= of_first]++;
    assert_int_equal(draws[0], of_first);
    assert_int_equal(draws[1], 2 * (train_chat_sequences(twice) - of_first));
    train_rows_free(&rows);
    train_chat_close(first);
    train_chat_close(twice);
    train_chat_close(held);
    train_chat_close(chat);
}

static int64_t length_at(const train_chat *chat, int64_t row) {
    const int32_t *ids;
    const bool *learned;
    int64_t whole;
    return train_chat_row_at(chat, row, &ids, &learned, &whole);
}

/* 45 rows in steps of 2: runs of 5 steps, each of the rows that an epoch has there without groups,
 * the longest first; then the longest of all and the first change places. */
static void groups_rows(void **state) {
    (void)state;
    enum { ROWS = 45, RUN = 10 };
    char text[8192];
    size_t used = 0;
    set_template(plain_template);
    for (int i = 0; i < ROWS; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "{\"text\": \"%.*s\"}\n",
                                 1 + i * 17 % 23, "abcdefghijklmnopqrstuvwxyz");
    train_chat_source source = source_of(scratch_text("x.jsonl", text));
    train_chat_options options = options_for(&source, 1);
    train_chat *chat = open_rows(&options), *plain = open_rows(&options);
    assert_int_equal(train_chat_group(chat, 2, NULL), SIFR_OK);
    assert_int_not_equal(train_chat_hash(chat), train_chat_hash(plain));
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        int64_t want[ROWS], longest = 0, back = epoch ? epoch - 1 : 0;
        for (int i = 0; i < ROWS; i++) want[i] = train_chat_draw(plain, 42, epoch, i);
        for (int first = 0; first < ROWS; first += RUN) {
            int end = first + RUN < ROWS ? first + RUN : ROWS;
            for (int i = first + 1; i < end; i++) /* by insertion, which keeps equals in order */
                for (int k = i; k > first; k--) {
                    int64_t row = want[k];
                    if (length_at(plain, want[k - 1]) >= length_at(plain, row)) break;
                    want[k] = want[k - 1], want[k - 1] = row;
                }
            if (length_at(plain, want[first]) > length_at(plain, want[longest])) longest = first;
        }
        int64_t row = want[0];
        want[0] = want[longest], want[longest] = row;
        for (int i = 0; i < ROWS; i++) {
            assert_int_equal(train_chat_draw(chat, 42, epoch, i), want[i]);
            (void)train_chat_draw(chat, 42, back, i); /* the epoch before stays at hand */
        }
    }
    assert_int_not_equal(train_chat_draw(chat, 43, 0, 1), train_chat_draw(chat, 42, 0, 1));
    train_chat_close(plain);
    train_chat_close(chat);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(learns_parts, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(reads_forms, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(names_unread_fields, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(refuses_bad_answers, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(reads_pairs, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(says_merges, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(learns_completions, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(reads_plain_alpaca, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(refuses_rows, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(keeps_flags, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(keeps_system_turns, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(reads_odd_json, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(skips_rows, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(cuts_rows, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(draws_by_weight, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(splits, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(counts_rows, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(learns_all_of_messages, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(packs_rows, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(groups_rows, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Rows to fine-tune on: forms, what is learned, what is cut, left out, skipped and refused. */
#include "data/finetune_case.h"

#include "base/heap.h"
#include "text/tokenizer/tokenizer.h"

static void refuse(const char *name, const char *rows, const char *message) {
    data_chat_source source = source_of(scratch_text(name, rows));
    data_chat_options options = options_for(&source, 1);
    data_chat *chat;
    sifr_error error = {0};
    assert_int_equal(data_chat_open(&options, &chat, &error), SIFR_FAILED);
    assert_message(&error, message);
    assert_message(&error, name);
}

/* The learned tokens of a row as text, parts between bars. */
static void assert_learned(const data_chat *chat, int64_t index, const char *expected) {
    const int32_t *ids;
    const bool *learned;
    int64_t whole, count = data_chat_row_at(chat, index, &ids, &learned, &whole);
    text_tokenizer *tokenizer;
    text_tokenizer_text text = {0};
    char bar = '|';
    assert_int_equal(text_tokenizer_load(scratch, &tokenizer, NULL), SIFR_OK);
    for (int64_t i = 0; i < count; i++) {
        if (!learned[i]) continue;
        assert_int_equal(text_tokenizer_decode(tokenizer, ids + i, 1, false, &text, NULL), SIFR_OK);
        if (i + 1 < count && learned[i + 1]) continue;
        assert_int_equal(base_grow(&text.bytes, &text.capacity, text.count + 2, 1, NULL), SIFR_OK);
        text.bytes[text.count++] = bar;
    }
    assert_int_equal(base_grow(&text.bytes, &text.capacity, text.count + 1, 1, NULL), SIFR_OK);
    text.bytes[text.count] = 0;
    assert_string_equal(text.bytes, expected);
    text_tokenizer_text_free(&text);
    text_tokenizer_free(tokenizer);
}

static const char turns[] =
    "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
    "\"content\": \"b\"}, {\"role\": \"user\", \"content\": \"c\"}, {\"role\": \"assistant\", "
    "\"content\": \"d\"}]}\n";

static void learns_parts(void **state) {
    (void)state;
    set_template(plain_template);
    data_chat_source source = source_of(scratch_text("turns.jsonl", turns));
    data_chat_options options = options_for(&source, 1);
    data_chat *chat = open_rows(&options);
    assert_non_null(strstr(said, "turns.jsonl: rows of type messages"));
    assert_learned(chat, 0, "b<|im_end|>\n|d<|im_end|>\n|");
    data_rows rows;
    assert_int_equal(data_rows_make(1, LENGTH, DATA_ROWS_PLAIN, 0, &rows, NULL), SIFR_OK);
    data_chat_read(chat, 0, &rows, 0);
    int64_t labels = 0;
    for (int64_t i = 0; i < LENGTH; i++) {
        labels += rows.labels[i] != -100;
        if (rows.labels[i] != -100) assert_int_equal(rows.labels[i], rows.tokens[i + 1]);
    }
    assert_int_equal(labels, data_chat_count(chat)->learned);
    assert_int_equal(labels, 6);
    data_rows_free(&rows);
    data_chat_close(chat);
    options.mask = DATA_ON_LAST;
    chat = open_rows(&options);
    assert_learned(chat, 0, "d<|im_end|>\n|");
    data_chat_close(chat);
    options.mask = DATA_ON_ALL;
    chat = open_rows(&options);
    assert_learned(chat, 0,
                   "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n"
                   "<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\nd<|im_end|>\n|");
    data_chat_close(chat);
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
        data_chat_source source = source_of(scratch_text(cases[i].name, cases[i].rows));
        data_chat_options options = options_for(&source, 1);
        data_chat *chat = open_rows(&options);
        snprintf(line, sizeof line, "rows of type %s\n", cases[i].type);
        assert_non_null(strstr(said, line));
        assert_learned(chat, 0, cases[i].learned);
        data_chat_close(chat);
    }
}

static data_chat *open_names(const char *name, const char *rows, const char *ignored[2]) {
    data_chat_source source = source_of(scratch_text(name, rows));
    json_t *lists[2];
    for (int i = 0; i < 2; i++) {
        lists[i] = ignored[i] ? json_pack("[s]", ignored[i]) : NULL;
        source.ignored[i] = lists[i];
    }
    data_chat_options options = options_for(&source, 1);
    data_chat *chat = open_rows(&options);
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
    data_chat *chat = open_names("q.jsonl", rows, none);
    assert_non_null(
        strstr(said, "q.jsonl: rows of type alpaca (question_answer: question, answer)\n"));
    assert_non_null(strstr(said, "q.jsonl: fields not read: id, note\n"));
    assert_int_equal(data_chat_count(chat)->tokens, 38);
    data_chat_close(chat);
    chat = open_names("q.jsonl", rows, both);
    assert_non_null(strstr(said, "q.jsonl: field not read: id\n"));
    assert_int_equal(data_chat_count(chat)->tokens, 36);
    data_chat_close(chat);
    const char *system[2] = {"system", NULL};
    chat = open_names("s.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\", \"system\": \"c\"}",
                      system);
    assert_learned(chat, 0, "b</s>|");
    data_chat_close(chat);
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
    data_chat_close(open_names("g.jsonl", good, none));
    refuse("k.jsonl", mixed,
           "k.jsonl: 'label' is false or 0 in 2 of 3 rows: an answer that is marked");
    data_chat_close(open_names("k.jsonl", mixed, label));
    refuse("t.jsonl", "{\"instruction\": \"a\", \"output\": \"b\", \"kto_tag\": false}",
           "'kto_tag' is false or 0 in 1 of 1 rows");
    refuse("u.jsonl",
           "{\"prompt\": \"a\", \"completion\": \"b\"}\n"
           "{\"prompt\": \"a\", \"completion\": \"c\", \"label\": false}\n",
           "'label' is false or 0 in 1 of 2 rows");
    refuse("t.csv", "prompt,completion,label\na,b,False\n", "'label' is false or 0 in 1 of 1 rows");
    /* Of a class, not of an answer. */
    data_chat_close(open_names(
        "c.jsonl", "{\"text\": \"a\", \"label\": 0}\n{\"text\": \"b\", \"label\": 2}\n", none));
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
    data_chat_source source = source_of(scratch_text("p.jsonl", rows));
    data_chat_options options = options_for(&source, 1);
    data_chat *chat = open_rows(&options), *held_out;
    assert_true(data_chat_is_paired(chat));
    assert_non_null(strstr(said, "rows of type preference"));
    assert_non_null(strstr(said, "data: 4 pairs"));
    assert_int_equal(data_chat_count(chat)->rows, 8);
    assert_int_equal(data_chat_windows(chat), 8);
    assert_learned(chat, 0, "b</s>|");
    assert_learned(chat, 1, "cc</s>|");
    assert_learned(chat, 2, " c</s>|");
    assert_learned(chat, 3, " dd</s>|");
    for (int64_t i = 4; i < 8; i++)
        assert_learned(chat, i, i % 2 ? "y<|im_end|>\n|" : "x<|im_end|>\n|");
    bool seen[8] = {0};
    for (int64_t place = 0; place < 8; place++) {
        int64_t row = data_chat_draw(chat, 5, 1, place);
        assert_int_equal(row % 2, place % 2);
        if (place % 2) assert_int_equal(row, data_chat_draw(chat, 5, 1, place - 1) + 1);
        assert_false(seen[row]);
        seen[row] = true;
    }
    assert_int_equal(data_chat_split(chat, 0.25, 1, &held_out, NULL), SIFR_OK);
    assert_int_equal(data_chat_count(held_out)->rows, 2);
    assert_int_equal(data_chat_count(chat)->rows, 6);
    assert_int_equal(data_chat_member(held_out, 0, 0) % 2, 0);
    assert_int_equal(data_chat_rows_before_split(held_out), 8);
    data_chat_close(held_out);
    data_chat_close(chat);
    options.length = 3; /* only the first answer of the first pair fits */
    source = source_of(
        scratch_text("p.jsonl", "{\"prompt\": \"abc\", \"chosen\": \"b\", \"rejected\": \"cc\"}\n"
                                "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}\n"));
    chat = open_rows(&options);
    assert_int_equal(data_chat_count(chat)->rows, 2);
    assert_int_equal(data_chat_count(chat)->dropped, 1);
    data_chat_close(chat);
}

/* As TRL 1.16 (test_trl_rows.c): a completion begins at the first token that differs. */
static void says_merges(void **state) {
    (void)state;
    set_template(plain_template);
    data_chat_source source =
        source_of(scratch_text("p.jsonl", "{\"prompt\": \"a \", \"completion\": \"b\"}"));
    data_chat_options options = options_for(&source, 1);
    data_chat *chat = open_rows(&options);
    assert_int_equal(data_chat_count(chat)->merged, 1);
    assert_non_null(strstr(said, "in 1 row the prompt by itself has other tokens"));
    assert_learned(chat, 0, " b</s>|");
    data_chat_close(chat);
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
        data_chat_source source = source_of(scratch_text(
            "w.jsonl", "{\"prompt\": [{\"role\": \"user\", \"content\": \"p\"}], \"completion\": ["
                       "{\"role\": \"assistant\", \"content\": \"a\", \"weight\": 0}, "
                       "{\"role\": \"user\", \"content\": \"q\"}, "
                       "{\"role\": \"assistant\", \"content\": \"b\"}]}"));
        data_chat_options options = options_for(&source, 1);
        data_chat *chat = open_rows(&options);
        assert_learned(chat, 0,
                       i ? "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\nb<|im_end|>|"
                         : "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n|");
        data_chat_close(chat);
        options.mask = DATA_ON_LAST;
        chat = open_rows(&options);
        assert_learned(chat, 0, i ? "b<|im_end|>|" : "b<|im_end|>\n|");
        data_chat_close(chat);
    }
}

/* Without a chat template. */
static void reads_plain_alpaca(void **state) {
    (void)state;
    set_template(NULL);
    data_chat_source source = source_of(
        scratch_text("a.jsonl", "{\"instruction\": \"a\", \"input\": \"x\", \"output\": \"b\"}"));
    data_chat_options options = options_for(&source, 1);
    options.mask = DATA_ON_ALL;
    options.length = 400;
    data_chat *chat = open_rows(&options);
    assert_learned(chat, 0,
                   "Below is an instruction that describes a task, paired with an input that "
                   "provides further context. Write a response that appropriately completes the "
                   "request.\n\n### Instruction:\na\n\n### Input:\nx\n\n### Response:b</s>|");
    data_chat_close(chat);
    source = source_of(scratch_text("m.jsonl", turns));
    sifr_error error = {0};
    assert_int_equal(data_chat_open(&options, &chat, &error), SIFR_USAGE);
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
    refuse("x.jsonl", "{\"conversations\": [{\"from\": \"me\", \"value\": \"a\"}]}",
           "'conversations[0]' is from \"me\"");
    refuse("x.jsonl", "{\"conversations\": [{\"from\": \"function_call\", \"value\": \"{\"}]}",
           "'conversations[0]' does not hold a call");
    refuse("x.jsonl", "{\"instruction\": \"a\", \"output\": null}", "'output' is null");
    refuse("x.jsonl", "{\"prompt\": [], \"completion\": []}", "'prompt' is empty");
    refuse("x.csv", "prompt,completion\na\n", "line 2 has 1 field");
    set_template("{% for m in messages %}{{ raise_exception('never') }}{% endfor %}");
    refuse("x.jsonl", turns, "row 1, line 1: ");
    set_template("{{ messages | length }}{{ messages | map(attribute='content') | join }}");
    refuse("x.jsonl", turns, "cannot be told apart");
    refuse("x.jsonl", "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\"}]}",
           "the assistant speaks first");
    refuse("x.jsonl", turns, "marks, or give --train-on last or all");
}

static const char flagged[] =
    "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
    "\"content\": \"b\", %s}, {\"role\": \"user\", \"content\": \"c\"}, {\"role\": "
    "\"assistant\", \"content\": \"d\"}]}\n";

static void assert_flagged(const char *flag, data_chat_mask mask, const char *learned) {
    char row[512];
    snprintf(row, sizeof row, flagged, flag);
    data_chat_source source = source_of(scratch_text("f.jsonl", row));
    data_chat_options options = options_for(&source, 1);
    options.mask = mask;
    data_chat *chat = open_rows(&options);
    assert_learned(chat, 0, learned);
    data_chat_close(chat);
}

static const char marked_template[] =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}{% generation "
    "%}"
    "{{ m.content }}<|im_end|>\n{% endgeneration %}{% else %}{{ m.content }}<|im_end|>\n{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/* A turn that says that it is not to learn, whatever else is learned. */
static void keeps_flags(void **state) {
    (void)state;
    static const char *const none[] = {"\"weight\": 0",
                                       "\"weight\": 0.0",
                                       "\"train\": false",
                                       "\"training\": false",
                                       "\"weight\": 0, \"train\": false",
                                       "\"loss\": false",
                                       "\"loss\": 0"};
    static const char *const one[] = {"\"weight\": 1", "\"train\": true", "\"train\": null"};
    for (int marks = 0; marks < 2; marks++) {
        set_template(marks ? marked_template : plain_template);
        for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
            assert_flagged(none[i], DATA_ON_ASSISTANT, "d<|im_end|>\n|");
            assert_flagged(none[i], DATA_ON_ALL,
                           "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n|"
                           "<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\nd<|im_end|>\n|");
        }
        for (size_t i = 0; i < sizeof one / sizeof *one; i++)
            assert_flagged(one[i], DATA_ON_ASSISTANT, "b<|im_end|>\n|d<|im_end|>\n|");
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
        data_chat_source source = source_of(scratch_text("s.jsonl", two));
        data_chat_options options = options_for(&source, 1);
        options.mask = DATA_ON_ALL;
        data_chat *chat = open_rows(&options);
        assert_learned(chat, 1,
                       "<|im_start|>system\nT<|im_end|>\n<|im_start|>user\na<|im_end|>\n"
                       "<|im_start|>assistant\nb<|im_end|>\n|");
        data_chat_close(chat);
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
        data_chat_source source = source_of(scratch_text("o.jsonl", row));
        data_chat_options options = options_for(&source, 1);
        data_chat_close(open_rows(&options));
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
    data_chat_source source = source_of(scratch_text("x.jsonl", rows));
    data_chat_options options = options_for(&source, 1);
    options.skip_bad_rows = true;
    data_chat *chat = open_rows(&options);
    assert_int_equal(data_chat_count(chat)->rows, 2);
    assert_int_equal(data_chat_count(chat)->bad, 3);
    assert_non_null(strstr(said, "data: 3 bad rows skipped\n"));
    assert_non_null(strstr(said, "skipped: "));
    data_chat_close(chat);
    /* Of many writers: each with its own mistake of encoding, format or form. */
    static const char mixed[] =
        "{\"text\": \"one\"}\n{\"text\": \"caf\xe9\"}\n"
        "{\"text\": \"\\ud800\"}\n{\"text\": NaN}\n{\"txt\": \"a\"}\n"
        "{\"text\": \"a\", \"text\": \"b\"}\n\xef\xbb\xbf{\"text\": \"a\"}\n"
        "{\"text\": [\"a\"]}\n{\"text\": \"two\"}\n";
    source = source_of(scratch_text("z.jsonl", mixed));
    chat = open_rows(&options);
    assert_int_equal(data_chat_count(chat)->rows, 2);
    assert_int_equal(data_chat_count(chat)->bad, 7);
    assert_non_null(strstr(said, "z.jsonl: line 2 is not valid UTF-8; convert the file\n"));
    assert_non_null(strstr(said, "z.jsonl: row 3, line 3: "));
    assert_null(strstr(said, "give --skip-bad-rows")); /* which is given */
    data_chat_close(chat);
    sifr_error error = {0};
    source = source_of(scratch_text("y.json", "[{\"text\": \"a\"} {\"text\": \"b\"}]"));
    assert_int_equal(data_chat_open(&options, &chat, &error), SIFR_FAILED);
    assert_message(&error, "a comma must stand between rows");
}

static void cuts_rows(void **state) {
    (void)state;
    set_template(plain_template);
    static const char rows[] = "{\"prompt\": \"x\", \"completion\": \"0123456789\"}\n"
                               "{\"prompt\": \"0123456789\", \"completion\": \"y\"}\n"
                               "{\"prompt\": \"x\", \"completion\": \"y\"}\n";
    data_chat_source source = source_of(scratch_text("x.jsonl", rows));
    data_chat_options options = options_for(&source, 1);
    options.length = 5;
    data_chat *chat = open_rows(&options);
    const data_chat_counts *c = data_chat_count(chat);
    assert_int_equal(c->rows, 2);
    assert_int_equal(c->truncated, 1);
    assert_int_equal(c->cut_tokens, c->longest - 5);
    assert_int_equal(c->dropped, 1);
    assert_int_equal(c->dropped_cut, 1);
    assert_true(c->longest > 5);
    assert_non_null(strstr(said, "1 row is longer than seq_length 5 and cut at the end, by "));
    assert_non_null(strstr(said, "1 row is left out: nothing in it is learned within seq_length"));
    data_chat_close(chat);
    sifr_error error = {0};
    options.vocab_size = 50;
    assert_int_equal(data_chat_open(&options, &chat, &error), SIFR_FAILED);
    assert_message(&error, "use the tokenizer that belongs to the model");
}

/* As TRL's default: of a prompt and its completion the completion, of messages all. */
static void learns_all_of_messages(void **state) {
    (void)state;
    set_template(plain_template);
    data_chat_source sources[2] = {
        source_of(scratch_text("p.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\"}")),
        source_of(scratch_text("m.jsonl",
                               "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}, "
                               "{\"role\": \"assistant\", \"content\": \"y\"}]}"))};
    data_chat_options options = options_for(sources, 2);
    options.mask = DATA_ON_COMPLETION;
    data_chat *chat = open_rows(&options);
    const int32_t *ids;
    const bool *learned;
    int64_t whole;
    assert_learned(chat, 0, "b</s>|");
    int64_t count = data_chat_row_at(chat, 1, &ids, &learned, &whole);
    for (int64_t i = 0; i < count; i++) assert_true(learned[i]);
    data_chat_close(chat);
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
        cmocka_unit_test_setup_teardown(learns_all_of_messages, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

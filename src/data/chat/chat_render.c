#include "data/chat/chat_render.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/text.h"

bool data_chat_mask_find(const char *word, data_chat_mask *out) {
    static const char *const words[] = {[DATA_ON_ASSISTANT] = "assistant",
                                        [DATA_ON_LAST] = "last",
                                        [DATA_ON_ALL] = "all",
                                        [DATA_ON_COMPLETION] = "completion",
                                        [DATA_ON_ASSISTANT_ONLY] = "assistant_only",
                                        [DATA_ON_ASSISTANT_TURNS] = "assistant_turns"};
    int found;
    bool known = base_find_word(words, sizeof words / sizeof *words, word, &found);
    *out = (data_chat_mask)found;
    return known;
}

/* Whether the template writes a call of a made-up function; `quoted`: with its arguments as JSON in
 * a string, which some templates alone take. One that raises an error is not known to. */
static bool writes_calls(const text_chat_template *template, const struct tm *day, bool quoted) {
    static const char name[] = "sifr_probe";
    json_t *arguments = quoted ? json_string("{}") : json_object();
    json_t *messages = json_pack("[{s:s, s:s}, {s:s, s:s, s:[{s:s, s:s, s:{s:s, s:o}}]}]", "role",
                                 "user", "content", "a", "role", "assistant", "content", "",
                                 "tool_calls", "id", "a00000000", "type", "function", "function",
                                 "name", name, "arguments", arguments);
    text_template_input input = {.messages = messages, .now = day};
    text_template_output text;
    bool rendered = messages && text_chat_template_render(template, &input, &text, NULL) == SIFR_OK;
    bool written = rendered && memmem(text.text, text.size, name, sizeof name - 1);
    if (rendered) text_template_output_free(&text);
    json_decref(messages);
    return written;
}

sifr_status data_chat_templates_load(const char *folder, const char *given,
                                     data_chat_templates *out, sifr_error *error) {
    *out = (data_chat_templates){.day = data_chat_day_usual()};
    BASE_TRY(text_chat_template_exists(folder, &out->there, error));
    out->there |= given && strcmp(given, "tokenizer_default") != 0;
    if (!out->there) return SIFR_OK;
    BASE_TRY(text_chat_template_load(folder, given, false, &out->plain, error));
    sifr_status status = text_chat_template_load(folder, given, true, &out->tools, error);
    if (status != SIFR_OK) data_chat_templates_free(out);
    if (status != SIFR_OK) return status;
    out->eos = json_string_value(json_object_get(out->plain.variables, "eos_token"));
    for (int i = 0; status == SIFR_OK && i < 2; i++) {
        const text_chat_template *template = i ? &out->tools : &out->plain;
        out->calls[i] =
            writes_calls(template, &out->day, false) || writes_calls(template, &out->day, true);
        status =
            data_chat_manner_find(template, i == 1, &out->day, out->eos, &out->manners[i], error);
    }
    if (status != SIFR_OK) data_chat_templates_free(out);
    return status;
}

bool data_chat_templates_name(const data_chat_templates *templates, const char *name) {
    return templates->there && (text_template_names(templates->plain.parsed, name) ||
                                text_template_names(templates->tools.parsed, name));
}

bool data_chat_templates_mention(const data_chat_templates *templates, const char *word) {
    return templates->there && (text_template_mentions(templates->plain.parsed, word) ||
                                text_template_mentions(templates->tools.parsed, word));
}

void data_chat_templates_free(data_chat_templates *templates) {
    if (!templates->there) return;
    text_chat_template_free(&templates->plain);
    text_chat_template_free(&templates->tools);
    *templates = (data_chat_templates){0};
}

void data_chat_text_free(data_chat_text *text) {
    free(text->text);
    free(text->spans);
    free(text->prompt);
    *text = (data_chat_text){0};
}

/* What a conversation is rendered with. */
typedef struct chat_renderer {
    const data_chat_templates *templates;
    const data_conversation *conversation;
    const data_row_place *place;
    const char *eos;
    bool last;  /* the last turn alone is learned */
    bool drops; /* all is learned but the turns that are not to */
    bool continues;
    bool inverts; /* the turns that are sought are those that are not to learn */
    size_t first; /* the first message that is learned from */
    const text_template_output *output; /* of the whole conversation */
    data_chat_text *out;
    sifr_error *error;
} chat_renderer;

static json_t *first_messages(const chat_renderer *r, size_t count) {
    json_t *messages = json_array();
    for (size_t i = 0; messages && i < count; i++) {
        json_t *message = json_array_get(r->conversation->messages, i);
        if (json_array_append(messages, message) == 0) continue;
        json_decref(messages);
        return NULL;
    }
    return messages;
}

static text_template_input input_of(const data_chat_templates *templates,
                                    const data_conversation *c, const json_t *messages,
                                    bool prompt) {
    return (text_template_input){.messages = messages,
                                 .tools = c->tools,
                                 .documents = c->documents,
                                 .variables = c->variables,
                                 .add_generation_prompt = prompt,
                                 .now = &templates->day};
}

sifr_status data_chat_render_plain(const data_chat_templates *templates,
                                   const data_conversation *conversation, const json_t *messages,
                                   text_template_output *out, sifr_error *error) {
    text_template_input input = input_of(templates, conversation, messages, false);
    return text_chat_template_render(conversation->tools ? &templates->tools : &templates->plain,
                                     &input, out, error);
}

sifr_status data_chat_write(const data_chat_templates *templates,
                            const data_conversation *conversation, json_t *messages, bool prompt,
                            const data_row_place *place, text_template_output *out,
                            sifr_error *error) {
    text_template_input input = input_of(templates, conversation, messages, prompt);
    const text_chat_template *template =
        conversation->tools ? &templates->tools : &templates->plain;
    sifr_error said = {0};
    sifr_status status = messages ? text_chat_template_render(template, &input, out, &said)
                                  : base_fail(&said, SIFR_NO_MEMORY, "out of memory");
    json_decref(messages);
    if (status == SIFR_OK) return SIFR_OK;
    if (status != SIFR_USAGE) return base_fail(error, status, "%s", said.message);
    return data_row_fail(place, "", error, "%s", said.message);
}

/* Takes over the reference. */
static sifr_status render_list(const chat_renderer *r, json_t *messages, bool prompt,
                               text_template_output *out) {
    return data_chat_write(r->templates, r->conversation, messages, prompt, r->place, out,
                           r->error);
}

/* The first `count` messages. */
static sifr_status render_first(const chat_renderer *r, size_t count, bool prompt,
                                text_template_output *out) {
    return render_list(r, first_messages(r, count), prompt, out);
}

static sifr_status add_span(const chat_renderer *r, size_t begin, size_t end) {
    data_chat_text *out = r->out;
    if (begin >= end) return SIFR_OK;
    BASE_TRY(base_grow(&out->spans, &out->span_capacity, out->span_count + 1, sizeof *out->spans,
                       r->error));
    out->spans[out->span_count++] = (text_template_span){begin, end};
    return SIFR_OK;
}

static bool begins(const data_chat_text *whole, const char *text, size_t size) {
    return size <= whole->size && memcmp(whole->text, text, size) == 0;
}

static sifr_status differs(const chat_renderer *r, size_t turn) {
    return data_row_fail(r->place, "", r->error,
                         "the chat template writes what comes before message %zu in another way "
                         "once the conversation goes on, so the assistant's turns cannot be "
                         "told apart; use a template with {%% generation %%} marks, or give "
                         "--train-on %sall",
                         turn, r->last ? "" : "last or ");
}

/* How much of the whole the messages before `turn` and the prompt of its answer are. */
static sifr_status find_begin(const chat_renderer *r, size_t turn, size_t *size) {
    text_template_output before;
    if (turn == 0)
        return data_row_fail(r->place, "", r->error,
                             "the assistant speaks first, so its turn cannot be told apart; "
                             "begin with a message of the user or the system");
    BASE_TRY(render_first(r, turn, true, &before));
    *size = before.size;
    bool same = begins(r->out, before.text, before.size);
    text_template_output_free(&before);
    return same ? SIFR_OK : differs(r, turn);
}

/* Likewise with the turn itself. Some templates end a conversation, wherever it ends, with the EOS
 * token. */
static sifr_status find_end(const chat_renderer *r, size_t turn, size_t *size) {
    text_template_output until;
    size_t count = json_array_size(r->conversation->messages), eos = r->eos ? strlen(r->eos) : 0;
    *size = r->out->size;
    if (turn + 1 == count) return SIFR_OK;
    BASE_TRY(render_first(r, turn + 1, false, &until));
    *size = until.size;
    bool same = begins(r->out, until.text, until.size);
    if (!same && eos && until.size >= eos &&
        memcmp(until.text + until.size - eos, r->eos, eos) == 0) {
        *size -= eos;
        same = begins(r->out, until.text, *size);
    }
    text_template_output_free(&until);
    return same ? SIFR_OK : differs(r, turn + 1);
}

static bool is_assistant(const data_conversation *c, size_t message) {
    const json_t *role = json_object_get(json_array_get(c->messages, message), "role");
    const char *name = json_string_value(role);
    return name && strcmp(name, "assistant") == 0;
}

static bool is_unlearned(const data_conversation *c, size_t message) {
    return data_message_unlearned(json_array_get(c->messages, message));
}

/* Whether the message is a turn whose span is sought. */
static bool is_sought(const chat_renderer *r, size_t message) {
    return is_assistant(r->conversation, message) &&
           is_unlearned(r->conversation, message) == r->inverts;
}

/* The messages whose turns are sought: all, or the last one's. */
static void find_range(const chat_renderer *r, size_t *first, size_t *behind) {
    *first = r->first;
    *behind = json_array_size(r->conversation->messages);
    for (size_t i = *behind; r->last && i-- > *first;) {
        if (!is_sought(r, i)) continue;
        *first = i;
        *behind = i + 1;
    }
}

/* A turn may be several messages of the assistant in a row: each is one here. Of a completion those
 * that are not learned are found. */
static sifr_status find_by_prefixes(const chat_renderer *r) {
    size_t first, behind;
    find_range(r, &first, &behind);
    for (size_t i = first; i < behind; i++) {
        size_t begin = 0, end = 0;
        if (!is_sought(r, i)) continue;
        BASE_TRY(find_begin(r, i, &begin));
        BASE_TRY(find_end(r, i, &end));
        BASE_TRY(add_span(r, begin, end));
    }
    return SIFR_OK;
}

/* --- turns in the one rendering --- */

static const data_chat_manner *manner_of(const chat_renderer *r) {
    return &r->templates->manners[r->conversation->tools != NULL];
}

/* Something that a template would write for the message. */
static bool says_something(const json_t *message) {
    static const char *const members[] = {"content", "tool_calls", "reasoning_content", "thinking",
                                          "reasoning"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const json_t *value = json_object_get(message, members[i]);
        const char *words = json_string_value(value);
        if (words ? words[strspn(words, " \t\r\n")] != '\0' : json_array_size(value) > 0)
            return true;
    }
    return false;
}

/* Some templates end a conversation with the EOS token, behind all messages. */
static bool ends_with_eos(const chat_renderer *r, size_t end) {
    const text_template_output *o = r->output;
    size_t size = r->eos ? strlen(r->eos) : 0;
    return size && o->size - end >= size && memcmp(o->text + end, r->eos, size) == 0;
}

/* Whether a template may write the message behind the one before it, in one turn. */
static bool continues(const chat_renderer *r, size_t message) {
    const json_t *before = message ? json_array_get(r->conversation->messages, message - 1) : NULL;
    const char *role = json_string_value(json_object_get(before, "role"));
    return role && (strcmp(role, "assistant") == 0 || strcmp(role, "tool") == 0);
}

/* How much of a message's first piece is the cue. *found is false where it must be there and is
 * not: then the template writes the message in a way that is not known. */
static size_t count_cue(const chat_renderer *r, size_t message, text_template_piece piece,
                        bool *found) {
    const char *cue = manner_of(r)->cue;
    size_t size = strlen(cue);
    bool there =
        piece.end - piece.begin >= size && memcmp(r->output->text + piece.begin, cue, size) == 0;
    *found &= there || continues(r, message);
    return there ? size : 0;
}

/* The pieces of a message, without the cue of the first. Results that stand in the assistant's own
 * message are not its words. */
static sifr_status add_pieces(const chat_renderer *r, size_t message, bool *found) {
    const text_template_output *o = r->output;
    const json_t *said = json_array_get(r->conversation->messages, message);
    bool last = message + 1 == json_array_size(r->conversation->messages), any = false;
    *found = !json_object_get(said, "tool_responses");
    for (size_t i = 0; *found && i < o->piece_count; i++) {
        text_template_piece p = o->pieces[i];
        if (p.message != message) continue;
        size_t end = p.end;
        if (!any) p.begin += count_cue(r, message, p, found);
        if (last && i + 1 == o->piece_count && ends_with_eos(r, end)) end = o->size;
        BASE_TRY(add_span(r, p.begin, end));
        any = true;
    }
    *found &= any || !says_something(said);
    return SIFR_OK;
}

/* *found is false, and there are no spans, where they cannot be told. */
static sifr_status find_by_pieces(const chat_renderer *r, bool *found) {
    size_t first, behind;
    *found = manner_of(r)->known && !r->output->mixed;
    find_range(r, &first, &behind);
    for (size_t i = first; *found && i < behind; i++)
        if (is_sought(r, i)) BASE_TRY(add_pieces(r, i, found));
    if (!*found) r->out->span_count = 0;
    r->out->open = *found && manner_of(r)->open && !r->inverts;
    return SIFR_OK;
}

/* Where a template writes turns anew, the way of the one rendering comes first, so that all rows
 * are learned alike; for others, where the differences fail. */
static sifr_status find_turns(const chat_renderer *r) {
    bool found = false, anew = manner_of(r)->anew;
    sifr_error said = {0};
    chat_renderer trial = *r;
    trial.error = &said;
    if (anew) BASE_TRY(find_by_pieces(r, &found));
    if (found) return SIFR_OK;
    sifr_status status = find_by_prefixes(&trial);
    if (status == SIFR_FAILED && !anew) {
        r->out->span_count = 0;
        BASE_TRY(find_by_pieces(r, &found));
    }
    if (found || status == SIFR_OK) return SIFR_OK;
    return base_fail(r->error, status, "%s", said.message);
}

static int compare_spans(const void *a, const void *b) {
    const text_template_span *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Takes out the marks of messages that are not to learn, which have a mark each; of a completion
 * those of the others. */
static sifr_status keep_marks(const chat_renderer *r) {
    const data_conversation *c = r->conversation;
    data_chat_text *out = r->out;
    size_t count = json_array_size(c->messages), turns = 0, kept = 0, unlearned = 0;
    size_t first = r->out->turns ? 0 : r->first;
    for (size_t i = first; i < count; i++) {
        turns += is_assistant(c, i);
        unlearned += is_assistant(c, i) && is_unlearned(c, i);
    }
    if (!unlearned) return SIFR_OK; /* of a completion there are some here */
    if (turns != out->span_count)
        return data_row_fail(
            r->place, "", r->error,
            "%zu messages of the assistant have %zu marks of the chat "
            "template, so those that are not to learn cannot be told apart; leave their "
            "weight or train out",
            turns, out->span_count);
    turns = 0;
    for (size_t i = first; i < count; i++) {
        if (!is_assistant(c, i)) continue;
        if (is_sought(r, i)) out->spans[kept++] = out->spans[turns];
        turns++;
    }
    out->span_count = kept;
    return SIFR_OK;
}

/* --- completions --- */

/* Behind what the last message says; transformers has the same, with another text. */
static const char tag[] = "CONTINUE_FINAL_MESSAGE_TAG ";

/* The list with a tag behind the last content, a new reference; NULL: no memory. */
static json_t *tag_last(const chat_renderer *r, size_t count) {
    json_t *messages = first_messages(r, count);
    json_t *last = messages ? json_copy(json_array_get(messages, count - 1)) : NULL;
    const json_t *content = json_object_get(last, "content");
    const char *text = json_is_string(content) ? json_string_value(content) : "";
    json_t *tagged = json_pack("s%+", text, json_string_length(content), tag);
    bool whole = last && tagged && json_object_set_new(last, "content", tagged) == 0 &&
                 json_array_set(messages, count - 1, last) == 0;
    json_decref(last);
    if (whole) return messages;
    json_decref(messages);
    return NULL;
}

/* The messages up to the end of what the last one says. A template that takes blanks off its end
 * has taken off the tag's, and then those before the tag are none of the text either. */
static sifr_status render_continued(const chat_renderer *r, size_t count,
                                    text_template_output *out) {
    static const size_t length = sizeof tag - 2; /* without the blank */
    BASE_TRY(render_list(r, tag_last(r, count), false, out));
    size_t at = out->size;
    while (at > 0 && (at + length > out->size || memcmp(out->text + at, tag, length) != 0)) at--;
    if (at == 0) {
        text_template_output_free(out);
        return data_row_fail(r->place, "", r->error,
                             "the chat template leaves out what the assistant says last in the "
                             "prompt; move that into the answers");
    }
    bool trimmed = out->text[at + length] != ' ';
    while (trimmed && at > 0 && strchr(" \n\t\r", out->text[at - 1])) at--;
    out->size = at;
    return SIFR_OK;
}

/* The prompt by itself. */
static sifr_status render_prompt(const chat_renderer *r) {
    text_template_output prompt;
    data_chat_text *out = r->out;
    size_t count = r->conversation->prompt_messages;
    bool continued = r->continues && is_assistant(r->conversation, count - 1);
    BASE_TRY(continued ? render_continued(r, count, &prompt)
                       : render_first(r, count, true, &prompt));
    sifr_status status =
        base_grow(&out->prompt, &out->prompt_capacity, prompt.size + 1, 1, r->error);
    if (status == SIFR_OK) memcpy(out->prompt, prompt.text, prompt.size);
    out->prompt_size = prompt.size;
    text_template_output_free(&prompt);
    return status;
}

/* --- marks --- */

/* The template's own marks. Of a prompt's messages they do not count; where the completion's turns
 * alone are learned, its first token says what is the prompt's. */
static sifr_status take_marks(const chat_renderer *r, const text_template_output *output) {
    size_t from = 0;
    if (r->first && !r->out->turns) {
        text_template_output prompt;
        BASE_TRY(render_first(r, r->first, true, &prompt));
        from = prompt.size;
        text_template_output_free(&prompt);
    }
    for (size_t i = 0; i < output->span_count; i++)
        if (output->spans[i].begin + 1 > from)
            BASE_TRY(add_span(r, output->spans[i].begin, output->spans[i].end));
    data_chat_text *out = r->out;
    if (out->span_count) qsort(out->spans, out->span_count, sizeof *out->spans, compare_spans);
    BASE_TRY(keep_marks(r));
    if (r->last && out->span_count) {
        out->spans[0] = out->spans[out->span_count - 1];
        out->span_count = 1;
    }
    return SIFR_OK;
}

static bool has_unlearned(const data_conversation *c, size_t first) {
    for (size_t i = first; i < json_array_size(c->messages); i++)
        if (is_assistant(c, i) && is_unlearned(c, i)) return true;
    return false;
}

/* What stands between the spans, which are in order. */
static sifr_status invert(const chat_renderer *r) {
    data_chat_text *out = r->out;
    size_t from = 0, count = out->span_count;
    BASE_TRY(base_grow(&out->spans, &out->span_capacity, count + 1, sizeof *out->spans, r->error));
    for (size_t i = 0; i <= count; i++) {
        size_t end = i < count ? out->spans[i].begin : out->size;
        size_t next = i < count ? out->spans[i].end : out->size;
        out->spans[i] = (text_template_span){from, end > from ? end : from};
        from = next > from ? next : from;
    }
    out->span_count = count + 1;
    return SIFR_OK;
}

static sifr_status find_parts(const chat_renderer *r, const text_template_output *output) {
    const data_conversation *c = r->conversation;
    if (r->out->completion) BASE_TRY(render_prompt(r));
    bool all = r->out->completion && !r->out->turns && !has_unlearned(c, c->prompt_messages);
    if (r->out->whole || all) return SIFR_OK;
    const text_chat_template *template = c->tools ? &r->templates->tools : &r->templates->plain;
    BASE_TRY(text_template_marks(template->parsed) ? take_marks(r, output) : find_turns(r));
    return r->drops ? invert(r) : SIFR_OK;
}

sifr_status data_chat_render(const data_chat_templates *templates, data_chat_mask mask,
                             bool continues, const data_conversation *conversation,
                             const data_row_place *place, data_chat_text *out, sifr_error *error) {
    chat_renderer r = {.templates = templates,
                       .conversation = conversation,
                       .place = place,
                       .eos = templates->eos,
                       .last = mask == DATA_ON_LAST,
                       .drops = mask == DATA_ON_ALL,
                       .continues = continues,
                       .first = conversation->prompt_messages,
                       .out = out,
                       .error = error};
    text_template_output output;
    out->span_count = 0;
    out->open = false;
    out->whole = mask == DATA_ON_ALL && !has_unlearned(conversation, 0);
    out->turns = mask == DATA_ON_ASSISTANT_ONLY && r.first > 0;
    out->completion = out->turns || (mask == DATA_ON_ASSISTANT && r.first > 0);
    r.inverts = r.drops || (out->completion && !out->turns);
    if (r.drops || mask == DATA_ON_ASSISTANT_TURNS) r.first = 0;
    BASE_TRY(render_first(&r, json_array_size(conversation->messages), false, &output));
    r.output = &output;
    sifr_status status = base_grow(&out->text, &out->capacity, output.size + 1, 1, error);
    if (status == SIFR_OK) {
        memcpy(out->text, output.text, output.size + 1);
        out->size = output.size;
    }
    if (status == SIFR_OK) status = find_parts(&r, &output);
    text_template_output_free(&output);
    return status;
}

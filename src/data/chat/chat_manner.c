#include "data/chat/chat_manner.h"

#include <string.h>

#include "data/records/conversation.h"

typedef struct chat_prober {
    const text_chat_template *template;
    json_t *tools; /* NULL: none */
    const struct tm *now;
    const char *eos;
    bool no_memory;
} chat_prober;

/* Takes over the messages; false where the template raises an error. */
static bool draw(chat_prober *p, json_t *messages, bool prompt, text_template_output *out) {
    text_template_input input = {
        .messages = messages, .tools = p->tools, .add_generation_prompt = prompt, .now = p->now};
    sifr_status status =
        messages ? text_chat_template_render(p->template, &input, out, NULL) : SIFR_NO_MEMORY;
    p->no_memory |= status == SIFR_NO_MEMORY;
    json_decref(messages);
    return status == SIFR_OK;
}

static bool has(const text_template_output *text, const char *words) {
    return memmem(text->text, text->size, words, strlen(words)) != NULL;
}

static bool begins(const text_template_output *whole, const char *text, size_t size) {
    return size <= whole->size && memcmp(whole->text, text, size) == 0;
}

/* --- turns with thoughts --- */

static const char said[] = "sifr_a1";

static json_t *make_calls(void) {
    return json_pack("[{s:s, s:s, s:{s:s, s:{s:s}}}]", "id", "a00000000", "type", "function",
                     "function", "name", "sifr_probe", "arguments", "sifr", "b");
}

/* Two questions, whose answers have thoughts. */
static json_t *make_answers(void) {
    return json_pack("[{s:s, s:s}, {s:s, s:s, s:s}, {s:s, s:s}, {s:s, s:s, s:s}]", "role", "user",
                     "content", "sifr_q1", "role", "assistant", "content", said,
                     "reasoning_content", "sifr_t1", "role", "user", "content", "sifr_q2", "role",
                     "assistant", "content", "sifr_a2", "reasoning_content", "sifr_t2");
}

/* The same with a call of a tool before the first answer. */
static json_t *make_calling(void) {
    json_t *messages = make_answers(), *calls = make_calls();
    json_t *call = json_pack("{s:s, s:s, s:s, s:O?}", "role", "assistant", "content", "",
                             "reasoning_content", "sifr_t0", "tool_calls", calls);
    json_t *result = json_pack("{s:s, s:s, s:s, s:s}", "role", "tool", "tool_call_id", "a00000000",
                               "name", "sifr_probe", "content", "sifr_r1");
    bool whole = messages && calls && call && result &&
                 json_array_insert(messages, 1, result) == 0 &&
                 json_array_insert(messages, 1, call) == 0;
    json_decref(calls);
    json_decref(call);
    json_decref(result);
    if (whole) return messages;
    json_decref(messages);
    return NULL;
}

/* The first `count` messages; takes over the reference. */
static json_t *cut(json_t *messages, size_t count) {
    while (messages && json_array_size(messages) > count) json_array_remove(messages, count);
    return messages;
}

/* Whether the whole begins with the first `count` messages; if the last of them is the assistant's,
 * they may end with the EOS token. */
static bool keeps(chat_prober *p, const text_template_output *whole, json_t *messages, size_t count,
                  bool prompt) {
    text_template_output part;
    size_t eos = p->eos && !prompt ? strlen(p->eos) : 0;
    if (!draw(p, cut(messages, count), prompt, &part)) return false;
    bool same = begins(whole, part.text, part.size);
    if (!same && eos && part.size >= eos && memcmp(part.text + part.size - eos, p->eos, eos) == 0)
        same = begins(whole, part.text, part.size - eos);
    text_template_output_free(&part);
    return same;
}

/* Whether the difference of two renderings is what the template writes of each of the assistant's
 * messages. */
static bool keeps_all(chat_prober *p, const text_template_output *whole, json_t *(*make)(void)) {
    json_t *messages = make();
    size_t count = json_array_size(messages);
    bool keeps_turns = messages != NULL;
    for (size_t i = 1; keeps_turns && i < count; i++) {
        const json_t *message = json_array_get(messages, i);
        if (strcmp(json_string_value(json_object_get(message, "role")), "assistant") != 0) continue;
        keeps_turns = keeps(p, whole, make(), i, true) &&
                      (i + 1 == count || keeps(p, whole, make(), i + 1, false));
    }
    json_decref(messages);
    return keeps_turns;
}

/* The first and the last piece of a message; false where it has none. */
static bool find_pieces(const text_template_output *text, size_t message, size_t *begin,
                        size_t *end) {
    *begin = *end = 0;
    for (size_t i = 0; i < text->piece_count; i++) {
        if (text->pieces[i].message != message) continue;
        if (!*end) *begin = text->pieces[i].begin;
        *end = text->pieces[i].end;
    }
    return *end > 0;
}

/* TRL's training forms learn these with the turn: of a harmony message the model writes such a
 * header itself before each further channel, and DeepSeek's forms have it in one expression with
 * what is said. */
static bool is_learned(const char *cue) {
    static const char *const learned[] = {"<|start|>assistant", "<｜Assistant｜>"};
    for (size_t i = 0; i < sizeof learned / sizeof *learned; i++)
        if (strcmp(cue, learned[i]) == 0) return true;
    return false;
}

/* Where a prompt opens a thought; its size where it does not. */
static size_t find_thought(const char *prompt, size_t size) {
    static const char *const opening[] = {"<think>", "<|channel>thought", "<|START_THINKING|>",
                                          "[THINK]"};
    size_t at = size;
    for (size_t i = 0; i < sizeof opening / sizeof *opening; i++) {
        const char *found = memmem(prompt, at, opening[i], strlen(opening[i]));
        if (found) at = (size_t)(found - prompt);
    }
    return at;
}

/* A thought that the prompt opens behind its header is the answer's, as TRL's training forms have
 * it; a prompt that is nothing else stays one. Where the answer begins otherwise, it is not known
 * how turns begin. */
static void set_cue(const char *prompt, size_t size, const char *answer, size_t length,
                    data_chat_manner *out) {
    size_t header = find_thought(prompt, size);
    bool opens = header > 0 && header < size;
    if (opens) size = header;
    out->known = size < sizeof out->cue && size <= length && memcmp(answer, prompt, size) == 0;
    if (!out->known) return;
    memcpy(out->cue, prompt, size);
    out->cue[size] = '\0';
    bool learned = is_learned(out->cue);
    if (learned) out->cue[0] = '\0';
    out->anew |= learned || opens;
}

/* What the generation prompt writes where an answer begins in the whole: the first one, or the last
 * where a template moves something to the last question. */
static void find_cue(chat_prober *p, const text_template_output *whole, data_chat_manner *out) {
    for (size_t i = 1; !out->known && i < 4; i += 2) {
        text_template_output asked;
        size_t begin, end;
        if (!find_pieces(whole, i, &begin, &end) || !draw(p, cut(make_answers(), i), true, &asked))
            continue;
        if (asked.size >= begin && begins(whole, asked.text, begin))
            set_cue(asked.text + begin, asked.size - begin, whole->text + begin, end - begin, out);
        text_template_output_free(&asked);
    }
}

static bool ends_with_answer(const text_template_output *whole, size_t end) {
    while (end && strchr(" \t\r\n", whole->text[end - 1])) end--;
    size_t size = sizeof said - 1;
    return end >= size && memcmp(whole->text + end - size, said, size) == 0;
}

static void find_turns(chat_prober *p, data_chat_manner *out) {
    text_template_output whole;
    size_t begin, end;
    if (!draw(p, make_answers(), false, &whole)) return;
    out->anew = !keeps_all(p, &whole, make_answers);
    bool shown = find_pieces(&whole, 1, &begin, &end) && !whole.mixed &&
                 memmem(whole.text + begin, end - begin, said, sizeof said - 1);
    if (shown) find_cue(p, &whole, out);
    if (shown) out->open = ends_with_answer(&whole, end);
    text_template_output_free(&whole);
    if (!draw(p, make_calling(), false, &whole)) return; /* it takes no calls in this form */
    out->anew |= !keeps_all(p, &whole, make_calling);
    text_template_output_free(&whole);
}

/* --- lists of parts --- */

static const char first[] = "sifr_one", second[] = "sifr_two";

/* A conversation in which the content of one role is a list. */
static json_t *make_lists(data_list_roles role) {
    json_t *messages = role == DATA_LIST_TOOL ? cut(make_calling(), 3) : cut(make_answers(), 2);
    json_t *list = json_pack("[{s:s, s:s}, {s:s, s:s}]", "type", "text", "text", first, "type",
                             "text", "text", second);
    json_t *system = json_pack("{s:s, s:s}", "role", "system", "content", "");
    size_t at = role == DATA_LIST_TOOL ? 2 : role == DATA_LIST_ASSISTANT;
    bool whole = messages && list && system &&
                 (role != DATA_LIST_SYSTEM || json_array_insert(messages, 0, system) == 0) &&
                 json_object_set(json_array_get(messages, at), "content", list) == 0;
    json_decref(list);
    json_decref(system);
    if (whole) return messages;
    json_decref(messages);
    return NULL;
}

/* Whether it writes both texts, and not as a list with its quotes. */
static bool takes_lists(chat_prober *p, data_list_roles role) {
    text_template_output text;
    if (!draw(p, make_lists(role), false, &text)) return false;
    bool takes = has(&text, first) && has(&text, second) && !has(&text, "'sifr_one'") &&
                 !has(&text, "\"sifr_one\"");
    text_template_output_free(&text);
    return takes;
}

static json_t *make_tools(void) {
    return json_pack("[{s:s, s:{s:s, s:s, s:{s:s, s:{}}}}]", "type", "function", "function", "name",
                     "sifr_probe", "description", "A tool.", "parameters", "type", "object",
                     "properties");
}

sifr_status data_chat_manner_find(const text_chat_template *template, bool tools,
                                  const struct tm *now, const char *eos, data_chat_manner *out,
                                  sifr_error *error) {
    static const data_list_roles roles[] = {DATA_LIST_SYSTEM, DATA_LIST_USER, DATA_LIST_ASSISTANT,
                                            DATA_LIST_TOOL};
    chat_prober p = {template, tools ? make_tools() : NULL, now, eos, false};
    *out = (data_chat_manner){0};
    p.no_memory = tools && !p.tools;
    find_turns(&p, out);
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (takes_lists(&p, roles[i])) out->lists |= roles[i];
    json_decref(p.tools);
    return p.no_memory ? base_fail_alloc(error, 64) : SIFR_OK;
}

/* Reads and encodes the rows of all sources. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "base/parallel.h"
#include "base/system.h"
#include "base/text.h"
#include "data/chat/chat_rows_internal.h"
#include "data/records/records.h"
#include "data/stream/text_source.h"
#include "data/stream/tokenise.h"

/* Rows are read and encoded so many at a time; of bad rows so many are named. */
enum { ROWS_AT_A_TIME = 512, THREAD_LIMIT = 256, BAD_NAMED = 3 };

/* A row that was read. */
typedef struct chat_slot {
    json_t *row;
    data_row_place place;
    data_chat_row encoded[2]; /* of a pair both answers, else the first alone */
    sifr_status status;
    sifr_error error;
} chat_slot;

typedef struct chat_reader {
    const data_chat_options *options;
    data_chat *chat;
    text_tokenizer *tokenizer;
    data_chat_templates templates;
    data_chat_end_ids end_ids;
    data_chat_encoder *encoders; /* one for each thread */
    size_t threads;
    chat_slot *slots;
    size_t filled;
    const char *file;
    bool typed;                                  /* the source names the type of its rows */
    data_row_type type;                          /* that type, or any */
    const data_form *form;                       /* of the file's rows; NULL: not yet known */
    data_chat_fields fields;                     /* of the file */
    bool kind_known;                             /* whether all rows are pairs */
    int64_t read;                                /* rows of the source */
    bool templated;                              /* a chat template wrote some row */
    bool replaced_said, member_said, tools_said; /* of the file */
    bool wants_ends, has_ends;                   /* ends of turns are to learn, and some are */
} chat_reader;

static sifr_status encode_slot(const chat_reader *r, data_chat_encoder *encoder, chat_slot *slot) {
    sifr_error *error = &slot->error;
    if (!r->chat->paired)
        BASE_TRY(data_chat_encode(encoder, slot->row, r->form, &slot->place, slot->encoded, error));
    else
        BASE_TRY(
            data_chat_encode_pair(encoder, slot->row, r->form, &slot->place, slot->encoded, error));
    for (int a = 0; a < (r->chat->paired ? 2 : 1); a++)
        BASE_TRY(data_chat_check_lost(&slot->encoded[a].lost, &slot->place, error));
    return SIFR_OK;
}

/* Without skipping, a thread ends at its first bad row: those behind it are not asked for, and each
 * could take as long as a template may. */
static void encode_share(void *argument, size_t thread) {
    chat_reader *r = argument;
    for (size_t i = thread; i < r->filled; i += r->threads) {
        chat_slot *slot = &r->slots[i];
        slot->status = encode_slot(r, &r->encoders[thread], slot);
        if (slot->status != SIFR_OK && !r->options->skip_bad_rows) break;
    }
}

/* A row that cannot be used: counted, where the user says so. */
static sifr_status take_bad(chat_reader *r, sifr_status status, const char *message,
                            sifr_error *error) {
    data_chat_counts *counts = &r->chat->counts;
    if (status != SIFR_FAILED || !r->options->skip_bad_rows)
        return base_fail(error, status, "%s", message);
    if (counts->bad++ < BAD_NAMED)
        base_log(r->options->log, SIFR_LOG_WARNING, "data: skipped: %s", message);
    return SIFR_OK;
}

static int64_t kept_of(const chat_reader *r, const data_chat_row *row) {
    int64_t whole = (int64_t)row->ids.count;
    return r->options->whole || r->options->joint ? whole : base_min_i64(whole, r->chat->length);
}

/* A row without a token to learn, or whose only ones are cut off, would be padding; so would a pair
 * be with such an answer. */
static bool is_dropped(chat_reader *r, const data_chat_row *rows, int count) {
    bool dropped = false, cut = false;
    if (r->options->joint && rows[0].ids.count) return false;
    for (int a = 0; a < count; a++) {
        int64_t kept = kept_of(r, &rows[a]), learned = 0, later = 0;
        for (int64_t i = 1; i < (int64_t)rows[a].ids.count; i++)
            *(i < kept ? &learned : &later) += rows[a].learned[i];
        dropped |= learned == 0;
        cut |= learned == 0 && later > 0;
    }
    r->chat->counts.dropped += dropped;
    r->chat->counts.dropped_cut += cut;
    return dropped;
}

/* What a row holds and its text does not, once a file. */
static void say_lost(chat_reader *r, const data_chat_lost *lost) {
    const sifr_log *log = r->options->log;
    if (lost->member[0] && !r->member_said)
        base_log(log, SIFR_LOG_WARNING,
                 "data: %s: the chat template does not write '%s' of the assistant's messages, "
                 "which is not learned",
                 r->file, lost->member);
    if (lost->tools && !r->tools_said)
        base_log(log, SIFR_LOG_WARNING,
                 "data: %s: rows have tools, which the chat template does not write", r->file);
    r->member_said |= lost->member[0] != '\0';
    r->tools_said |= lost->tools;
}

/* What would be said of many rows alike, once a file. */
static sifr_status say_once(chat_reader *r, const data_chat_row *row, sifr_error *error) {
    const sifr_log *log = r->options->log;
    if (row->odd.replaced && !r->replaced_said)
        base_log(log, SIFR_LOG_WARNING,
                 "data: %s: rows have a system prompt in a field and another one as the first "
                 "turn; the turn counts",
                 r->file);
    say_lost(r, &row->lost);
    r->replaced_said |= row->odd.replaced;
    return data_chat_fields_variables(&r->fields, row->unread, error);
}

/* A row that is too long, or a pair with such an answer, where those are left out. */
static bool is_long(chat_reader *r, const data_chat_row *rows, int count) {
    bool too_long = false;
    for (int a = 0; a < count; a++) too_long |= (int64_t)rows[a].ids.count > r->chat->length;
    too_long &= r->options->drop_long;
    r->chat->counts.long_rows += too_long;
    return too_long;
}

static bool wants_ends(const data_chat_turns *turns) {
    return turns->asked && (turns->eos != DATA_ENDS_NONE || turns->eot != DATA_ENDS_NONE);
}

static sifr_status take_row(chat_reader *r, const chat_slot *slot, sifr_error *error) {
    const data_chat_row *rows = slot->encoded;
    data_chat *chat = r->chat;
    int count = chat->paired ? 2 : 1;
    if (is_long(r, rows, count) || is_dropped(r, rows, count)) return SIFR_OK;
    for (int a = 0; a < count; a++) {
        int64_t whole = (int64_t)rows[a].ids.count, kept = kept_of(r, &rows[a]);
        chat->counts.truncated += kept < whole;
        chat->counts.cut_tokens += whole - kept;
        chat->counts.merged += rows[a].merged;
        chat->counts.left_out += rows[a].odd.left_out;
        chat->counts.quoted += rows[a].odd.quoted;
        chat->counts.doubled += rows[a].odd.doubled;
        chat->counts.twice += rows[a].lost.twice;
        r->templated |= rows[a].templated;
        if (!rows[a].templated)
            BASE_TRY(data_chat_fields_untemplated(&r->fields, slot->row, error));
        r->wants_ends |= rows[a].templated && wants_ends(&r->encoders[0].turns);
        r->has_ends |= rows[a].ends > 0;
        BASE_TRY(say_once(r, &rows[a], error));
        BASE_TRY(data_chat_append(chat, rows[a].ids.ids, rows[a].learned, kept, whole, error));
        if (r->options->whole) BASE_TRY(data_chat_note_place(chat, slot->place.row, error));
    }
    return SIFR_OK;
}

static sifr_status encode_slots(chat_reader *r, sifr_error *error) {
    base_parallel((int)r->threads, r->threads, encode_share, r);
    for (size_t i = 0; i < r->filled; i++) {
        chat_slot *slot = &r->slots[i];
        if (slot->status == SIFR_OK)
            BASE_TRY(take_row(r, slot, error));
        else
            BASE_TRY(take_bad(r, slot->status, slot->error.message, error));
        json_decref(slot->row);
        slot->row = NULL;
    }
    r->filled = 0;
    return SIFR_OK;
}

static void add_slot(chat_reader *r, json_t *row, const data_row_place *place) {
    chat_slot *slot = &r->slots[r->filled++];
    slot->row = row;
    slot->place = *place;
    slot->error = (sifr_error){0};
}

/* Pairs and single rows do not go together, and are trained on in other ways. */
static sifr_status check_kind(chat_reader *r, data_row_type type, sifr_error *error) {
    bool pairs = type == DATA_ROW_PREFERENCE;
    if (r->kind_known && pairs != r->chat->paired)
        return base_fail(error, SIFR_USAGE,
                         "%s: rows of type %s beside files of %s; give one kind alone", r->file,
                         data_row_type_name(type), pairs ? "single rows" : "preferences");
    r->chat->paired = pairs;
    r->kind_known = true;
    return SIFR_OK;
}

/* The form of the file's rows, from the first that can be read. */
static sifr_status find_form(chat_reader *r, const json_t *row, const data_row_place *place,
                             sifr_error *error) {
    const data_form *form;
    char form_text[256];
    if (r->form) return SIFR_OK;
    BASE_TRY(data_row_form_find(row, r->type, place, &form, error));
    if (!r->typed) BASE_TRY(check_kind(r, form->type, error));
    if (r->options->joint && form->type != DATA_ROW_TEXT)
        return base_fail(error, SIFR_USAGE,
                         "join_texts: %s: rows of type %s are learned one by one; leave it out, or "
                         "give rows of text",
                         r->file, data_row_type_name(form->type));
    r->form = form;
    const char *said = data_chat_fields_form(form, row, form_text);
    if (!r->typed || said == form_text)
        base_log(r->options->log, SIFR_LOG_INFO, "data: %s: rows of type %s", r->file, said);
    return SIFR_OK;
}

/* What of the row is read is known: it is named and of a form. */
static sifr_status prepare_row(chat_reader *r, json_t *row, const data_row_place *place,
                               sifr_error *error) {
    BASE_TRY(data_chat_fields_name(&r->fields, row, place, error));
    BASE_TRY(find_form(r, row, place, error));
    BASE_TRY(data_chat_fields_note(&r->fields, r->form, row, error));
    return data_chat_fields_note_replaced(&r->fields, error);
}

/* The next row of the file, NULL behind the last one, or where the source has had as many as are
 * asked for. */
static sifr_status next_row(chat_reader *r, data_records *records, json_t **row,
                            sifr_error *error) {
    int64_t most = r->options->max_rows;
    *row = NULL;
    if (most && r->read == most) return SIFR_OK;
    sifr_status status = data_records_next(records, row, error);
    r->read += *row != NULL || status != SIFR_OK;
    return status;
}

static sifr_status read_rows(chat_reader *r, data_records *records, sifr_error *error) {
    for (;;) {
        json_t *row;
        sifr_error said = {0};
        sifr_status status = next_row(r, records, &row, &said);
        bool skips = status == SIFR_FAILED && data_records_skippable(records);
        data_row_place place = {r->file, data_records_row(records), data_records_line(records),
                                r->options->skip_bad_rows};
        bool ends = (status == SIFR_OK && !row) || (status != SIFR_OK && !skips);
        if (row) {
            sifr_status found = prepare_row(r, row, &place, &said);
            if (found == SIFR_OK)
                add_slot(r, row, &place);
            else
                json_decref(row), status = found;
        }
        if (ends || r->filled == ROWS_AT_A_TIME || status != SIFR_OK)
            BASE_TRY(encode_slots(r, error));
        if (ends && status != SIFR_OK) return base_fail(error, status, "%s", said.message);
        if (ends) return SIFR_OK;
        if (status != SIFR_OK) BASE_TRY(take_bad(r, status, said.message, error));
    }
}

static sifr_status read_file(chat_reader *r, const data_chat_source *source, const char *path,
                             sifr_error *error) {
    data_records *records;
    r->file = path;
    r->typed = source->typed;
    r->type = source->typed ? source->type : DATA_ROW_TYPES;
    r->form = NULL;
    r->fields = (data_chat_fields){.names = source->fields,
                                   .ignored = {source->ignored[0], source->ignored[1]},
                                   .templates = &r->templates};
    r->replaced_said = r->member_said = r->tools_said = false;
    if (r->options->whole) BASE_TRY(data_chat_note_file(r->chat, path, error));
    BASE_TRY(data_chat_ends_check(&r->end_ids, &source->turns, error));
    for (size_t t = 0; t < r->threads; t++) {
        r->encoders[t].format = source->format;
        r->encoders[t].turns = source->turns;
    }
    if (r->typed) BASE_TRY(check_kind(r, r->type, error));
    BASE_TRY(data_records_open_rows(path, &records, error));
    sifr_status status = read_rows(r, records, error);
    data_records_close(records);
    if (status == SIFR_OK) status = data_chat_fields_end(&r->fields, path, r->options->log, error);
    data_chat_fields_free(&r->fields);
    return status;
}

static sifr_status read_source(chat_reader *r, size_t index, sifr_error *error) {
    const data_chat_source *source = &r->options->sources[index];
    data_text_source files;
    chat_part *part = &r->chat->parts[index];
    int64_t per = r->chat->paired ? 2 : 1;
    *part = (chat_part){.first = r->chat->counts.rows / per, .weight = source->weight};
    BASE_TRY(data_text_source_open_rows(&source->path, 1, &files, error));
    sifr_status status = SIFR_OK;
    int64_t most = r->options->max_rows;
    r->read = 0;
    for (size_t i = 0; status == SIFR_OK && i < files.count && !(most && r->read == most); i++)
        status = read_file(r, source, files.documents[i].path, error);
    data_text_source_close(&files);
    part->count = r->chat->counts.rows / (r->chat->paired ? 2 : 1) - part->first;
    return status;
}

/* --- the reader --- */

static sifr_status check_size(const chat_reader *r, sifr_error *error) {
    int64_t size = text_tokenizer_text_size(r->tokenizer);
    if (size <= r->options->vocab_size) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s: the tokenizer makes ids up to %lld, but the model has rows for only "
                     "%lld; use the tokenizer that belongs to the model",
                     r->options->tokenizer, (long long)size - 1, (long long)r->options->vocab_size);
}

/* Special tokens count too here: templates write them. */
static sifr_status check_ids(const chat_reader *r, sifr_error *error) {
    const data_chat *chat = r->chat;
    for (int64_t i = 0; i < chat->counts.tokens; i++) {
        if (chat->ids[i] < r->options->vocab_size) continue;
        return base_fail(error, SIFR_FAILED,
                         "%s: the rows have the token %d, but the model has rows for only %lld; "
                         "use the tokenizer that belongs to the model",
                         r->options->tokenizer, chat->ids[i], (long long)r->options->vocab_size);
    }
    return SIFR_OK;
}

/* As in TRL the tokenizer's own end-of-text token ends a text, where the folder names one. */
static int64_t find_end(const chat_reader *r) {
    const data_chat_options *o = r->options;
    int64_t eos = text_tokenizer_eos(r->tokenizer);
    bool own = text_tokenizer_names_eos(r->tokenizer) && eos < o->vocab_size;
    return o->separator >= 0 && own ? eos : o->separator;
}

static sifr_status check_variables(const json_t *variables, sifr_error *error) {
    const char *wrong = data_variables_refused(variables);
    if (!wrong) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "chat_template_kwargs: '%s' is no variable of a chat template but decided by "
                     "the run; leave it out",
                     wrong);
}

static sifr_status take_date(chat_reader *r, sifr_error *error) {
    BASE_TRY(data_chat_day_read(r->options->date, &r->templates.day, error));
    if (r->templates.there && !data_chat_templates_name(&r->templates, "strftime_now"))
        base_log(r->options->log, SIFR_LOG_WARNING,
                 "data: the chat template does not ask for the date, so chat_template_date changes "
                 "nothing");
    return SIFR_OK;
}

static sifr_status make_reader(chat_reader *r, sifr_error *error) {
    const data_chat_options *o = r->options;
    int threads = o->threads;
    base_system system;
    BASE_TRY(check_variables(o->variables, error));
    if (threads <= 0) base_system_read(&system), threads = system.cpus;
    r->threads = (size_t)base_min_i64(base_max_i64(threads, 1), THREAD_LIMIT);
    BASE_TRY(text_tokenizer_load(o->tokenizer, &r->tokenizer, error));
    BASE_TRY(check_size(r, error));
    BASE_TRY(data_chat_templates_load(o->tokenizer, o->template, &r->templates, error));
    if (o->date) BASE_TRY(take_date(r, error));
    BASE_TRY(base_alloc(r->threads, sizeof *r->encoders, &r->encoders, error));
    BASE_TRY(base_alloc(ROWS_AT_A_TIME, sizeof *r->slots, &r->slots, error));
    for (size_t t = 0; t < r->threads; t++) {
        r->encoders[t] =
            (data_chat_encoder){.tokenizer = r->tokenizer,
                                .templates = &r->templates,
                                .mask = o->mask,
                                .end_ids = &r->end_ids,
                                .variables = o->variables,
                                .special = o->special && o->joint != DATA_JOIN_EOS,
                                .odds = o->odds,
                                .separator = o->joint == DATA_JOIN_PLAIN ? -1 : find_end(r)};
        BASE_TRY(text_tokenizer_scratch_new(r->tokenizer, &r->encoders[t].scratch, error));
    }
    BASE_TRY(data_chat_ends_open(r->tokenizer, r->encoders[0].scratch, o->eot_tokens, &r->end_ids,
                                 error));
    BASE_TRY(data_chat_new(o->length, o->padding, o->count, &r->chat, error));
    size_t begins;
    const int32_t *begin = text_tokenizer_around(r->tokenizer, false, &begins);
    if (begins && o->special && o->joint == DATA_JOIN_EOS) r->chat->begin = begin[0];
    return SIFR_OK;
}

static void free_reader(chat_reader *r) {
    for (size_t i = 0; r->slots && i < ROWS_AT_A_TIME; i++) {
        json_decref(r->slots[i].row);
        data_chat_row_free(&r->slots[i].encoded[0]);
        data_chat_row_free(&r->slots[i].encoded[1]);
    }
    for (size_t t = 0; r->encoders && t < r->threads; t++) {
        text_tokenizer_scratch_free(r->encoders[t].scratch);
        data_chat_encoder_free(&r->encoders[t]);
    }
    free(r->slots);
    free(r->encoders);
    data_chat_ends_close(&r->end_ids);
    data_chat_templates_free(&r->templates);
    text_tokenizer_free(r->tokenizer);
}

/* --- what was read --- */

static const char *are(int64_t count) {
    return count == 1 ? "is" : "are";
}

static void say_odd_rows(const chat_reader *r) {
    const sifr_log *log = r->options->log;
    const data_chat_counts *c = &r->chat->counts;
    char count[32], more[32];
    if (c->truncated)
        base_log(log, SIFR_LOG_WARNING,
                 "data: %s row%s longer than seq_length %lld and cut at the end, by %s tokens in "
                 "all",
                 base_format_count(c->truncated, count), c->truncated == 1 ? " is" : "s are",
                 (long long)r->options->length, base_format_count(c->cut_tokens, more));
    if (c->long_rows)
        base_log(log, SIFR_LOG_WARNING, "data: %s row%s left out: longer than seq_length %lld",
                 base_format_count(c->long_rows, count), c->long_rows == 1 ? " is" : "s are",
                 (long long)r->options->length);
    if (c->dropped)
        base_log(log, SIFR_LOG_WARNING, "data: %s row%s left out: nothing in %s is learned%s",
                 base_format_count(c->dropped, count), c->dropped == 1 ? " is" : "s are",
                 c->dropped == 1 ? "it" : "them",
                 c->dropped_cut == c->dropped ? " within seq_length"
                 : c->dropped_cut             ? ", of some only within seq_length"
                                              : "");
    if (c->bad)
        base_log(log, SIFR_LOG_WARNING, "data: %s bad row%s skipped",
                 base_format_count(c->bad, count), c->bad == 1 ? "" : "s");
    if (c->merged)
        base_log(log, SIFR_LOG_WARNING,
                 "data: in %s row%s the prompt by itself has other tokens than before its "
                 "completion, which is learned from the first of them on; end prompts so that no "
                 "token goes over the edge",
                 base_format_count(c->merged, count), c->merged == 1 ? "" : "s");
    if (c->left_out)
        base_log(log, SIFR_LOG_WARNING,
                 "data: in %s row%s the chat template leaves out a message of the system, a "
                 "developer or a user; `sifr data inspect` shows the text",
                 base_format_count(c->left_out, count), c->left_out == 1 ? "" : "s");
    if (c->quoted)
        base_log(
            log, SIFR_LOG_WARNING,
            "data: in %s row%s the arguments of a tool call are JSON in a string, and the chat "
            "template writes them in quotes; make them objects",
            base_format_count(c->quoted, count), c->quoted == 1 ? "" : "s");
    if (c->twice)
        base_log(log, SIFR_LOG_WARNING,
                 "data: in %s row%s the system's turn has the tools that the chat template writes "
                 "once more; give --ignore-fields tools to leave those out",
                 base_format_count(c->twice, count), c->twice == 1 ? "" : "s");
    data_tokenise_say_doubled(r->tokenizer, c->doubled, "text", log);
    if (r->wants_ends && !r->has_ends)
        base_log(log, SIFR_LOG_WARNING,
                 "data: no end of a turn is learned: behind none stands the end-of-text token, or "
                 "one of eot_tokens; name in eot_tokens what the chat template ends turns with");
    if (r->options->asked && !r->templated)
        base_log(log, SIFR_LOG_WARNING, "data: no row has messages, so %s changes nothing",
                 r->options->asked);
    uint64_t invalid = 0;
    for (size_t t = 0; t < r->threads; t++)
        invalid += text_tokenizer_invalid(r->encoders[t].scratch);
    if (invalid)
        base_log(log, SIFR_LOG_WARNING, "data: %llu sequence%s not valid UTF-8",
                 (unsigned long long)invalid, invalid == 1 ? " is" : "s are");
}

static void say_rows(const chat_reader *r) {
    const data_chat_counts *c = &r->chat->counts;
    char rows[80], tokens[80], learned[32];
    if (!r->options->whole && !r->options->joint)
        base_log(r->options->log, SIFR_LOG_INFO,
                 "data: %s, %s, of which %s %s learned; the longest %s has %lld, each "
                 "takes %lld",
                 base_format_counted(r->chat->paired ? c->rows / 2 : c->rows,
                                     r->chat->paired ? "pair" : "row", rows),
                 base_format_counted(c->tokens, "token", tokens),
                 base_format_count(c->learned, learned), are(c->learned),
                 r->chat->paired ? "answer with its prompt" : "row", (long long)c->longest,
                 (long long)r->options->length);
    say_odd_rows(r);
}

static sifr_status check_any(const chat_reader *r, sifr_error *error) {
    const data_chat_counts *c = &r->chat->counts;
    const char *path = r->options->sources[0].path;
    char long_rows[80] = "";
    if (c->rows) return SIFR_OK;
    if (!c->dropped && !c->bad && !c->long_rows)
        return base_fail(error, SIFR_FAILED, "%s: no rows; give a file with rows", path);
    if (c->long_rows)
        snprintf(long_rows, sizeof long_rows, ", %lld are longer than seq_length %lld and left out",
                 (long long)c->long_rows, (long long)r->options->length);
    return base_fail(
        error, SIFR_FAILED,
        "%s: no row is left: %lld have nothing to learn (%lld of them within "
        "seq_length %lld), %lld are bad%s; look at them with `sifr data inspect --train-on all`",
        path, (long long)c->dropped, (long long)c->dropped_cut, (long long)r->options->length,
        (long long)c->bad, long_rows);
}

sifr_status data_chat_open(const data_chat_options *options, data_chat **out, sifr_error *error) {
    chat_reader reader = {.options = options};
    sifr_status status = make_reader(&reader, error);
    for (size_t i = 0; status == SIFR_OK && i < options->count; i++)
        status = read_source(&reader, i, error);
    if (status == SIFR_OK) status = check_ids(&reader, error);
    if (status == SIFR_OK) status = check_any(&reader, error);
    if (status == SIFR_OK) {
        data_chat_settle(reader.chat);
        say_rows(&reader);
    }
    free_reader(&reader);
    if (status == SIFR_OK)
        *out = reader.chat;
    else
        data_chat_close(reader.chat);
    return status;
}

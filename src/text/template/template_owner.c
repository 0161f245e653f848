/* Which message each part of the text is written for: the one that the innermost loop over messages
 * is at. So a turn is found in the one rendering of the whole conversation, whatever the template
 * writes otherwise once the conversation goes on.
 *
 * Within the assistant's turn a template may write the results of its calls, which are other
 * messages (Gemma 4 looks them up in an inner loop): from where the content of such a message is
 * read, that iteration of the inner loop writes for it. Read elsewhere, what becomes of it cannot
 * be seen. */
#include "text/template/template_internal.h"

void text_owner_mark(text_dict *message, size_t number, const json_t *role) {
    const char *name = json_string_value(role);
    message->message = number;
    message->assistant = name && strcmp(name, "assistant") == 0;
}

static sifr_status add_piece(text_render *r, size_t begin, size_t end, size_t message) {
    text_template_piece *last = r->piece_count ? &r->pieces[r->piece_count - 1] : NULL;
    if (last && last->message == message && last->end == begin) {
        last->end = end;
        return SIFR_OK;
    }
    if (r->piece_count == r->piece_capacity) {
        text_template_piece *pieces;
        r->piece_capacity = r->piece_capacity ? 2 * r->piece_capacity : 16;
        BASE_TRY(TEXT_TAKE(r, r->piece_capacity, sizeof *pieces, &pieces));
        if (r->piece_count) memcpy(pieces, r->pieces, r->piece_count * sizeof *pieces);
        r->pieces = pieces;
    }
    r->pieces[r->piece_count++] = (text_template_piece){begin, end, message};
    return SIFR_OK;
}

/* What is written from here on is another message's. */
static sifr_status change(text_render *r, text_owner to) {
    size_t begin = r->owned, end = r->root.size, message = r->owner.message;
    bool other = to.message != message;
    r->owner = to;
    if (!other) return SIFR_OK;
    r->owned = end;
    return message && begin < end ? add_piece(r, begin, end, message - 1) : SIFR_OK;
}

/* What a macro or a block captures is written later, by the iteration that captured it. */
static bool captures(const text_render *r) {
    return r->out != &r->root;
}

sifr_status text_owner_enter(text_render *r, text_value v, text_owner *outer) {
    text_owner inner = r->owner;
    *outer = r->owner;
    if (captures(r)) return SIFR_OK;
    inner.inner = inner.message != 0;
    if (v.kind == TEXT_DICT && v.dict->message)
        inner = (text_owner){.message = v.dict->message, .assistant = v.dict->assistant};
    return change(r, inner);
}

sifr_status text_owner_leave(text_render *r, text_owner outer) {
    return captures(r) ? SIFR_OK : change(r, outer);
}

sifr_status text_owner_reads(text_render *r, const text_dict *message, text_value key) {
    bool content = key.kind == TEXT_STRING && text_text_is(key.text, "content");
    if (!content || !r->owner.assistant || message->assistant) return SIFR_OK;
    if (r->owner.inner && !captures(r))
        return change(r, (text_owner){.message = message->message, .inner = true});
    r->mixed = true;
    return SIFR_OK;
}

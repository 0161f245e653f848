/* A conversation as the text that a model reads, and which parts of it are learned.
 *
 * Messages go through the model's chat template. Where the template has {% generation %} marks,
 * they say what the assistant writes. Elsewhere a turn of the assistant is the difference of two
 * renderings: the messages before it with the generation prompt, and those up to it. Both must
 * begin the rendering of the whole. Where a template writes turns anew once the conversation goes
 * on, a turn is what its loop over the messages writes for it in the one rendering of the whole.
 *
 * Of a completion all is learned, whatever the template marks: what stands behind the prompt as the
 * template writes that by itself, with the generation prompt; DATA_ON_ASSISTANT_ONLY has of that
 * what is the assistant's. */
#ifndef DATA_CHAT_RENDER_H
#define DATA_CHAT_RENDER_H

#include "data/chat/chat_day.h"
#include "data/chat/chat_manner.h"
#include "data/records/conversation.h"
#include "text/chat_template.h"

typedef enum data_chat_mask {
    DATA_ON_ASSISTANT,  /* all that the assistant writes */
    DATA_ON_LAST,       /* its last turn */
    DATA_ON_ALL,        /* every token */
    DATA_ON_COMPLETION, /* of a prompt and its completion the completion, of messages all */
    /* What the assistant writes, but of a completion only its turns in that, and of a prompt and
     * its completion its turns in both: TRL's assistant_only_loss, without completion_only_loss. */
    DATA_ON_ASSISTANT_ONLY,
    DATA_ON_ASSISTANT_TURNS
} data_chat_mask;
/* By its word in the config, letters of any case; NULL: the first. */
bool data_chat_mask_find(const char *word, data_chat_mask *out);

typedef struct data_chat_templates {
    bool there;                      /* the folder has any */
    text_chat_template plain, tools; /* for messages without tools and with them */
    const char *eos;                 /* ends a conversation in some templates; NULL: unknown */
    bool calls[2]; /* whether `plain` and `tools` are known to write tool_calls of a message */
    data_chat_manner manners[2]; /* of the two likewise */
    struct tm day;               /* of dates in templates */
} data_chat_templates;

/* From a model folder, which may have none, or what is `given` in its place (NULL: nothing;
 * text/chat_template_given.h). SIFR_USAGE for one that is not supported. */
sifr_status data_chat_templates_load(const char *folder, const char *given,
                                     data_chat_templates *out, sifr_error *error) SIFR_MUST_CHECK;
/* Whether one of them has a variable of this name. */
bool data_chat_templates_name(const data_chat_templates *templates, const char *name);
/* Whether one of them has this word, as a name or a string: it may read a member of that name. */
bool data_chat_templates_mention(const data_chat_templates *templates, const char *word);
void data_chat_templates_free(data_chat_templates *templates); /* harmless on a zeroed one */

/* The text with the parts that are learned, in order. Start with {0}; may be used again. */
typedef struct data_chat_text {
    char *text;
    size_t size, capacity;
    text_template_span *spans;
    size_t span_count, span_capacity;
    bool whole; /* everything is learned */
    /* All is learned behind what the text has in common with the prompt, but for the parts. */
    bool completion;
    bool turns; /* of a completion the parts alone are learned */
    bool open;  /* data_chat_align_open */
    char *prompt;
    size_t prompt_size, prompt_capacity;
} data_chat_text;

void data_chat_text_free(data_chat_text *text);

/* The text of the messages, which stand for those of the conversation, without a generation prompt.
 * SIFR_USAGE where the template raises an error. */
sifr_status data_chat_render_plain(const data_chat_templates *templates,
                                   const data_conversation *conversation, const json_t *messages,
                                   text_template_output *out, sifr_error *error) SIFR_MUST_CHECK;

/* What the template makes of messages, whose reference it takes over (NULL: there was no memory for
 * them), beside what else the conversation gives it; *out is the caller's. Errors as below. */
sifr_status data_chat_write(const data_chat_templates *templates,
                            const data_conversation *conversation, json_t *messages, bool prompt,
                            const data_row_place *place, text_template_output *out,
                            sifr_error *error) SIFR_MUST_CHECK;

/* A conversation of messages. Dates in templates are those of one day, so that the same rows give
 * the same text on any day. SIFR_FAILED, with file and row, where the template raises an error, and
 * where the turns cannot be told apart. */
/* `continues`: a prompt whose last message is the assistant's has no end of that turn and no
 * generation prompt, as by transformers' continue_final_message. */
sifr_status data_chat_render(const data_chat_templates *templates, data_chat_mask mask,
                             bool continues, const data_conversation *conversation,
                             const data_row_place *place, data_chat_text *out,
                             sifr_error *error) SIFR_MUST_CHECK;

#endif

/* A conversation as the text that a model reads, and which parts of it are learned.
 *
 * Messages go through the model's chat template. Where the template has {% generation %} marks,
 * they say what the assistant writes. Elsewhere a turn of the assistant is the difference of two
 * renderings: the messages before it with the generation prompt, and those up to it. Both must
 * begin the rendering of the whole; a template for which they do not cannot be used for this.
 *
 * Of a completion all is learned, whatever the template marks: what stands behind the prompt as the
 * template writes that by itself, with the generation prompt; TRAIN_ON_ASSISTANT_ONLY has of that
 * what is the assistant's. */
#ifndef TRAIN_CHAT_RENDER_H
#define TRAIN_CHAT_RENDER_H

#include "data/records/conversation.h"
#include "text/chat_template.h"

typedef enum train_chat_mask {
    TRAIN_ON_ASSISTANT,  /* all that the assistant writes */
    TRAIN_ON_LAST,       /* its last turn */
    TRAIN_ON_ALL,        /* every token */
    TRAIN_ON_COMPLETION, /* of a prompt and its completion the completion, of messages all */
    /* What the assistant writes, but of a completion only its turns in that, and of a prompt and
     * its completion its turns in both: TRL's assistant_only_loss, without completion_only_loss. */
    TRAIN_ON_ASSISTANT_ONLY,
    TRAIN_ON_ASSISTANT_TURNS
} train_chat_mask;

typedef struct train_chat_templates {
    bool there;                         /* the folder has any */
    formats_chat_template plain, tools; /* for messages without tools and with them */
    const char *eos;                    /* ends a conversation in some templates; NULL: unknown */
    bool calls[2]; /* whether `plain` and `tools` are known to write tool_calls of a message */
} train_chat_templates;

/* From a model folder, which may have none, or what is `given` in its place (NULL: nothing;
 * text/chat_template_given.h). SIFR_USAGE for one that is not supported. */
sifr_status train_chat_templates_load(const char *folder, const char *given,
                                      train_chat_templates *out, sifr_error *error) SIFR_MUST_CHECK;
/* Whether one of them has a variable of this name. */
bool train_chat_templates_name(const train_chat_templates *templates, const char *name);
/* Whether one of them has this word, as a name or a string: it may read a member of that name. */
bool train_chat_templates_mention(const train_chat_templates *templates, const char *word);
void train_chat_templates_free(train_chat_templates *templates); /* harmless on a zeroed one */

/* The text with the parts that are learned, in order. Start with {0}; may be used again. */
typedef struct train_chat_text {
    char *text;
    size_t size, room;
    formats_template_span *spans;
    size_t span_count, span_room;
    bool whole; /* everything is learned */
    /* All is learned behind what the text has in common with the prompt, but for the parts. */
    bool completion;
    bool turns; /* of a completion the parts alone are learned */
    char *prompt;
    size_t prompt_size, prompt_room;
} train_chat_text;

void train_chat_text_free(train_chat_text *text);

/* The text of the messages, which stand for those of the conversation, without a generation prompt.
 * SIFR_USAGE where the template raises an error. */
sifr_status train_chat_render_plain(const train_chat_templates *templates,
                                    const formats_conversation *conversation,
                                    const json_t *messages, formats_template_output *out,
                                    sifr_error *error) SIFR_MUST_CHECK;

/* What the template makes of messages, whose reference it takes over (NULL: there was no memory for
 * them), beside what else the conversation gives it; *out is the caller's. Errors as below. */
sifr_status train_chat_write(const train_chat_templates *templates,
                             const formats_conversation *conversation, json_t *messages,
                             bool prompt, const formats_row_place *place,
                             formats_template_output *out, sifr_error *error) SIFR_MUST_CHECK;

/* A conversation of messages. Dates in templates are those of one day, so that the same rows give
 * the same text on any day. SIFR_FAILED, with file and row, where the template raises an error, and
 * where the turns cannot be told apart. */
/* `continues`: a prompt whose last message is the assistant's has no end of that turn and no
 * generation prompt, as by transformers' continue_final_message. */
sifr_status train_chat_render(const train_chat_templates *templates, train_chat_mask mask,
                              bool continues, const formats_conversation *conversation,
                              const formats_row_place *place, train_chat_text *out,
                              sifr_error *error) SIFR_MUST_CHECK;

#endif

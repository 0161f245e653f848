/* The next token, of text or of rows to fine-tune on. */
#include "train/objective/objectives.h"

const train_objective train_next_token = {
    .tasks = 1u << MODEL_NEXT_TOKEN, .chats = true, .perplexity = true};

/* A chat template that an import names, beside the model folder, where that is there: its tokenizer
 * must have the template's tokens, and its own template stays where it writes the same. */
#ifndef CONVERT_TEMPLATE_CHOICE_H
#define CONVERT_TEMPLATE_CHOICE_H

#include "config/import/config_import.h"

/* Takes sifr.chat_template out of the config that was made where the folder's own template writes
 * the same, and says so by `say`, as it does where the folder is not there. SIFR_USAGE where the
 * tokenizer lacks a token, unless `how` allows the key template, and for a name of a template that
 * is not here, which is left out where `how` allows chat_template. */
sifr_status convert_settle_template(const config_imported *made, const config_import_options *how,
                                    config_line *say, void *user,
                                    sifr_error *error) SIFR_MUST_CHECK;

#endif
